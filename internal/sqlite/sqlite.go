// Package sqlite keeps pins, response aliases and routing events in one SQLite file, for
// one machine.
//
// Reads use their own connections and never wait for a write (WAL); audit questions have
// others than the lookups of requests. All writes go through
// one queue and one goroutine, which puts whatever is waiting into one transaction: a
// claim or a switch is committed when its call returns, usage and events at the latest by
// Close. Not here: power loss may take the last moments of both (synchronous=NORMAL); a
// killed process takes only what it had queued.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"

	"switchboard/internal/affinity"
	"switchboard/internal/audit"
	"switchboard/internal/eventdb"
	"switchboard/internal/record"
)

const (
	queueLen  = 1024 // writes waiting; a full queue makes callers wait
	readConns = 2
	// openBusy bounds the wait for another process when the file is opened.
	openBusy = 5 * time.Second
)

var errClosed = errors.New("sqlite: store is closed")

// DB is one open database file. All methods may be called from any goroutine.
type DB struct {
	path   string
	logger *slog.Logger

	readers chan *conn // idle read connections
	queue   chan write
	kick    chan struct{} // ends the writer's wait for company
	closing chan struct{} // closed first: callers that wait give up
	abandon chan struct{} // closed when Close runs out of time
	done    chan struct{} // closed when the writer has ended

	sending sync.RWMutex // held for reading by whoever sends to queue
	closed  bool         // under sending

	closeCalled atomic.Bool

	*eventdb.Reader                   // over auditors
	auditors        chan *sqlite.Conn // idle, nil before the first use
	audits          context.Context   //nolint:containedctx // ends with Close, and with it every question
	endAudits       context.CancelFunc

	usage     pending[affinity.Ref, *usageWrite] // of requests with input
	malformed onceRows
}

var (
	_ affinity.Store   = (*DB)(nil)
	_ affinity.Aliases = (*DB)(nil)
	_ record.Recorder  = (*DB)(nil)
	_ audit.Reader     = (*DB)(nil)
)

// Open opens or makes the database file at path, with its directory, and brings its tables
// up to date. A file that is no database or is damaged is put aside as
// .sessions.db.corrupted in the same directory, which is logged, and a new one is made.
// One that a newer switchboard has made is refused and left as it is.
// It waits at most a few seconds for other processes. A nil logger discards.
func Open(ctx context.Context, path string, logger *slog.Logger) (*DB, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	path, err := filepath.Abs(path) // also keeps ":memory:" and "" from being special
	if err != nil {
		return nil, fmt.Errorf("sqlite: open: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, openBusy)
	defer cancel()
	conns, err := openFile(ctx, path, logger)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	db := &DB{
		path:    path,
		logger:  logger,
		readers: make(chan *conn, readConns),
		queue:   make(chan write, queueLen),
		kick:    make(chan struct{}, 1),
		closing: make(chan struct{}),
		abandon: make(chan struct{}),
		done:    make(chan struct{}),
	}
	for _, reader := range conns[1:] {
		db.readers <- reader
	}
	db.openAudit()
	conns[0].SetInterrupt(db.abandon)
	conns[0].SetBusyTimeout(busySlice)
	w := &writer{db: db, conn: conns[0]}
	go w.run()
	return db, nil
}

// Path is the absolute path of the database file.
func (db *DB) Path() string { return db.path }

// Flush returns when everything that was queued before the call has been committed.
func (db *DB) Flush(ctx context.Context) error {
	_, err := db.call(ctx, func(*conn) (affinity.Pin, error) { return affinity.Pin{}, nil })
	return err
}

// Close writes everything that is queued and closes the file. When ctx ends first, the
// events that could not be written are logged whole and its error is returned. Calls after
// Close, and callers that wait for a place in the queue, get an error; a second Close waits
// for the first.
func (db *DB) Close(ctx context.Context) error {
	if db.closeCalled.Swap(true) {
		<-db.done
		return nil
	}
	close(db.closing)
	db.endAudits()
	db.sending.Lock()
	db.closed = true
	close(db.queue)
	db.sending.Unlock()

	var err error
	select {
	case <-db.done:
	case <-ctx.Done():
		err = fmt.Errorf("sqlite: close %s: %w", db.path, ctx.Err())
		close(db.abandon)
		<-db.done
	}
	for range readConns {
		reader := <-db.readers
		err = errors.Join(err, reader.Close())
	}
	return errors.Join(err, db.closeAudit())
}

// read lends a read connection to do.
func (db *DB) read(ctx context.Context, do func(c *conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-db.closing:
		return errClosed
	default:
	}
	var c *conn
	select {
	case c = <-db.readers: // without asking ctx for a channel, which may cost a timer
	default:
		select {
		case c = <-db.readers:
		case <-ctx.Done():
			return ctx.Err()
		case <-db.closing:
			return errClosed
		}
	}
	defer func() { db.readers <- c }()
	for {
		err := do(c)
		// Readers are busy only while another process recovers the log after a crash.
		if !isBusy(err) || ctx.Err() != nil {
			return err
		}
	}
}
