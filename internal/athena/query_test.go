package athena_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/athena"
	"switchboard/internal/audit"
)

func usageColumns() []string { return audit.UsageColumns() }

func TestPollsWithBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		states := append([]string{"QUEUED"}, strings.Split(strings.Repeat("RUNNING ", 40)+"SUCCEEDED", " ")...)
		r := open(t, &fake{play: func(int, string) script { s := daily(7); s.states = states; return s }})
		days, err := r.Daily(t.Context(), audit.Filter{})
		if err != nil || len(days.Days) != 1 || days.Days[0].Requests != 7 {
			t.Errorf("Daily = %+v, %v, want one day of 7 requests", days.Days, err)
		}
		before := begin
		for i, at := range r.fake.times("GetQueryExecution") {
			gap := at.Sub(before)
			if least := min(200*time.Millisecond<<min(i/2, 10), 2*time.Second) / 2; gap < least || gap > 2500*time.Millisecond {
				t.Errorf("look %d came after %v", i, gap)
			}
			before = at
		}
		if took := time.Since(begin); took > 42*2500*time.Millisecond || took < time.Minute {
			t.Errorf("42 looks took %v", took)
		}
	})
}

func TestEndedContextStopsTheQuery(t *testing.T) {
	for name, tt := range map[string]struct {
		fake  *fake
		after time.Duration
		stops int
	}{
		"while it runs":         {&fake{}, 3 * time.Second, 1},
		"while it is started":   {&fake{slow: func(string) time.Duration { return 500 * time.Millisecond }}, 300 * time.Millisecond, 1},
		"while it is looked at": {&fake{slow: func(string) time.Duration { return time.Second }}, 1500 * time.Millisecond, 1},
		"while a start hangs":   {&fake{slow: func(string) time.Duration { return time.Hour }}, time.Second, 0},
		"and stopping is refused": {&fake{refuse: func(op string, _ int) string {
			return map[string]string{"StopQueryExecution": "InternalServerException"}[op]
		}}, time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.fake.play = func(int, string) script { return script{states: []string{"RUNNING"}} }
				r := open(t, tt.fake)
				for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
					begin, stops := time.Now(), tt.fake.count("StopQueryExecution")
					ctx, cancel := context.WithTimeout(t.Context(), tt.after)
					if errors.Is(end, context.Canceled) {
						cancel()
						ctx, cancel = context.WithCancel(t.Context())
						timer := time.AfterFunc(tt.after, cancel)
						defer timer.Stop()
					}
					_, err := r.Summary(ctx, audit.Filter{})
					cancel()
					if !errors.Is(err, end) {
						t.Errorf("Summary = %v, want %v", err, end)
					}
					if got := tt.fake.count("StopQueryExecution") - stops; got < tt.stops || tt.stops == 0 && got > 0 {
						t.Errorf("%d calls stop the query, want %d", got, tt.stops)
					}
					if took := time.Since(begin); took > tt.after+2100*time.Millisecond {
						t.Errorf("Summary returned %v after its context had ended", took-tt.after)
					}
				}
			})
		})
	}
}

func TestEndedContextAsksNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := open(t, &fake{})
	if _, err := r.Log(ctx, audit.Filter{}, audit.Page{Limit: 1}); !errors.Is(err, context.Canceled) || len(r.fake.calls) > 0 {
		t.Errorf("Log = %v after %d calls, want %v after none", err, len(r.fake.calls), context.Canceled)
	}
}

func TestThrottling(t *testing.T) {
	for _, op := range []string{"StartQueryExecution", "GetQueryExecution", "GetQueryResults"} {
		for _, code := range []string{"ThrottlingException", "TooManyRequestsException"} {
			synctest.Test(t, func(t *testing.T) {
				busy := &fake{play: func(int, string) script { return daily(1, 2) }}
				busy.refuse = func(called string, n int) string {
					if called == op && n < 4 {
						return code
					}
					return ""
				}
				days, err := open(t, busy).Daily(t.Context(), audit.Filter{})
				if err != nil || len(days.Days) != 2 || len(busy.queries) != 1 {
					t.Errorf("%s throttled (%s) three times: Daily = %d days, %v in %d queries, want 2 in one", op, code, len(days.Days), err, len(busy.queries))
				}
			})
			synctest.Test(t, func(t *testing.T) {
				r := open(t, &fake{refuse: func(called string, _ int) string { return map[string]string{op: code}[called] }})
				_, err := r.Daily(t.Context(), audit.Filter{})
				if !errors.Is(err, athena.ErrThrottled) || r.fake.count(op) > 5 {
					t.Errorf("%s throttled (%s): Daily = %v after %d calls, want %v after at most 5", op, code, err, r.fake.count(op), athena.ErrThrottled)
				}
				if op == "GetQueryExecution" && r.fake.count("StopQueryExecution") != 1 {
					t.Error("a query that could not be looked at has not been stopped")
				}
			})
		}
	}
}

func TestScanLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := &fake{play: func(int, string) script {
			return script{states: []string{"RUNNING"}, scanned: []int64{0, 10, 999, 1000, 1001}}
		}}
		r := open(t, reads, func(o *athena.Options) { o.MaxBytes = 1000 })
		_, err := r.Daily(t.Context(), audit.Filter{})
		if !errors.Is(err, athena.ErrScanLimit) || reads.count("StopQueryExecution") != 1 || reads.count("GetQueryExecution") != 5 {
			t.Errorf("Daily = %v after %d looks and %d stops, want %v after 5 and 1", err,
				reads.count("GetQueryExecution"), reads.count("StopQueryExecution"), athena.ErrScanLimit)
		}
		if log := r.log.String(); !strings.Contains(log, `"scanned_bytes":1001`) || !strings.Contains(log, "query-1") {
			t.Errorf("the log is %s", log)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ends := &fake{play: func(int, string) script {
			return script{states: []string{"RUNNING", "CANCELLED"}, reason: "Query cancelled! : Bytes scanned limit was exceeded"}
		}}
		_, err := open(t, ends).Daily(t.Context(), audit.Filter{})
		if !errors.Is(err, athena.ErrScanLimit) || ends.count("StopQueryExecution") != 0 || len(ends.queries) != 1 {
			t.Errorf("the workgroup's limit: Daily = %v, want %v", err, athena.ErrScanLimit)
		}
	})
}

// What it has read is told, for it is what is paid for.
func TestLogsWhatWasScanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, &fake{play: func(int, string) script { s := daily(1); s.scanned = []int64{12345}; return s }})
		if _, err := r.Daily(t.Context(), audit.Filter{SessionID: "not-for-the-log"}); err != nil {
			t.Fatal(err)
		}
		log := r.log.String()
		for _, want := range []string{`"msg":"athena query"`, `"question":"daily"`, `"query_id":"query-1"`, `"scanned_bytes":12345`} {
			if !strings.Contains(log, want) {
				t.Errorf("the log lacks %s: %s", want, log)
			}
		}
		if strings.Contains(log, "not-for-the-log") {
			t.Errorf("the log has a value of the question: %s", log)
		}
	})
}

func TestParallelStatementsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, most := 0, 0
		var mu sync.Mutex
		f := &fake{play: func(int, string) script {
			mu.Lock()
			defer mu.Unlock()
			running++
			most = max(most, running)
			s := daily(1)
			s.states = []string{"RUNNING", "RUNNING", "SUCCEEDED"}
			return s
		}}
		f.refuse = func(op string, _ int) string {
			if op == "GetQueryResults" { // the last call of a statement
				mu.Lock()
				defer mu.Unlock()
				running--
			}
			return ""
		}
		r := open(t, f, func(o *athena.Options) { o.Parallel = 3 })
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := r.Daily(t.Context(), audit.Filter{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if most != 3 || len(f.queries) != 10 {
			t.Errorf("%d of %d queries ran at the same time, want 3 of 10", most, len(f.queries))
		}
	})
}
