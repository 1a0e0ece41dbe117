package athena_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/athena"
	"switchboard/internal/audit"
)

// partitions are the ranges of partitions that a statement reads, in its order: that of the
// events, then that of the rest of their threads.
func partitions(t *testing.T, statement string) (list []string) {
	t.Helper()
	one := regexp.MustCompile(`r\.dt = '([^']*)' AND r\.hour >= '([^']*)' AND r\.hour <= '([^']*)'`)
	two := regexp.MustCompile(`r\.dt >= '([^']*)' AND r\.dt <= '([^']*)' AND \(r\.dt > '([^']*)' OR r\.hour >= '([^']*)'\) AND \(r\.dt < '([^']*)' OR r\.hour <= '([^']*)'\)`)
	for _, where := range strings.Split(statement, "FROM routing_events r WHERE ")[1:] {
		if m := one.FindStringSubmatch(where); m != nil && strings.HasPrefix(where, m[0]) {
			list = append(list, fmt.Sprintf("%s/%s-%s/%s", m[1], m[2], m[1], m[3]))
		} else if m := two.FindStringSubmatch(where); m != nil && strings.HasPrefix(where, m[0]) && m[1] == m[3] && m[2] == m[5] {
			list = append(list, fmt.Sprintf("%s/%s-%s/%s", m[1], m[4], m[2], m[6]))
		} else {
			t.Errorf("a table is read without its partitions:\n%s", where)
		}
		if !strings.Contains(where, " AND r.event_id <> ''") {
			t.Errorf("damaged lines are read as events:\n%s", where)
		}
	}
	return list
}

// S-AUD-04: an object lies under the hour in which its first event arrived, which may be
// after or, in an object that was begun before, before the event's own.
func TestSAUD04PartitionsOfARange(t *testing.T) {
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	for _, tt := range []struct {
		from, to string
		want     string
	}{
		{"2026-02-28T00:00:00Z", "2026-03-01T00:00:00Z", "2026-02-27/23-2026-03-01/01"},           // 23:59:58 lies in the next day
		{"2026-03-01T01:00:00+01:00", "2026-03-01T02:00:00+01:00", "2026-02-28/23-2026-03-01/02"}, // 00:00 to 01:00 UTC
		{"2026-02-28T10:00:00Z", "2026-02-28T11:00:00Z", "2026-02-28/09-2026-02-28/12"},
		{"2026-02-28T10:02:00Z", "2026-02-28T10:03:00Z", "2026-02-28/10-2026-02-28/11"},
		{"2026-02-28T10:01:29Z", "2026-02-28T10:58:59Z", "2026-02-28/09-2026-02-28/11"},
		{"2025-12-31T23:30:00Z", "2026-01-01T00:30:00Z", "2025-12-31/23-2026-01-01/01"},
		{"2026-03-05T11:30:00Z", "", "2026-03-05/11-2026-03-05/13"},                     // to now, noon
		{"2026-03-05T11:30:00Z", "2027-01-01T00:00:00Z", "2026-03-05/11-2026-03-05/13"}, // not beyond
		{"2026-03-06T11:30:00Z", "", "2026-03-06/11-2026-03-05/13"},                     // the future: nothing is there
		{"", "2026-02-28T10:00:00Z", "2026-02-20/23-2026-02-28/11"},                     // a week, from a midnight on
		{"", "", "2026-02-25/23-2026-03-05/13"},
	} {
		var f audit.Filter
		if tt.from != "" {
			f.From = at(tt.from)
		}
		if tt.to != "" {
			f.To = at(tt.to)
		}
		for _, statement := range statementsOf(t, func(ctx context.Context, r audit.Reader) error { _, err := r.Daily(ctx, f); return err }) {
			list := partitions(t, statement)
			if len(list) == 0 || list[0] != tt.want || slices.ContainsFunc(list, func(s string) bool { return s != tt.want }) {
				t.Errorf("from %s to %s reads %v, want %s", tt.from, tt.to, list, tt.want)
			}
			for name, bound := range map[string]time.Time{">=": f.From, "<": f.To} {
				if written := strings.Contains(statement, fmt.Sprintf("e.created_at %s %d", name, bound.UnixMilli())); written == bound.IsZero() {
					t.Errorf("from %s to %s: created_at %s is not as asked for:\n%s", tt.from, tt.to, name, statement)
				}
			}
		}
	}
}

func TestNothingIsAskedOfAnEmptyRange(t *testing.T) {
	for _, f := range []audit.Filter{{From: noon(), To: noon()}, {From: noon(), To: noon().Add(-time.Hour)}} {
		r := open(t, &fake{})
		threads, err := r.Threads(t.Context(), f, audit.Page{Limit: 50})
		if err != nil || threads.Total != 0 || !threads.Complete || len(r.fake.calls) != 0 {
			t.Errorf("Threads of an empty range = %+v, %v after %d calls", threads, err, len(r.fake.calls))
		}
	}
}

func TestCoverage(t *testing.T) {
	asOf := noon().Add(-time.Minute - 30*time.Second)
	for _, tt := range []struct {
		filter audit.Filter
		edit   func(*athena.Options)
		want   audit.Coverage
	}{
		{audit.Filter{From: noon().Add(-time.Hour)}, nil, audit.Coverage{AsOf: asOf}},
		{audit.Filter{From: noon().Add(-time.Hour), To: noon()}, nil, audit.Coverage{AsOf: asOf}},
		{audit.Filter{}, nil, audit.Coverage{AsOf: asOf, Since: time.Date(2026, 2, 26, 0, 0, 0, 0, time.UTC)}},
		{audit.Filter{}, func(o *athena.Options) { o.Lookback = 30 * time.Hour }, audit.Coverage{AsOf: asOf, Since: time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)}},
		{audit.Filter{To: noon().Add(-25 * time.Hour)}, nil, audit.Coverage{AsOf: asOf, Since: time.Date(2026, 2, 25, 0, 0, 0, 0, time.UTC)}},
		{audit.Filter{From: noon()}, func(o *athena.Options) { o.Buffer, o.Delay = 15*time.Minute, time.Minute }, audit.Coverage{AsOf: noon().Add(-16 * time.Minute)}},
	} {
		synctest.Test(t, func(t *testing.T) {
			edit := tt.edit
			if edit == nil {
				edit = func(*athena.Options) {}
			}
			r := open(t, &fake{}, edit)
			summary, err := r.Summary(t.Context(), tt.filter)
			tt.want.Complete, tt.want.Uncounted = true, true
			if diff := cmp.Diff(tt.want, summary.Coverage); diff != "" || err != nil {
				t.Errorf("Summary(%+v): coverage, %v (-want +got):\n%s", tt.filter, err, diff)
			}
			// What is older than Since is left out also where a partition has it.
			if since := tt.want.Since; !since.IsZero() && !strings.Contains(r.fake.statements()[0], fmt.Sprint("e.created_at >= ", since.UnixMilli())) {
				t.Errorf("Summary(%+v) may have events from before %v", tt.filter, since)
			}
		})
	}
}

// windows is what a pin says of a session.
func windows(from, to time.Time) func(*athena.Options) {
	return func(o *athena.Options) {
		o.Window = func(_ context.Context, userPath, id string) (time.Time, time.Time, bool) {
			return from, to, id == "s" && userPath == "/a"
		}
	}
}

func TestASessionsPartitionsAreItsPins(t *testing.T) {
	day := func(d, hour int) time.Time { return time.Date(2026, 3, d, hour, 30, 0, 0, time.UTC) }
	pin := windows(day(4, 9), day(4, 15))
	for _, tt := range []struct {
		name   string
		filter audit.Filter
		want   string // of the events
		whole  string // of the thread
	}{
		{"one session", audit.Filter{SessionID: "s", UserPath: "/a", PathOnly: true}, "2026-03-04/08-2026-03-05/13", "2026-03-04/08-2026-03-05/13"},
		{"and from", audit.Filter{SessionID: "s", UserPath: "/a", PathOnly: true, From: day(5, 10)}, "2026-03-05/10-2026-03-05/13", "2026-03-04/08-2026-03-05/13"},
		{"and to", audit.Filter{SessionID: "s", UserPath: "/a", PathOnly: true, To: day(4, 10)}, "2026-03-04/08-2026-03-04/11", "2026-03-04/08-2026-03-05/13"},
		{"another time", audit.Filter{SessionID: "s", UserPath: "/a", PathOnly: true, From: day(1, 0), To: day(1, 2)}, "2026-03-04/08-2026-03-04/09", "2026-03-04/08-2026-03-05/13"},
		{"of any tenant", audit.Filter{SessionID: "s", UserPath: "/a"}, "2026-02-25/23-2026-03-05/13", "2026-02-24/23-2026-03-05/13"},
		{"unknown", audit.Filter{SessionID: "t", UserPath: "/a", PathOnly: true}, "2026-02-25/23-2026-03-05/13", "2026-02-24/23-2026-03-05/13"},
	} {
		got := statementsOf(t, func(ctx context.Context, r audit.Reader) error {
			_, err := r.Threads(ctx, tt.filter, audit.Page{Limit: 50})
			return err
		}, pin)
		if len(got) != 1 {
			t.Fatalf("%s: %d statements", tt.name, len(got))
		}
		list := partitions(t, got[0])
		slices.Sort(list)
		want := []string{tt.want, tt.whole}
		slices.Sort(want)
		if diff := cmp.Diff(slices.Compact(want), slices.Compact(list)); diff != "" {
			t.Errorf("%s: partitions (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A thread's count is its whole session's: a session that began before what was looked at
// is looked for from there on.
func TestSAUD02CountsReachToASessionsBegin(t *testing.T) {
	columns := append([]string{"total", "user_path", "session_id", "request_count"}, audit.EventColumns()...)
	page := func(count int) script {
		return script{columns: columns, rows: [][]any{
			eventRow(map[string]any{"event_id": "e2", "session_id": "s", "user_path": "/a"}, 2, "/a", "s", count),
			eventRow(map[string]any{"event_id": "e1"}, 2, "", "", 1),
		}}
	}
	f := audit.Filter{From: noon().Add(-time.Hour)}
	for _, tt := range []struct {
		name       string
		from, to   time.Time
		statements int
		whole      string // of the last statement
	}{
		{"within", noon().Add(-20 * time.Hour), noon(), 1, "2026-03-04/10-2026-03-05/13"},
		{"before", noon().Add(-49 * time.Hour), noon(), 2, "2026-03-03/10-2026-03-05/13"},
		{"long before", noon().Add(-1000 * time.Hour), noon(), 2, "2026-02-26/11-2026-03-05/13"}, // no further than a week
		{"unknown", time.Time{}, time.Time{}, 1, "2026-03-04/10-2026-03-05/13"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := open(t, &fake{play: func(n int, _ string) script { return page(n) }}, windows(tt.from, tt.to))
			got, err := r.Threads(t.Context(), f, audit.Page{Limit: 50})
			if err != nil || len(got.Sessions) != 2 || got.Sessions[0].RequestCount != int64(tt.statements) || got.Total != 2 || !got.Complete {
				t.Errorf("%s: Threads = %+v, %v, want two sessions, as the statement %d says", tt.name, got, err, tt.statements)
			}
			statements := r.fake.statements()
			if len(statements) != tt.statements || !slices.Contains(partitions(t, statements[len(statements)-1]), tt.whole) {
				t.Errorf("%s: %d statements, the last over %v, want %d over %s", tt.name, len(statements),
					partitions(t, statements[len(statements)-1]), tt.statements, tt.whole)
			}
		})
	}
}
