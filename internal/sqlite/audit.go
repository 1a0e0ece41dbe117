package sqlite

import (
	"context"
	"errors"
	"time"

	"zombiezen.com/go/sqlite"

	"switchboard/internal/audit"
	"switchboard/internal/eventdb"
)

const (
	auditConns = 2
	// auditFlush is how long a question waits for what was recorded before it.
	auditFlush = 5 * time.Second
)

func (db *DB) openAudit() {
	db.audits, db.endAudits = context.WithCancel(context.Background())
	db.auditors = make(chan *sqlite.Conn, auditConns)
	for range auditConns {
		db.auditors <- nil
	}
	db.Reader = eventdb.NewReader(db.audit, db.covered)
}

// closeAudit waits for the questions, which have been interrupted.
func (db *DB) closeAudit() (err error) {
	for range auditConns {
		if c := <-db.auditors; c != nil {
			err = errors.Join(err, c.Close())
		}
	}
	return err
}

// audit lends a connection to a question, until ctx ends or the store is closed. They are
// opened when they are needed: most processes are never asked.
func (db *DB) audit(ctx context.Context, do func(context.Context, *sqlite.Conn) error) error {
	var c *sqlite.Conn
	select {
	case c = <-db.auditors:
	case <-ctx.Done():
		return ctx.Err()
	case <-db.closing:
		return errClosed
	}
	defer func() { db.auditors <- c }()
	if db.audits.Err() != nil {
		return errClosed
	}
	if c == nil {
		opened, err := openAuditor(db.path)
		if err != nil {
			return err
		}
		c = opened
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(db.audits, cancel)()
	return do(ctx, c)
}

func openAuditor(path string) (*sqlite.Conn, error) {
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	for _, pragma := range []string{"PRAGMA query_only=1", "PRAGMA cache_size=-8192"} {
		if err := execute(c, pragma); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// covered sees to it that everything recorded before a question is in its answer. When the
// file cannot be written for that long, the answer says that it may lack something.
func (db *DB) covered(ctx context.Context, _ audit.Filter) (audit.Coverage, error) {
	now := time.Now()
	flush, cancel := context.WithTimeout(ctx, auditFlush)
	defer cancel()
	err := db.Flush(flush)
	if errors.Is(err, errClosed) || ctx.Err() != nil {
		return audit.Coverage{}, err
	}
	return audit.Coverage{AsOf: now, Complete: err == nil}, nil
}
