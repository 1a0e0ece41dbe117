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
func (r *Reader) Threads(ctx context.Context, f audit.Filter, p audit.Page) (answer audit.Threads, err error) {
	cover, err := r.ask(ctx, "threads", f, func(ctx context.Context, q *question) error {
		answer, err = q.sql.Threads(ctx, f, p)
		return err
	})
	answer.Coverage = cover
	return answer, err
}

// Log implements audit.Reader.
func (r *Reader) Log(ctx context.Context, f audit.Filter, p audit.Page) (answer audit.Log, err error) {
	cover, err := r.ask(ctx, "log", f, func(ctx context.Context, q *question) error {
		if err := q.pageOf(ctx, p); err != nil {
			return err
		}
		answer, err = q.sql.Log(ctx, f, p)
		return err
	})
	answer.Coverage = cover
	return answer, err
}

// Sessions implements audit.Reader.
func (r *Reader) Sessions(ctx context.Context, f audit.Filter, p audit.Page) (answer audit.SessionUsages, err error) {
	cover, err := r.ask(ctx, "sessions", f, func(ctx context.Context, q *question) error {
		answer, err = q.sql.Sessions(ctx, f, p)
		return err
	})
	answer.Coverage = cover
	return answer, err
}

// Summary implements audit.Reader.
func (r *Reader) Summary(ctx context.Context, f audit.Filter) (answer audit.Summary, err error) {
	cover, err := r.ask(ctx, "summary", f, func(ctx context.Context, q *question) error {
		answer, err = q.sql.Summary(ctx, f)
		return err
	})
	answer.Coverage = cover
	return answer, err
}

// Daily implements audit.Reader.
func (r *Reader) Daily(ctx context.Context, f audit.Filter) (answer audit.Days, err error) {
	cover, err := r.ask(ctx, "daily", f, func(ctx context.Context, q *question) error {
		answer, err = q.sql.Daily(ctx, f)
		return err
	})
	answer.Coverage = cover
	return answer, err
}

// question is one that is being answered, over one connection and in one transaction.
type question struct {
	conn   *sqlite.Conn
	filter audit.Filter
	plan   plan
	sql    audit.SQL
}

func (r *Reader) ask(ctx context.Context, name string, f audit.Filter, answer func(context.Context, *question) error) (audit.Coverage, error) {
	cover, err := r.coverage(ctx, f)
	if err == nil {
		err = r.reads(ctx, func(ctx context.Context, c *sqlite.Conn) error {
			before := c.SetInterrupt(ctx.Done())
			defer c.SetInterrupt(before)
			return snapshot(c, func() error {
				q := &question{conn: c, filter: f}
				if err := q.prepare(); err != nil {
					return err
				}
				return answer(ctx, q)
			})
		})
	}
	if err == nil {
		return cover, nil
	}
	if cause := ctx.Err(); cause != nil {
		err = cause
	}
	return cover, fmt.Errorf("eventdb: %s: %w", name, err)
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
