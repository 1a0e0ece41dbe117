package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"switchboard/internal/audit"
	"switchboard/internal/audit/audittest"
	"switchboard/internal/record"
)

// flatTable is a table of deliveries, as Athena sees the objects.
func flatTable() audit.Flat {
	return audit.Flat{
		Table: "deliveries",
		Key:   "PRINTF('%019d', e.created_at) || e.event_id",
		Day:   "DATE(e.created_at / 1000, 'unixepoch')",
	}
}

// The questions hold their contract over a table that has no sums and every delivery, with
// values written into the text. (Bound, eventdb proves them.)
func TestFlatKeepsTheContract(t *testing.T) {
	dialect := audit.Dialect{Literals: true, Relations: flatTable().Relations}
	const deliveries = 400 // there is no index
	audittest.RunWith(t, deliveries, func(t *testing.T, events []record.Event) audit.Reader {
		return &flatReader{flatConn(t, events), dialect}
	})
}

// flatConn puts events into a table as a JSON reader would.
func flatConn(t *testing.T, events []record.Event) chan *sqlite.Conn {
	t.Helper()
	c, err := sqlite.OpenConn(filepath.Join(t.TempDir(), "flat.db"), sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	// The function that Trino and DuckDB have under this name.
	err = c.CreateFunction("chr", &sqlite.FunctionImpl{NArgs: 1, Deterministic: true, Scalar: func(_ sqlite.Context, args []sqlite.Value) (sqlite.Value, error) {
		return sqlite.TextValue(string(rune(args[0].Int64()))), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	columns := audit.EventColumns()
	execute(t, c, "CREATE TABLE deliveries ("+strings.Join(columns, ", ")+")")
	execute(t, c, "BEGIN")
	insert := c.Prep("INSERT INTO deliveries SELECT " + extract(columns))
	for i := range events {
		text, err := json.Marshal(&events[i])
		if err != nil {
			t.Fatal(err)
		}
		insert.BindText(1, string(text))
		if _, err := insert.Step(); err != nil {
			t.Fatal(err)
		}
		insert.Reset()
	}
	execute(t, c, "COMMIT")
	lent := make(chan *sqlite.Conn, 1)
	lent <- c
	return lent
}

// extract reads the columns from JSON; what is absent is NULL.
func extract(columns []string) string {
	list := make([]string, len(columns))
	for i, column := range columns {
		list[i] = "?1 ->> '$." + column + "'"
	}
	return strings.Join(list, ", ")
}

func execute(t *testing.T, c *sqlite.Conn, sql string) {
	t.Helper()
	if err := sqlitex.ExecuteTransient(c, sql, nil); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

type flatReader struct {
	lent    chan *sqlite.Conn
	dialect audit.Dialect
}

func (r *flatReader) sql() audit.SQL {
	return audit.SQL{Dialect: r.dialect, Rows: func(ctx context.Context, s audit.Statement, each func(audit.Row) error) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := <-r.lent
		defer func() { r.lent <- c }()
		return sqlitex.ExecuteTransient(c, s.SQL, &sqlitex.ExecOptions{Args: s.Args, ResultFunc: func(stmt *sqlite.Stmt) error {
			return each(row{stmt})
		}})
	}}
}

type row struct{ stmt *sqlite.Stmt }

func (r row) Text(col int) string { return r.stmt.ColumnText(col) }
func (r row) Int(col int) (int64, bool) {
	return r.stmt.ColumnInt64(col), !r.stmt.ColumnIsNull(col)
}

func covered() audit.Coverage { return audit.Coverage{AsOf: time.Unix(1, 0), Complete: true} }

func (r *flatReader) Threads(ctx context.Context, f audit.Filter, p audit.Page) (audit.Threads, error) {
	answer, err := r.sql().Threads(ctx, f, p)
	answer.Coverage = covered()
	return answer, err
}

func (r *flatReader) Log(ctx context.Context, f audit.Filter, p audit.Page) (audit.Log, error) {
	answer, err := r.sql().Log(ctx, f, p)
	answer.Coverage = covered()
	return answer, err
}

func (r *flatReader) Sessions(ctx context.Context, f audit.Filter, p audit.Page) (audit.SessionUsages, error) {
	answer, err := r.sql().Sessions(ctx, f, p)
	answer.Coverage = covered()
	return answer, err
}

func (r *flatReader) Summary(ctx context.Context, f audit.Filter) (audit.Summary, error) {
	answer, err := r.sql().Summary(ctx, f)
	answer.Coverage = covered()
	return answer, err
}

func (r *flatReader) Daily(ctx context.Context, f audit.Filter) (audit.Days, error) {
	answer, err := r.sql().Daily(ctx, f)
	answer.Coverage = covered()
	return answer, err
}

// golden are questions whose text is kept, by name.
func golden(d audit.Dialect) string {
	f := audit.Filter{
		SessionID: "it's; -- ?1", UserPath: "/a", Model: "m", Provider: "p", Status: 429, Outcome: "refused", Reason: "rank",
		From: time.UnixMilli(1), To: time.UnixMilli(2000),
	}
	page := audit.Page{Limit: 50, Offset: 100}
	texts := map[string]audit.Statement{
		"Threads": d.Threads(audit.Filter{}, page), "ThreadsTotal": d.ThreadsTotal(audit.Filter{PathOnly: true}),
		"Threads, all filters": d.Threads(f, page), "Log": d.Log(f, page), "LogTotal": d.LogTotal(f),
		"Sessions": d.Sessions(f, page), "SessionsTotal": d.SessionsTotal(audit.Filter{UserPath: "/a/"}),
		"Summary": d.Summary(audit.Filter{Status: 200}), "Daily": d.Daily(audit.Filter{Model: "smart"}),
	}
	var names []string
	for name := range texts {
		names = append(names, name)
	}
	sort.Strings(names)
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "-- %s %q --\n%s\n", name, texts[name].Args, texts[name].SQL)
	}
	return b.String()
}
