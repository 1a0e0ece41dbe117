package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/record"
	"switchboard/internal/upstreamtest"
)

// finishing is a client's side on a carrier that can end an answer before the handler returns.
type finishing struct {
	*answer
	ended time.Time
	fails error
}

func (f *finishing) FinishResponse() error {
	f.ended = time.Now()
	return f.fails
}

// slowRecorder takes its time, and learns how long it has.
type slowRecorder struct {
	record.Recorder
	takes time.Duration
	left  time.Duration
}

func (r *slowRecorder) Record(ctx context.Context, event *record.Event) error {
	deadline, _ := ctx.Deadline()
	r.left = time.Until(deadline)
	select {
	case <-time.After(r.takes):
		return r.Recorder.Record(ctx, event)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// S-LAM-05b: before the function's deadline the answer ends with an in-band error and its
// event is kept; no provider is blamed for our time limit.
func TestSLAM05DeadlineEndsTheRelay(t *testing.T) {
	tests := []struct {
		name   string
		reply  upstreamtest.Reply
		body   string
		status int
		want   string
		limit  time.Duration
		took   time.Duration
	}{
		{"in mid-stream", upstreamtest.Stream(chunk1, chunk2).Then(upstreamtest.Step{Hang: true}), streamBody, 200, `"code":"timeout"`, 30 * time.Second, 25 * time.Second},
		{"before any output", upstreamtest.Reply{}.Then(upstreamtest.Step{Hang: true}), streamBody, 504, `"code":"timeout"`, 30 * time.Second, 25 * time.Second},
		{"short limit", upstreamtest.Stream(chunk1).Then(upstreamtest.Step{Hang: true}), streamBody, 200, `"code":"timeout"`, 6 * time.Second, 3 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, rigYAML(t))
				r.network.Set("A", upstreamtest.Always(tt.reply))
				r.network.Set("B", upstreamtest.Always(tt.reply))
				for range 5 {
					began := time.Now()
					ctx, cancel := context.WithDeadline(context.Background(), began.Add(tt.limit))
					a := r.do(ctx, post("/v1/chat/completions", tt.body, "X-Session-Id: s1"))
					cancel()
					if a.status != tt.status || !strings.Contains(a.text(), tt.want) || strings.Contains(a.text(), "[DONE]") || a.aborted {
						t.Errorf("answer = %d %q, want %d with %s", a.status, a.text(), tt.status, tt.want)
					}
					if took := time.Since(began); took < tt.took || took > tt.took+time.Second {
						t.Errorf("answered after %v, want %v", took, tt.took)
					}
					if e := r.last(t); e.Outcome != record.OutcomeTimeout || e.Provider == "B" {
						t.Errorf("event: outcome %q from %q, want timeout from A", e.Outcome, e.Provider)
					} else if got := e.Attempts[0].Error; got != "" && got != "timeout" {
						t.Errorf("event: the attempt ended with %q, want timeout: the client was there", got)
					}
				}
			})
		})
	}
}

// S-LAM-05c: the client has its last byte before the event is handed over, which has what is
// left of the function's time and no more.
func TestSLAM05TailAfterTheAnswer(t *testing.T) {
	tests := []struct {
		name  string
		takes time.Duration
		limit time.Duration // of the function
		left  time.Duration // for the event
		kept  bool
	}{
		{"slow", 3 * time.Second, time.Minute, 5 * time.Second, true},
		{"too slow", time.Hour, time.Minute, 5 * time.Second, false},
		{"near the kill", time.Hour, 2 * time.Second, 1500 * time.Millisecond, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, rigYAML(t))
				recorder := &slowRecorder{Recorder: r.recorder, takes: tt.takes}
				r.restart(t, withRecorder(recorder))
				r.network.Set("A", upstreamtest.Always(upstreamtest.Stream(chunk1, finish)))
				began := time.Now()
				ctx, cancel := context.WithDeadline(context.Background(), began.Add(tt.limit))
				defer cancel()
				f := &finishing{answer: &answer{header: http.Header{}}}
				r.gateway.ServeHTTP(f, post("/v1/chat/completions", streamBody).WithContext(ctx))
				if f.ended.Sub(began) > time.Millisecond || !strings.HasSuffix(f.text(), "[DONE]\n\n") {
					t.Errorf("%q ended after %v, want the whole answer at once", f.text(), f.ended.Sub(began))
				}
				if took := time.Since(began); took != min(tt.takes, tt.left) {
					t.Errorf("handler returned after %v, want %v", took, min(tt.takes, tt.left))
				}
				if recorder.left != tt.left {
					t.Errorf("the event had %v, want %v", recorder.left, tt.left)
				}
				if kept := len(r.recorder.Events()) == 1; kept != tt.kept {
					t.Errorf("kept = %v, want %v", kept, tt.kept)
				}
				if logged := strings.Contains(r.log.String(), "undelivered_event"); logged == tt.kept {
					t.Errorf("logged whole = %v, want %v", logged, !tt.kept)
				}
			})
		})
	}
}

// S-LAM-07a where the writes have passed: a carrier that learns at the end that nobody has the
// answer says so. The provider served it, the tokens are counted, and it is not "ok".
func TestSLAM07AnswerNobodyTook(t *testing.T) {
	tests := []struct {
		name    string
		reply   upstreamtest.Reply
		outcome string
	}{
		{"whole", upstreamtest.Stream(chunk1, finish), record.OutcomeCancelled},
		{"failed anyway", upstreamtest.Stream(chunk1).Then(upstreamtest.Step{Cut: true}), record.OutcomeUpstreamError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, rigYAML(t))
			r.network.Set("A", upstreamtest.Always(tt.reply))
			f := &finishing{answer: &answer{header: http.Header{}}, fails: errors.New("nobody took it")}
			r.gateway.ServeHTTP(f, post("/v1/chat/completions", streamBody, "X-Session-Id: s1"))
			e := r.last(t)
			if e.Outcome != tt.outcome || len(e.Attempts) != 1 || e.Attempts[0].Status != 200 || e.ResponseStatus != 200 {
				t.Errorf("event = %+v, want outcome %s of one attempt with 200", e, tt.outcome)
			}
			if tt.outcome == record.OutcomeCancelled && (e.Attempts[0].Error != "" || e.InputTokens == nil || !strings.Contains(r.log.String(), "nobody took it")) {
				t.Errorf("event = %+v, want the tokens of a good attempt, and the cause in the log", e)
			}
		})
	}
}

// slowCounter is a store that takes its time to count.
type slowCounter struct {
	affinity.Store
	takes time.Duration
}

func (s slowCounter) AddUsage(ctx context.Context, ref affinity.Ref, usage affinity.Usage, now time.Time, idle time.Duration) error {
	select {
	case <-time.After(s.takes):
		return s.Store.AddUsage(ctx, ref, usage, now, idle)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// S-DB-04 c after the answer: where the client does not wait for it, a slow store may take
// longer to count what the request used, though never what the event needs.
func TestSDB04SlowCounters(t *testing.T) {
	tests := []struct {
		name  string
		tail  bool // the carrier ends the answer first
		takes time.Duration
		limit time.Duration // of the function
		took  time.Duration
		kept  int64 // requests on the row
	}{
		{"slow in the tail", true, time.Second, time.Minute, time.Second, 1},
		{"too slow in the tail", true, time.Hour, time.Minute, 2 * time.Second, 0},
		{"near the kill", true, time.Hour, 2 * time.Second, 750 * time.Millisecond, 0},
		{"nothing is left", true, time.Hour, 600 * time.Millisecond, 50 * time.Millisecond, 0},
		{"the client waits", false, time.Second, time.Minute, 250 * time.Millisecond, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, rigYAML(t))
				r.restart(t, withStore(slowCounter{r.store, tt.takes}))
				r.network.Set("A", upstreamtest.Always(upstreamtest.Stream(chunk1, finish)))
				began := time.Now()
				ctx, cancel := context.WithDeadline(context.Background(), began.Add(tt.limit))
				defer cancel()
				a := &answer{header: http.Header{}}
				var w http.ResponseWriter = a
				if tt.tail {
					w = &finishing{answer: a}
				}
				r.gateway.ServeHTTP(w, post("/v1/chat/completions", streamBody, "X-Session-Id: s1").WithContext(ctx))
				if took := time.Since(began); took != tt.took {
					t.Errorf("handler returned after %v, want %v", took, tt.took)
				}
				if row, _ := r.row("s1", "m-oai"); row.Requests != tt.kept {
					t.Errorf("total_requests = %d, want %d", row.Requests, tt.kept)
				}
				if e := r.last(t); e.Outcome != record.OutcomeOK {
					t.Errorf("outcome %q, want ok", e.Outcome)
				}
			})
		})
	}
}
