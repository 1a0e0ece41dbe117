package eventdb

import (
	"context"
	"fmt"

	"zombiezen.com/go/sqlite"

	"switchboard/internal/audit"
)

// Reads lends a connection of its own to do, and returns do's error. It may wait until ctx
// ends; the context it hands to do may end earlier.
type Reads func(ctx context.Context, do func(ctx context.Context, c *sqlite.Conn) error) error

// Reader answers audit questions from the tables of Schema. An answer is of one state of
// the file. It holds no connection.
type Reader struct {
	reads    Reads
	coverage func(context.Context, audit.Filter) (audit.Coverage, error)
}

var _ audit.Reader = (*Reader)(nil)

// NewReader reads over the connections that reads lends. It asks for coverage, which may
// bring the tables up to date for the filter, before it reads.
func NewReader(reads Reads, coverage func(context.Context, audit.Filter) (audit.Coverage, error)) *Reader {
	return &Reader{reads: reads, coverage: coverage}
}

// Threads implements audit.Reader.
func (r *Reader) Threads(ctx context.Context, f audit.Filter, p audit.Page) (audit.Threads, error) {
	var answer audit.Threads
	err := r.ask(ctx, "threads", f, &answer.Coverage, func(q *question) error {
		err := q.rows(q.dialect.Threads(f, p), func(row row) error {
			latest, err := audit.ScanEvent(row, 4)
			count, _ := row.Int(3)
			answer.Sessions = append(answer.Sessions, audit.Thread{
				UserPath: row.Text(1), SessionID: row.Text(2), RequestCount: count, Latest: latest,
			})
			answer.Total = row.n(0)
			return err
		})
		if err != nil {
			return err
		}
		return q.total(&answer.Total, q.plan.threads, p, q.dialect.ThreadsTotal)
	})
	return answer, err
}

// Log implements audit.Reader.
func (r *Reader) Log(ctx context.Context, f audit.Filter, p audit.Page) (audit.Log, error) {
	var answer audit.Log
	err := r.ask(ctx, "log", f, &answer.Coverage, func(q *question) error {
		// How many there are says how to find the newest.
		if err := q.total(&answer.Total, q.plan.events, audit.Page{}, q.dialect.LogTotal); err != nil {
			return err
		}
		if err := q.pageOf(p, answer.Total); err != nil {
			return err
		}
		return q.rows(q.dialect.Log(f, p), func(row row) error {
			event, err := audit.ScanEvent(row, 1)
			answer.Entries = append(answer.Entries, event)
			return err
		})
	})
	return answer, err
}

// Sessions implements audit.Reader.
func (r *Reader) Sessions(ctx context.Context, f audit.Filter, p audit.Page) (audit.SessionUsages, error) {
	var answer audit.SessionUsages
	err := r.ask(ctx, "sessions", f, &answer.Coverage, func(q *question) error {
		err := q.rows(q.dialect.Sessions(f, p), func(row row) error {
			answer.Entries = append(answer.Entries, audit.SessionUsage{
				UserPath: row.Text(1), SessionID: row.Text(2), LastUsedAt: audit.TimeOfKey(row.Text(3)),
				Usage: audit.ScanUsage(row, 4),
			})
			answer.Total = row.n(0)
			return nil
		})
		if err != nil {
			return err
		}
		return q.total(&answer.Total, q.plan.sessions, p, q.dialect.SessionsTotal)
	})
	return answer, err
}

// Summary implements audit.Reader.
func (r *Reader) Summary(ctx context.Context, f audit.Filter) (audit.Summary, error) {
	var answer audit.Summary
	err := r.ask(ctx, "summary", f, &answer.Coverage, func(q *question) error {
		return q.rows(q.dialect.Summary(f), func(row row) error {
			answer.Sessions = row.n(0)
			group := audit.Group{Model: row.Text(1), Provider: row.Text(2), Usage: audit.ScanUsage(row, 3)}
			answer.Groups = append(answer.Groups, group)
			answer.Usage.Add(group.Usage)
			return nil
		})
	})
	return answer, err
}

// Daily implements audit.Reader.
func (r *Reader) Daily(ctx context.Context, f audit.Filter) (audit.Days, error) {
	var answer audit.Days
	err := r.ask(ctx, "daily", f, &answer.Coverage, func(q *question) error {
		return q.rows(q.dialect.Daily(f), func(row row) error {
			answer.Days = append(answer.Days, audit.Day{Date: row.Text(0), Usage: audit.ScanUsage(row, 1)})
			return nil
		})
	})
	return answer, err
}

// question is one that is being answered, over one connection and in one transaction.
type question struct {
	conn    *sqlite.Conn
	filter  audit.Filter
	plan    plan
	dialect audit.Dialect
}

func (r *Reader) ask(ctx context.Context, name string, f audit.Filter, coverage *audit.Coverage, answer func(*question) error) error {
	var err error
	if *coverage, err = r.coverage(ctx, f); err == nil {
		err = r.reads(ctx, func(ctx context.Context, c *sqlite.Conn) error {
			before := c.SetInterrupt(ctx.Done())
			defer c.SetInterrupt(before)
			return snapshot(c, func() error {
				q := &question{conn: c, filter: f}
				if err := q.prepare(); err != nil {
					return err
				}
				return answer(q)
			})
		})
	}
	if err == nil {
		return nil
	}
	if cause := ctx.Err(); cause != nil {
		err = cause
	}
	return fmt.Errorf("eventdb: %s: %w", name, err)
}

// snapshot runs do in a read transaction: all that it reads is of one state.
func snapshot(c *sqlite.Conn, do func() error) error {
	if err := execute(c, "BEGIN"); err != nil {
		return err
	}
	err := do()
	c.SetInterrupt(nil) // the end must not be refused
	if end := execute(c, "ROLLBACK"); err == nil {
		err = end
	}
	return err
}

// total finds how many rows there are where the page's could not say: when they are counted
// already, or when a page beyond the end has none.
func (q *question) total(total *int64, counted int64, p audit.Page, statement func(audit.Filter) audit.Statement) error {
	switch {
	case counted >= 0:
		*total = counted
	case *total == 0 && (p.Offset > 0 || p.Limit == 0):
		return q.rows(statement(q.filter), func(row row) error {
			*total = row.n(0)
			return nil
		})
	}
	return nil
}

// rows runs one statement.
func (q *question) rows(s audit.Statement, each func(row) error) error {
	stmt, _, err := q.conn.PrepareTransient(s.SQL)
	if err != nil {
		return err
	}
	defer stmt.Finalize()
	for i, arg := range s.Args {
		switch value := arg.(type) {
		case string:
			stmt.BindText(1+i, value)
		case int64:
			stmt.BindInt64(1+i, value)
		}
	}
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return err
		}
		if err := each(row{stmt}); err != nil {
			return err
		}
	}
}

func execute(c *sqlite.Conn, sql string) error {
	stmt, err := c.Prepare(sql)
	if err != nil {
		return err
	}
	return run(stmt)
}

// row is a statement's row as audit.Row.
type row struct{ stmt *sqlite.Stmt }

func (r row) Text(col int) string { return r.stmt.ColumnText(col) }

func (r row) Int(col int) (n int64, known bool) {
	if r.stmt.ColumnType(col) == sqlite.TypeNull {
		return 0, false
	}
	return r.stmt.ColumnInt64(col), true
}

func (r row) n(col int) int64 {
	n, _ := r.Int(col)
	return n
}
