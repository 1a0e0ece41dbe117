package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/gateway"
	"switchboard/internal/mem"
	"switchboard/internal/record"
	"switchboard/internal/upstreamtest"
)

const (
	chunk1 = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"1\"}}]}\n\n"
	chunk2 = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"2\"}}]}\n\n"
	finish = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n" +
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1,\"total_tokens\":8}}\n\ndata: [DONE]\n\n"
)

// panicking is a transport that panics, in the call or in the body after some chunks.
type panicking struct {
	inCall bool
	chunks []string
}

func (p *panicking) RoundTrip(*http.Request) (*http.Response, error) {
	if p.inCall {
		panic("injected in the call")
	}
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(&panickingBody{p.chunks}), ContentLength: -1,
	}, nil
}

type panickingBody struct{ chunks []string }

func (b *panickingBody) Read(p []byte) (int, error) {
	if len(b.chunks) == 0 {
		panic("injected in the body")
	}
	n := copy(p, b.chunks[0])
	b.chunks = b.chunks[1:]
	return n, nil
}

// switchable lets a test repair its transport.
type switchable struct{ http.RoundTripper }

// S-LAM-02: a panic in a streaming handler took the process down, and with it the events of
// others; a deferred empty write committed status 200 first.
func TestSLAM02PanicLeavesAnAnswerAndAnEvent(t *testing.T) {
	surfaces := []struct{ path, body, sign string }{
		{"/v1/chat/completions", streamBody, "data: {\"error\":{"},
		{"/v1/messages", `{"model":"m-ant","stream":true,"messages":[{"role":"user","content":"hi"}]}`, "event: error\ndata: {\"type\":\"error\""},
		{"/v1/responses", `{"model":"m-oai","stream":true,"input":"hi"}`, "event: error\ndata: {"},
	}
	output := map[string]string{
		"/v1/chat/completions": chunk1,
		"/v1/messages":         "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"1\"}}\n\n",
		"/v1/responses":        "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"1\"}\n\n",
	}
	for _, s := range surfaces {
		for _, when := range []string{"call", "before output", "after two chunks"} {
			t.Run(s.path+" "+when, func(t *testing.T) {
				fault := &panicking{inCall: when == "call"}
				if when == "after two chunks" {
					fault.chunks = []string{output[s.path], output[s.path]}
				}
				transport := &switchable{fault}
				r := newRig(t, rigYAML(t), withTransport(transport))
				a := r.post(s.path, s.body, "X-Session-Id: s1")
				e := r.last(t)
				if a.panicked != nil || e.Outcome != record.OutcomeUpstreamError || len(r.recorder.Events()) != 1 {
					t.Errorf("panicked %v, outcome %q, %d events, want an answer and one event", a.panicked, e.Outcome, len(r.recorder.Events()))
				}
				if when == "after two chunks" {
					if want := output[s.path] + output[s.path]; a.status != 200 || !strings.HasPrefix(a.text(), want) || !strings.Contains(a.text()[len(want):], s.sign) {
						t.Errorf("answer = %d %q, want both chunks and an error event", a.status, a.text())
					}
				} else if a.status != 500 || a.sent.Get("Content-Type") != "application/json" || e.ResponseStatus != 500 {
					t.Errorf("answer = %d %q (%s), event says %d, want 500 in JSON", a.status, a.text(), a.sent.Get("Content-Type"), e.ResponseStatus)
				} else {
					checkErrorShape(t, "panic", s.path, a)
				}
				if strings.Contains(a.text(), "injected") {
					t.Errorf("the client sees the panic's text: %q", a.text())
				}
				transport.RoundTripper = r.network
				r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
				if a := r.post("/v1/chat/completions", chatBody); a.status != 200 {
					t.Errorf("next request = %d, want 200", a.status)
				}
			})
		}
	}
}

// S-LAM-02 elsewhere: a panic in the bookkeeping, or in the client's own writer, is no reason
// to take the process down either.
func TestSLAM02PanicsBesideTheRelay(t *testing.T) {
	for _, op := range []string{mem.OpLookup, mem.OpAssign, mem.OpConfirm, mem.OpAddUsage, mem.OpRecord, "write"} {
		t.Run(op, func(t *testing.T) {
			r := newRig(t, rigYAML(t))
			r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
			broken := true
			fault := func(got string) (bool, error) {
				if broken && got == op {
					panic("injected in " + op)
				}
				return false, nil
			}
			r.store.Fault, r.recorder.Fault = fault, fault
			a := &answer{header: http.Header{}, write: func(int, []byte) error {
				_, err := fault("write")
				return err
			}}
			r.serve(a, post("/v1/chat/completions", chatBody, "X-Session-Id: s1"))
			want := map[string]int{mem.OpAddUsage: 200, mem.OpRecord: 200, "write": 200}[op]
			if want == 0 {
				want = 500
			}
			if a.panicked != nil && !a.aborted || a.status != want {
				t.Errorf("answer %d, panicked %v, want %d and no panic", a.status, a.panicked, want)
			}
			if log := r.log.String(); op == mem.OpRecord && !strings.Contains(log, "undelivered_event") {
				t.Errorf("the event is lost: %s", log)
			} else if op != mem.OpRecord && len(r.recorder.Events()) != 1 {
				t.Errorf("%d events, want one", len(r.recorder.Events()))
			}
			broken = false
			if a := r.post("/v1/chat/completions", chatBody, "X-Session-Id: s1"); a.status != 200 {
				t.Errorf("next request = %d, want 200: %s", a.status, a.text())
			}
		})
	}
}

// S-LAM-07 a: Lambda tells of a client's end only by the writer's error. The upstream call is
// cancelled at once, what is known of the usage is kept, and nobody is to blame.
func TestSLAM07WriterErrorCancelsUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigYAML(t))
		start := "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n"
		delta := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n"
		reply := upstreamtest.Stream(start)
		for range 100 {
			reply = reply.Then(upstreamtest.Step{Wait: time.Second, Bytes: []byte(delta)})
		}
		r.network.Set("N", upstreamtest.Always(reply))
		a := &answer{header: http.Header{}, write: func(n int, _ []byte) error {
			if n > 5 {
				return errors.New("the client is gone")
			}
			return nil
		}}
		r.serve(a, post("/v1/messages", `{"model":"m-ant","stream":true,"messages":[{"role":"user","content":"hi"}]}`, "X-Session-Id: s1"))
		e := r.last(t)
		if e.Outcome != record.OutcomeCancelled || e.InputTokens == nil || *e.InputTokens != 25 || a.took > 10*time.Second {
			t.Errorf("outcome %q, input %v after %v, want client_cancelled with 25 at once", e.Outcome, e.InputTokens, a.took)
		}
		calls := r.network.Calls()
		if len(calls) != 1 || !calls[0].Cancelled() {
			t.Errorf("%d calls, want one that is cancelled", len(calls))
		}
		r.network.Set("N", upstreamtest.Always(upstreamtest.JSON(200, `{"type":"message","usage":{"input_tokens":1,"output_tokens":1}}`)))
		if a := r.post("/v1/messages", `{"model":"m-ant","messages":[]}`, "X-Session-Id: s1"); a.status != 200 || r.network.Order(1) != "N" {
			t.Errorf("next = %d from %s, want 200 from N", a.status, r.network.Order(1))
		}
	})
}

// S-AFF-06 after output: a client that hangs up in mid-stream.
func TestSAFF06HangUpInMidStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigYAML(t))
		r.network.Set("A", upstreamtest.Always(upstreamtest.Stream(chunk1, chunk2).Then(upstreamtest.Step{Hang: true})))
		r.pin("s1", "m-oai", "A", "1", 0)
		for range 10 {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(200*time.Millisecond, cancel)
			a := r.do(ctx, post("/v1/chat/completions", streamBody, "X-Session-Id: s1"))
			cancel()
			if e := r.last(t); e.Outcome != record.OutcomeCancelled || e.ResponseStatus != 200 || strings.Contains(a.text(), "error") {
				t.Errorf("outcome %q with %d %q, want client_cancelled", e.Outcome, a.status, a.text())
			}
		}
		r.network.Set("A", upstreamtest.Always(upstreamtest.Stream(chunk1, finish)))
		if a := r.post("/v1/chat/completions", streamBody, "X-Session-Id: s1"); a.status != 200 || r.network.Order(10) != "A" {
			t.Errorf("then = %d from %s, want 200 from A", a.status, r.network.Order(10))
		}
		if row, _ := r.row("s1", "m-oai"); row.SwitchCount != 0 || row.Provider != "A" {
			t.Errorf("row = %+v, want A without a switch", row)
		}
	})
}

// S-DB-04 c: a store that is down or slow. The request is served by ranking within the normal
// time, the failure is logged once, and the event says that affinity is unknown.
func TestSDB04StoreFaults(t *testing.T) {
	down := func(string) (bool, error) { return false, errors.New("store: throttled") }
	only := func(op string, fault mem.Fault) mem.Fault {
		return func(got string) (bool, error) {
			if got == op {
				return fault(got)
			}
			return false, nil
		}
	}
	tests := []struct {
		name   string
		fault  mem.Fault
		stream bool
	}{
		{"down", down, false},
		{"down, streamed", down, true},
		{"lookup", only(mem.OpLookup, down), false},
		{"assign", only(mem.OpAssign, down), false},
		{"confirm", only(mem.OpConfirm, down), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, rigYAML(t))
				r.store.Fault = tt.fault
				body := chatBody
				r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
				if tt.stream {
					body = streamBody
					r.network.Set("A", upstreamtest.Always(upstreamtest.Stream(chunk1, finish)))
				}
				a := r.post("/v1/chat/completions", body, "X-Session-Id: s1")
				e := r.last(t)
				if a.status != 200 || e.Affinity != "unknown" || e.Outcome != record.OutcomeOK || e.SessionID != "s1" {
					t.Errorf("answer %d, affinity %q, outcome %q, want 200, unknown, ok", a.status, e.Affinity, e.Outcome)
				}
				if n := strings.Count(r.log.String(), `"affinity store fault"`); n != 1 {
					t.Errorf("the fault is logged %d times, want once:\n%s", n, r.log.String())
				}
			})
		})
	}
}

// slowStore answers after two seconds, or with the end of the context. Every method counts.
type slowStore struct{ *mem.Store }

func (s slowStore) wait(ctx context.Context) error {
	select {
	case <-time.After(2 * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slowStore) Lookup(ctx context.Context, ref affinity.Ref, now time.Time) (affinity.Pin, error) {
	if err := s.wait(ctx); err != nil {
		return affinity.Pin{}, err
	}
	return s.Store.Lookup(ctx, ref, now)
}

func (s slowStore) Assign(ctx context.Context, p affinity.Pin, stale *affinity.Pin, now time.Time, idle time.Duration) (affinity.Pin, error) {
	if err := s.wait(ctx); err != nil {
		return affinity.Pin{}, err
	}
	return s.Store.Assign(ctx, p, stale, now, idle)
}

func (s slowStore) LookupAlias(ctx context.Context, id string, now time.Time) (affinity.Alias, error) {
	if err := s.wait(ctx); err != nil {
		return affinity.Alias{}, err
	}
	return s.Store.LookupAlias(ctx, id, now)
}

// S-DB-04 c: a store that is unreachable for two seconds costs a request its budget, once.
func TestSDB04SlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigYAML(t))
		slow := slowStore{r.store}
		r.restart(t, withStore(slow), func(o *gateway.Options) { o.Aliases = slow })
		r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
		tests := []struct {
			path, body string
			within     time.Duration
		}{
			{"/v1/chat/completions", chatBody, 300 * time.Millisecond},
			{"/v1/responses", `{"model":"m-oai","previous_response_id":"resp_1","input":"x"}`, 600 * time.Millisecond},
		}
		for _, tt := range tests {
			a := r.post(tt.path, tt.body, "X-Session-Id: s1")
			if e := r.last(t); a.status != 200 || a.took > tt.within || e.Affinity != "unknown" {
				t.Errorf("%s = %d after %v, affinity %q, want 200 within %v, unknown", tt.path, a.status, a.took, e.Affinity, tt.within)
			}
		}
		if calls := r.network.Calls(); calls[0].Credential() != calls[1].Credential() {
			t.Error("without the store a session changes its key")
		}
	})
}

// S-DB-04 c for aliases: the next request finds the response unknown and is served.
func TestSDB04AliasFaults(t *testing.T) {
	r := newRig(t, rigYAML(t))
	r.store.Fault = func(op string) (bool, error) {
		if op == mem.OpPutAlias || op == mem.OpLookupAlias {
			return false, errors.New("store: down")
		}
		return false, nil
	}
	r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(200, `{"id":"resp_1","usage":{"input_tokens":1,"output_tokens":1}}`)))
	for _, body := range []string{`{"model":"m-oai","input":"x"}`, `{"model":"m-oai","previous_response_id":"resp_1","input":"x"}`} {
		if a := r.post("/v1/responses", body); a.status != 200 {
			t.Errorf("%s = %d, want 200: %s", body, a.status, a.text())
		}
	}
}

// A recorder that fails must not fail the request, and the event is not lost: it is in the
// log whole, marked so that it can be put back.
func TestUndeliveredEventIsLogged(t *testing.T) {
	r := newRig(t, rigYAML(t))
	r.recorder.Fault = func(string) (bool, error) { return false, errors.New("stream is down") }
	r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
	if a := r.post("/v1/chat/completions", chatBody); a.status != 200 {
		t.Errorf("status = %d, want 200", a.status)
	}
	if log := r.log.String(); strings.Count(log, `"undelivered_event":{"event_id"`) != 1 || !strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("log = %s, want the whole event at error level", log)
	}
}

// S-SSE-03: lines beyond every scanner's cap.
func TestSSSE03LongLines(t *testing.T) {
	for _, size := range []int{100, 64 << 10, 300_000, 1<<20 + 1, 5 << 20} {
		for _, hide := range []bool{false, true} {
			t.Run(fmt.Sprint(size, hide), func(t *testing.T) {
				r := newRig(t, rigYAML(t))
				long := "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"" +
					strings.Repeat("a", size) + "\"}}]}}]}\n\n"
				usage := "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1,\"total_tokens\":8}}\n\n"
				r.network.Set("A", upstreamtest.Always(upstreamtest.Stream(long, finish[:strings.Index(finish, "data: {\"choices\":[],")], usage, "data: [DONE]\n\n")))
				body, want := streamBody, long+finish
				if hide {
					body = strings.Replace(body, `"stream_options":{"include_usage":true},`, "", 1)
					want = strings.Replace(want, usage, "", 1)
				}
				a := r.post("/v1/chat/completions", body)
				if a.text() != want {
					t.Errorf("client got %d bytes, want %d", len(a.text()), len(want))
				}
				if e := r.last(t); e.InputTokens == nil || *e.InputTokens != 7 || e.Outcome != record.OutcomeOK {
					t.Errorf("input %v, outcome %q, want 7, ok", e.InputTokens, e.Outcome)
				}
			})
		}
	}
}
