package eventdb

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"switchboard/internal/audit"
	"switchboard/internal/audit/audittest"
)

// filled is a file of a few events.
func filled(t *testing.T) *sqlite.Conn {
	t.Helper()
	c, err := sqlite.OpenConn(filepath.Join(t.TempDir(), "events.db"), sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := sqlitex.ExecuteScript(c, Schema(), nil); err != nil {
		t.Fatal(err)
	}
	in, err := NewInserter(c)
	if err != nil {
		t.Fatal(err)
	}
	events := audittest.Generate(5, 300)
	for i := range events {
		if _, err := in.Insert(&events[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.Flush(); err != nil {
		t.Fatal(err)
	}
	return c
}

// Pages without a filter, of a tenant and of a session are read by index: a scan of a large
// table, or a sort of it, would grow with the file.
func TestPagesAreReadByIndex(t *testing.T) {
	c := filled(t)
	page := audit.Page{Limit: 50}
	for name, f := range map[string]audit.Filter{
		"all":     {},
		"path":    {UserPath: "/team/alpha", PathOnly: true},
		"subtree": {UserPath: "/o%"},
		"session": {SessionID: "shared-1", UserPath: "/team", PathOnly: true},
	} {
		q := &question{conn: c, filter: f}
		if err := q.prepare(); err != nil {
			t.Fatal(err)
		}
		if err := q.pageOf(t.Context(), page); err != nil {
			t.Fatal(err)
		}
		for question, s := range map[string]audit.Statement{
			"Threads": q.sql.Dialect.Threads(f, page), "Sessions": q.sql.Dialect.Sessions(f, page), "Log": q.sql.Dialect.Log(f, page),
		} {
			steps := explain(t, c, s)
			large := []string{"SCAN e", "SCAN c", "SCAN t", "SCAN k", "SCAN event", "SCAN event_thread", "SCAN event_cell", "SCAN event_kind"}
			for i, step := range steps {
				if slices.Contains(large, step) {
					t.Errorf("%s(%s) scans a table: %s\n%s", question, name, step, strings.Join(steps, "\n"))
				}
				// Up to here the page is found; after it, its rows are sorted.
				ordered := question != "Log" && name != "session" && i < slices.Index(steps, "SCAN p")
				if ordered && strings.HasPrefix(step, "USE TEMP B-TREE") {
					t.Errorf("%s(%s) sorts all to find a page:\n%s", question, name, strings.Join(steps, "\n"))
				}
			}
		}
	}
}

func explain(t *testing.T, c *sqlite.Conn, s audit.Statement) (steps []string) {
	t.Helper()
	err := sqlitex.ExecuteTransient(c, "EXPLAIN QUERY PLAN "+s.SQL, &sqlitex.ExecOptions{Args: s.Args, ResultFunc: func(stmt *sqlite.Stmt) error {
		steps = append(steps, stmt.ColumnText(3))
		return nil
	}})
	if err != nil {
		t.Fatalf("%s: %v", s.SQL, err)
	}
	return steps
}

// A range is whole days and what is left over, and never more or less than it.
func TestSpan(t *testing.T) {
	day := func(n float64) time.Time { return time.UnixMilli(int64(n * dayMillis)) }
	at := func(n float64) int64 { return int64(n * dayMillis) }
	for _, tt := range []struct {
		from, to time.Time
		want     span
	}{
		{want: span{open: [2]bool{true, true}}},
		{from: day(3), want: span{fromDay: 3, open: [2]bool{false, true}}},
		{to: day(3), want: span{toDay: 3, open: [2]bool{true, false}}},
		{from: day(3), to: day(5), want: span{fromDay: 3, toDay: 5}},
		{from: day(3.5), to: day(5.25), want: span{fromDay: 4, toDay: 5, edges: [][2]int64{{at(3.5), at(4)}, {at(5), at(5.25)}}}},
		{from: day(3.5), to: day(4), want: span{fromDay: 4, toDay: 4, edges: [][2]int64{{at(3.5), at(4)}}}},
		{from: day(3.25), to: day(3.5), want: span{fromDay: 3, toDay: 3, edges: [][2]int64{{at(3.25), at(3.5)}}}},
		{from: day(3.5), want: span{fromDay: 4, open: [2]bool{false, true}, edges: [][2]int64{{at(3.5), at(4)}}}},
		{to: day(3.5), want: span{toDay: 3, open: [2]bool{true, false}, edges: [][2]int64{{at(3), at(3.5)}}}},
		{from: day(5), to: day(3), want: span{fromDay: 5, toDay: 5}},
		{from: day(3.5), to: day(3.5), want: span{fromDay: 3, toDay: 3}},
	} {
		p := plan{f: audit.Filter{From: tt.from, To: tt.to}}
		if diff := cmp.Diff(tt.want, p.span(), cmp.AllowUnexported(span{})); diff != "" {
			t.Errorf("span(%v, %v) (-want +got):\n%s", tt.from.UTC(), tt.to.UTC(), diff)
		}
	}
}
