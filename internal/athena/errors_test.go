package athena_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"switchboard/internal/athena"
	"switchboard/internal/audit"
)

func TestFailedQueries(t *testing.T) {
	for reason, want := range map[string]string{
		"":                 "run of query query-1: failed",
		"GENERIC_INTERNAL": "run of query query-1: failed: GENERIC_INTERNAL",
		"COLUMN_NOT_FOUND: line 2:8: Column 'key_id' cannot be resolved or requester is not authorized": "run of query query-1: failed: " +
			"COLUMN_NOT_FOUND: line 2:8: Column 'key_id' cannot be resolved or requester is not authorized",
		"INVALID_CAST_ARGUMENT: Cannot cast 'my-secret' to INT":             "run of query query-1: failed: INVALID_CAST_ARGUMENT: Cannot cast '…' to INT",
		"mismatched input 'it''s my-secret'. Expecting: ')'":                "run of query query-1: failed: mismatched input '…'",
		"Column 'dt' near \"my-secret\": 'my-secret' and `my-secret` there": "run of query query-1: failed: Column 'dt' near '…' there",
		"'my-secret' first":                  "run of query query-1: failed: '…' first",
		"an open 'my-secret":                 "run of query query-1: failed: an open '…'",
		"two\nlines\x00\tand \x7f more":      "run of query query-1: failed: two lines  and   more",
		"'my-secret' \"or 'my-secret' twice": "run of query query-1: failed: '…' twice",
		strings.Repeat("long ", 100):         "run of query query-1: failed: " + strings.Repeat("long ", 60) + "…",
	} {
		synctest.Test(t, func(t *testing.T) {
			r := open(t, &fake{play: func(int, string) script { return script{states: []string{"RUNNING", "FAILED"}, reason: reason} }})
			_, err := r.Daily(t.Context(), audit.Filter{SessionID: "my-secret"})
			var failed *athena.QueryError
			if !errors.As(err, &failed) || failed.Error() != want || failed.QueryID != "query-1" || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("reason %q: Daily = %v, want %s", reason, err, want)
			}
			if strings.Contains(r.log.String(), "my-secret") || !strings.Contains(r.log.String(), "query-1") {
				t.Errorf("the log is %s", r.log)
			}
			if len(r.fake.queries) != 1 || r.fake.count("StopQueryExecution") != 0 {
				t.Errorf("a query that failed for good was run %d times, stopped %d times", len(r.fake.queries), r.fake.count("StopQueryExecution"))
			}
		})
	}
}

func TestFailureThatMayPass(t *testing.T) {
	fail := script{states: []string{"FAILED"}, reason: "Query exhausted resources at this scale factor", retryable: true}
	synctest.Test(t, func(t *testing.T) {
		once := &fake{play: func(n int, _ string) script {
			if n == 1 {
				return fail
			}
			return daily(3)
		}}
		days, err := open(t, once).Daily(t.Context(), audit.Filter{})
		if err != nil || len(days.Days) != 1 {
			t.Errorf("Daily after one failure = %v, %v, want a day", days.Days, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		always := &fake{play: func(int, string) script { return fail }}
		if _, err := open(t, always).Daily(t.Context(), audit.Filter{}); err == nil || len(always.queries) != 2 {
			t.Errorf("Daily = %v after %d queries, want an error after 2", err, len(always.queries))
		}
	})
}

func TestRefusedCalls(t *testing.T) {
	for _, op := range []string{"StartQueryExecution", "GetQueryExecution", "GetQueryResults"} {
		synctest.Test(t, func(t *testing.T) {
			r := open(t, &fake{refuse: func(called string, _ int) string { return map[string]string{op: "InvalidRequestException"}[called] }})
			_, err := r.Daily(t.Context(), audit.Filter{})
			if err == nil || !strings.Contains(err.Error(), "InvalidRequestException: line 1:2: no '…' here") || errors.Is(err, athena.ErrThrottled) {
				t.Errorf("%s refused: Daily = %v", op, err)
			}
			if r.fake.count(op) != 1 {
				t.Errorf("%s was called %d times", op, r.fake.count(op))
			}
		})
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []athena.Options{
		{},
		{Database: "d"},
		{Workgroup: "w"},
		{Database: "d", Workgroup: "w", Table: "a b"},
		{Database: "d", Workgroup: "w", Table: "1a"},
		{Database: "d", Workgroup: "w", Table: "a;drop"},
	} {
		if r, err := athena.New(athena.NewClient(config(&fake{})), o); err == nil {
			t.Errorf("New(%+v) = %v, want an error", o, r)
		}
	}
}
