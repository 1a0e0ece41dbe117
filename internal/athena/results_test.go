package athena_test

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/audit"
	"switchboard/internal/record"
)

func TestResultsComeInPages(t *testing.T) {
	for _, page := range []int{1, 2, 3, 4, 7, 1000} {
		synctest.Test(t, func(t *testing.T) {
			r := open(t, &fake{play: func(int, string) script { s := daily(1, 2, 3, 4, 5, 6, 7); s.page = page; return s }})
			days, err := r.Daily(t.Context(), audit.Filter{})
			var got []int64
			for _, day := range days.Days {
				got = append(got, day.Requests)
			}
			if diff := cmp.Diff([]int64{1, 2, 3, 4, 5, 6, 7}, got); diff != "" || err != nil {
				t.Errorf("pages of %d: requests per day (-want +got), %v:\n%s", page, err, diff)
			}
		})
	}
}

// eventRow is what a statement yields of an event, after the columns before it.
func eventRow(values map[string]any, before ...any) []any {
	row := before
	for _, column := range audit.EventColumns() {
		row = append(row, values[column])
	}
	return row
}

func number(n int64) *int64 { return &n }

// NULL is unknown, which is neither 0 nor an empty text's length.
func TestUnknownStaysUnknown(t *testing.T) {
	columns := append([]string{"total"}, audit.EventColumns()...)
	rows := [][]any{
		eventRow(map[string]any{
			"event_id": "e1", "created_at": int64(math.MaxInt64), "session_id": "a\n'b\" 会", "input_tokens": 0, "cost_nano_usd": int64(math.MinInt64),
			"switched": 1, "stream": 0, "response_status": 200, "latency_ms": 5,
			"attempts":           `[{"provider":"p","key_id":null,"model":"m","status":null,"error":"","latency_ms":3}]`,
			"degraded_providers": `["x","\"y\""]`,
		}, 2),
		eventRow(map[string]any{"event_id": "e2", "created_at": 1, "switched": 0, "stream": 1, "response_status": 0, "latency_ms": 0, "attempts": "null", "outcome": ""}, 2),
	}
	want := []record.Event{
		{
			EventID: "e1", CreatedAt: math.MaxInt64, SessionID: "a\n'b\" 会", InputTokens: number(0), CostNanoUSD: number(math.MinInt64),
			Switched: true, ResponseStatus: 200, LatencyMillis: 5,
			Attempts:          []record.Attempt{{Provider: "p", Model: "m", LatencyMillis: 3}},
			DegradedProviders: []string{"x", `"y"`},
		},
		{EventID: "e2", CreatedAt: 1, Stream: true},
	}
	synctest.Test(t, func(t *testing.T) {
		r := open(t, &fake{play: func(int, string) script { return script{columns: columns, rows: rows} }})
		log, err := r.Log(t.Context(), audit.Filter{}, audit.Page{Limit: 50})
		if diff := cmp.Diff(want, log.Entries); diff != "" || err != nil || log.Total != 2 {
			t.Errorf("Log = total %d, %v (-want +got):\n%s", log.Total, err, diff)
		}
	})
}

func TestResultsThatAreNone(t *testing.T) {
	columns := append([]string{"day"}, usageColumns()...)
	for name, row := range map[string][]any{
		"text for a number":  {"2026-01-01", "many", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"a decimal":          {"2026-01-01", "1.5", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"a number too large": {"2026-01-01", "9223372036854775808", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"a column too few":   {"2026-01-01", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"a column too many":  {"2026-01-01", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := open(t, &fake{play: func(int, string) script { return script{columns: columns, rows: [][]any{row}} }})
			if days, err := r.Daily(t.Context(), audit.Filter{}); err == nil || strings.Contains(err.Error(), "many") {
				t.Errorf("%s: Daily = %+v, %v, want an error without the value", name, days.Days, err)
			}
		})
	}
}
