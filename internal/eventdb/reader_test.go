package eventdb_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"switchboard/internal/audit"
	"switchboard/internal/audit/audittest"
	"switchboard/internal/eventdb"
	"switchboard/internal/record"
)

// openConn opens a file with the tables.
func openConn(tb testing.TB, path string) *sqlite.Conn {
	tb.Helper()
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	for _, pragma := range []string{"PRAGMA journal_mode=wal", "PRAGMA synchronous=off", "PRAGMA cache_size=-16384"} {
		if err := sqlitex.ExecuteTransient(c, pragma, nil); err != nil {
			tb.Fatal(err)
		}
	}
	return c
}

func newConn(tb testing.TB) *sqlite.Conn {
	tb.Helper()
	c := openConn(tb, filepath.Join(tb.TempDir(), "events.db"))
	if err := sqlitex.ExecuteScript(c, eventdb.Schema(), nil); err != nil {
		tb.Fatal(err)
	}
	return c
}

// insert stores events, batch of them in one transaction.
func insert(tb testing.TB, c *sqlite.Conn, in *eventdb.Inserter, events []record.Event, batch int) {
	tb.Helper()
	for len(events) > 0 {
		n := min(batch, len(events))
		transact(tb, c, func() {
			for i := range events[:n] {
				if _, err := in.Insert(&events[i]); err != nil {
					tb.Fatal(err)
				}
			}
			if err := in.Flush(); err != nil {
				tb.Fatal(err)
			}
		})
		events = events[n:]
	}
}

func transact(tb testing.TB, c *sqlite.Conn, do func()) {
	tb.Helper()
	for _, sql := range []string{"BEGIN IMMEDIATE", "COMMIT"} {
		if sql == "COMMIT" {
			do()
		}
		if err := sqlitex.Execute(c, sql, nil); err != nil {
			tb.Fatal(err)
		}
	}
}

// readerOf lends the one connection.
func readerOf(c *sqlite.Conn) *eventdb.Reader {
	lent := make(chan *sqlite.Conn, 1)
	lent <- c
	reads := func(ctx context.Context, do func(context.Context, *sqlite.Conn) error) error {
		select {
		case c := <-lent:
			defer func() { lent <- c }()
			return do(ctx, c)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return eventdb.NewReader(reads, func(context.Context, audit.Filter) (audit.Coverage, error) {
		return audit.Coverage{AsOf: time.Unix(1, 0), Complete: true}, nil
	})
}

func TestReaderKeepsTheContract(t *testing.T) {
	for name, batch := range map[string]int{"each": 1, "batches": 997} {
		t.Run(name, func(t *testing.T) {
			audittest.Run(t, func(t *testing.T, events []record.Event) audit.Reader {
				c := newConn(t)
				in, err := eventdb.NewInserter(c)
				if err != nil {
					t.Fatal(err)
				}
				insert(t, c, in, events, batch)
				return readerOf(c)
			})
		})
	}
}
