package admin

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/audit"
	"switchboard/internal/route"
)

func paged(raw string) query { return parseQuery(raw, "limit", "offset", "until", "format") }

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return when.UTC()
}

func TestParseQuery(t *testing.T) {
	first := audit.Page{Limit: 50}
	for _, tt := range []struct {
		raw    string
		filter audit.Filter
		page   audit.Page
	}{
		{"", audit.Filter{}, first},
		{"session_id=&user_path=&model=&provider=&status=&outcome=&reason=&from=&to=&format=", audit.Filter{}, first},
		{"session_id=s1&user_path=/team&model=m&provider=A", audit.Filter{SessionID: "s1", UserPath: "/team", Model: "m", Provider: "A"}, first},
		{"user_path=/team/", audit.Filter{UserPath: "/team"}, first},
		{"user_path=/", audit.Filter{}, first},
		{"session_id=s1&user_path_exact=true", audit.Filter{SessionID: "s1", PathOnly: true}, first},
		{"user_path_exact=false", audit.Filter{}, first},
		{"status=429&outcome=client_cancelled&reason=round_robin", audit.Filter{Status: 429, Outcome: "client_cancelled", Reason: "round_robin"}, first},
		{"limit=1&offset=0", audit.Filter{}, audit.Page{Limit: 1}},
		{"limit=200&offset=4000", audit.Filter{}, audit.Page{Limit: 200, Offset: 4000}},
		{"limit=050", audit.Filter{}, first},
		{"from=2026-02-28&to=2026-02-28", audit.Filter{From: at(t, "2026-02-28T00:00:00Z"), To: at(t, "2026-03-01T00:00:00Z")}, first},
		{"to=2028-02-29", audit.Filter{To: at(t, "2028-03-01T00:00:00Z")}, first},
		{"to=2026-12-31", audit.Filter{To: at(t, "2027-01-01T00:00:00Z")}, first},
		{"from=2026-03-01T00:00:00.0001Z", audit.Filter{From: at(t, "2026-03-01T00:00:00.001Z")}, first},
		{"from=2026-03-01T23:30:00-01:00&to=2026-03-02", audit.Filter{From: at(t, "2026-03-02T00:30:00Z"), To: at(t, "2026-03-03T00:00:00Z")}, first},
		{"from=2026-03-01T05:00:00Z&to=2026-03-01T05:00:00Z", audit.Filter{From: at(t, "2026-03-01T05:00:00Z"), To: at(t, "2026-03-01T05:00:00Z")}, first},
	} {
		q := paged(tt.raw)
		if diff := cmp.Diff(tt.filter, q.Filter); diff != "" || q.Page != tt.page || q.err() != nil {
			t.Errorf("parseQuery(%q): page %v, want %v, faults %v (-want +got):\n%s", tt.raw, q.Page, tt.page, q.Faults, diff)
		}
	}
}

func TestParseQueryRefuses(t *testing.T) {
	for _, tt := range []struct {
		raw, param string
		want       []string
	}{
		// S-AUD-03
		{"limit=0", "limit", []string{`"0"`, "1 to 200"}},
		{"limit=201", "limit", []string{`"201"`, "1 to 200"}},
		{"limit=-1", "limit", []string{"1 to 200"}},
		{"limit=ten", "limit", []string{`"ten"`, "1 to 200"}},
		{"limit=", "limit", []string{"1 to 200"}},
		{"limit=1e2", "limit", []string{"1 to 200"}},
		{"limit=%2B5", "limit", []string{"1 to 200"}},
		{"limit=99999999999999999999", "limit", []string{"1 to 200"}},
		{"limit=10&limit=20", "limit", []string{"more than once"}},
		{"offset=-1", "offset", []string{"0 to 2147483647"}},
		{"offset=x", "offset", []string{"0 to 2147483647"}},
		{"offset=2147483648", "offset", []string{"0 to 2147483647"}},
		// S-AUD-04
		{"from=2026-03-02&to=2026-03-01", "from", []string{"after to"}},
		{"from=2026-03-01T02:00:00Z&to=2026-03-01T01:00:00Z", "from", []string{"after to"}},
		{"from=2026-03-01T02:00:00Z&to=2026-03-01T02:30:00%2B01:00", "from", []string{"after to"}},
		{"from=2026-03-02T00:00:00Z&to=2026-03-01", "from", []string{"after to"}},
		{"to=tomorrow", "to", []string{`"tomorrow"`, "UTC day"}},
		{"from=2026-02-30", "from", []string{"UTC day"}},
		{"from=2026-3-1", "from", []string{"UTC day"}},
		{"from=2026-03-01T00:00:00", "from", []string{"UTC day"}},
		{"from=1772323200", "from", []string{"UTC day"}},
		{"from=0000-01-01", "from", []string{"UTC day"}},
		{"from=0001-01-01T00:00:00%2B01:00", "from", []string{"UTC day"}},
		// the rest
		{"status=99", "status", []string{"100 to 599"}},
		{"status=600", "status", []string{"100 to 599"}},
		{"status=4xx", "status", []string{`"4xx"`, "100 to 599"}},
		{"outcome=fine", "outcome", []string{`"fine"`, "client_cancelled", "refused"}},
		{"reason=luck", "reason", []string{`"luck"`, "affinity", "unavailable"}},
		{"format=xml", "format", []string{"json, csv"}},
		{"user_path_exact=yes", "user_path_exact", []string{"true, false"}},
		{"sesion_id=s1", "sesion_id", []string{"not a parameter", "session_id", "offset"}},
		{"Session_ID=s1", "Session_ID", []string{"not a parameter"}},
		{"session_id=a&session_id=b", "session_id", []string{"more than once"}},
		{"session_id=%ff", "session_id", []string{"text"}},
		{"session_id=a%00b", "session_id", []string{"control"}},
		{"session_id=" + strings.Repeat("a", maxValue+1), "session_id", []string{"1024"}},
		{"session_id=%zz", "query", []string{"well formed"}},
		{"session_id=a;b", "query", []string{"well formed"}},
		{"<script>=1", "<script>", []string{"not a parameter"}},
		{"%0d%0aX=1", "\r\nX", []string{`"\r\nX"`}},
		{"limit=0&to=tomorrow&x=1", "limit", []string{"limit:", "to:", "x:"}},
	} {
		q := paged(tt.raw)
		err := q.err()
		if err == nil || err.Status != 400 || err.Param != tt.param {
			t.Errorf("parseQuery(%q) = %+v, want 400 for %q", tt.raw, err, tt.param)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Message, want) {
				t.Errorf("parseQuery(%q): %q does not say %q", tt.raw, err.Message, want)
			}
		}
	}
	if q := parseQuery("limit=5"); q.err() == nil {
		t.Error("limit is a parameter where there are no pages")
	}
}

// S-AUD-04: offsets are honoured, also when their "+" was sent as it is.
func TestSAUD04Offsets(t *testing.T) {
	want := audit.Filter{From: at(t, "2026-03-01T00:00:00Z"), To: at(t, "2026-03-01T01:00:00Z")}
	for _, raw := range []string{
		"from=2026-03-01T01:00:00%2B01:00&to=2026-03-01T02:00:00%2B01:00",
		"from=2026-03-01T01:00:00+01:00&to=2026-03-01T02:00:00+01:00",
		"from=2026-02-28T19:00:00-05:00&to=2026-02-28T20:00:00-05:00",
		"from=2026-03-01T05:45:00%2B05:45&to=2026-03-01T01:00:00Z",
	} {
		if q := paged(raw); q.Filter != want || q.err() != nil {
			t.Errorf("parseQuery(%q) = %v, %v", raw, q.Filter, q.Faults)
		}
	}
}

// S-AUD-05: an id is text, and comes through as the same characters.
func TestSAUD05IDs(t *testing.T) {
	for _, id := range []string{"host/BLAH|x", "a%2Fb", "a/b", "a+b c&d=e#f", "会话-1", "../admin", " a ", "=1", "%", "a;b", "'; DROP TABLE x;--", `"`, "<b>"} {
		if q := paged("session_id=" + url.QueryEscape(id)); q.SessionID != id || q.err() != nil {
			t.Errorf("session_id %q came through as %q, %v", id, q.SessionID, q.Faults)
		}
	}
}

// reasons must know what the data plane writes.
func TestReasons(t *testing.T) {
	for _, reason := range []string{
		route.ReasonAffinity, route.ReasonRank, route.ReasonRoundRobin, route.ReasonCost, route.ReasonFailover,
		route.ReasonAdaptive, route.ReasonExplicit, route.ReasonFallback, route.ReasonUnavailable,
	} {
		if !slices.Contains(reasons(), reason) {
			t.Errorf("reason %q cannot be asked for", reason)
		}
	}
}

func FuzzParseQuery(f *testing.F) {
	f.Add("from=2026-03-01&to=2026-03-02&limit=5")
	f.Add("session_id=%ff&x=1")
	f.Fuzz(func(t *testing.T, raw string) {
		q := paged(raw)
		if q.err() != nil {
			return
		}
		if q.Limit < 1 || q.Limit > audit.MaxLimit || q.Offset < 0 || !q.To.IsZero() && q.From.After(q.To) {
			t.Errorf("parseQuery(%q) = %+v", raw, q)
		}
	})
}

// S-AUD-03: further pages see what the first one saw, whatever arrives meanwhile.
func TestSAUD03UntilKeepsPagesStill(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	first := paged("limit=50")
	until := first.freeze(noon)
	next := paged(fmt.Sprintf("limit=50&offset=50&until=%d", until))
	if err := next.err(); err != nil || !next.To.Equal(noon.Add(time.Millisecond)) || next.freeze(noon.Add(time.Hour)) != until {
		t.Errorf("next page: to %v, until %d, %v; want the first page's %d", next.To, next.freeze(noon), err, until)
	}
	narrow := paged(fmt.Sprintf("to=2026-02-28&until=%d", until))
	if want := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC); !narrow.To.Equal(want) {
		t.Errorf("to = %v, want the filter's own %v", narrow.To, want)
	}
	for _, bad := range []string{"until=x", "until=-1", "until=1.5"} {
		if q := paged(bad); q.err() == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
