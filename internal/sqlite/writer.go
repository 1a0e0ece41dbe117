package sqlite

import (
	"context"
	"log/slog"
	"time"

	"switchboard/internal/affinity"
)

const (
	linger    = 20 * time.Millisecond // how long a write without a waiting caller waits for company
	maxBatch  = 256                   // writes in one transaction
	busySlice = 100 * time.Millisecond
	busyWarn  = 5 * time.Second
)

// write is one entry of the queue. It knows how to apply itself to the open transaction,
// possibly again after a rollback, and is told the end.
type write interface {
	// apply returns faults of the database only; what it decided it keeps for settle.
	apply(c *conn) error
	// settle gets nil when the write is committed.
	settle(db *DB, err error)
	// waiting tells whether a caller waits for the commit.
	waiting() bool
	// at is the caller's time, the zero time if it has none.
	at() time.Time
}

// enqueue gives w to the writer. It waits for a place until ctx ends.
func (db *DB) enqueue(ctx context.Context, w write) error {
	db.sending.RLock()
	defer db.sending.RUnlock()
	if db.closed {
		return errClosed
	}
	select {
	case db.queue <- w:
	default:
		db.hurry()
		select {
		case db.queue <- w:
		case <-ctx.Done():
			return ctx.Err()
		case <-db.closing:
			return errClosed
		}
	}
	if w.waiting() || len(db.queue) >= maxBatch {
		db.hurry()
	}
	return nil
}

// hurry ends the writer's wait for company.
func (db *DB) hurry() {
	select {
	case db.kick <- struct{}{}:
	default:
	}
}

// call is a write whose caller waits.
type call struct {
	ctx  context.Context //nolint:containedctx // says whether the caller still waits
	do   func(c *conn) (affinity.Pin, error)
	pin  affinity.Pin
	err  error
	done chan struct{}
}

// call runs do in a transaction and returns when that is committed, or ctx has ended.
// do may run more than once.
func (db *DB) call(ctx context.Context, do func(c *conn) (affinity.Pin, error)) (affinity.Pin, error) {
	if err := ctx.Err(); err != nil {
		return affinity.Pin{}, err
	}
	c := &call{ctx: ctx, do: do, done: make(chan struct{})}
	if err := db.enqueue(ctx, c); err != nil {
		return affinity.Pin{}, err
	}
	select {
	case <-c.done:
		return c.pin, c.err
	case <-ctx.Done():
		return affinity.Pin{}, ctx.Err()
	}
}

func (c *call) apply(conn *conn) error {
	if c.err = c.ctx.Err(); c.err != nil {
		return nil // nobody waits for it any more
	}
	c.pin, c.err = c.do(conn)
	if c.err != nil && !isDecision(c.err) {
		return c.err
	}
	return nil
}

func (c *call) settle(_ *DB, err error) {
	if err != nil {
		c.pin, c.err = affinity.Pin{}, err
	}
	close(c.done)
}

func (c *call) waiting() bool { return true }
func (c *call) at() time.Time { return time.Time{} }

// writer owns the write connection.
type writer struct {
	db    *DB
	conn  *conn
	batch []write
	sweep sweep
}

// run writes until the queue is closed and empty.
func (w *writer) run() {
	defer close(w.db.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for first := range w.db.queue {
		w.batch = append(w.batch[:0], first)
		if !first.waiting() {
			// Asleep here, and not receiving, the writer costs callers no wake-up.
			timer.Reset(linger)
			select {
			case <-timer.C:
			case <-w.db.kick:
			case <-w.db.closing:
			}
		}
		w.drain()
		w.write()
		clear(w.batch) // lets the events go
		w.sweep.step(w.conn, w.db.logger)
	}
	w.conn.SetInterrupt(nil)
	if err := w.conn.Close(); err != nil {
		w.db.logger.LogAttrs(context.Background(), slog.LevelError, "session database: close", slog.Any("error", err))
	}
}

// drain takes what is waiting.
func (w *writer) drain() {
	for len(w.batch) < maxBatch {
		select {
		case next, ok := <-w.db.queue:
			if !ok {
				return
			}
			w.batch = append(w.batch, next)
		default:
			return
		}
	}
}

// write commits the batch in one transaction, or, when that fails, one by one, so that a
// write that cannot be made takes no other with it.
func (w *writer) write() {
	err := w.transact(w.batch)
	for i, entry := range w.batch {
		if err != nil && len(w.batch) > 1 {
			entry.settle(w.db, w.transact(w.batch[i:i+1]))
		} else {
			entry.settle(w.db, err)
		}
		w.sweep.see(entry.at())
	}
}

func (w *writer) transact(batch []write) error {
	if err := w.begin(); err != nil {
		return err
	}
	err := func() error {
		for _, entry := range batch {
			if err := entry.apply(w.conn); err != nil {
				return err
			}
		}
		if err := w.conn.events.Flush(); err != nil {
			return err
		}
		return run(w.conn.commit)
	}()
	if err == nil {
		return nil
	}
	w.conn.events.Discard()
	if !w.conn.AutocommitEnabled() {
		// Some faults have rolled back already. A rollback that fails leaves nothing to do:
		// the next begin reports it.
		_ = run(w.conn.rollback)
	}
	return err
}

// begin waits for other processes as long as it takes: callers that wait have their own
// contexts, the others' queue holds until it is full.
func (w *writer) begin() error {
	started, warned := time.Now(), false
	for {
		err := run(w.conn.begin)
		if !isBusy(err) {
			return err
		}
		if waited := time.Since(started); waited >= busyWarn && !warned {
			warned = true
			w.db.logger.LogAttrs(context.Background(), slog.LevelWarn, "session database is locked by another process",
				slog.String("path", w.db.path), slog.Duration("waited", waited))
		}
	}
}
