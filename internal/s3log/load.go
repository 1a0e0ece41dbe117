package s3log

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"zombiezen.com/go/sqlite"
)

const (
	commitEvents  = 64_000
	commitObjects = 256
	maxFailures   = 8 // objects in a row that cannot be read, until a load gives up
	pendingPage   = 1000
)

// part is some of an object's events, in their order; the last part has the rest.
type part struct {
	object     pendingObject
	batch      *batch
	last       bool
	unreadable int64
	err        error // the object could not be read to its end; what has been read is true
}

type pendingObject struct {
	key, etag string
	hour      hour
}

// load reads the objects of s that have been listed and not loaded, the newest first. When
// it returns, what has been read is in the cache, also when it was cut short. Keep are all
// hours that the question needs.
func (r *Reader) load(ctx context.Context, c *cache, s, keep hours) error {
	l := loading{reader: r, cache: c, keep: keep, free: make(chan *batch, 2*r.options.Parallel), idle: make(chan *unzipper, r.options.Parallel)}
	objects := func(yield func(pendingObject) bool) {
		l.listErr = r.eachPending(ctx, c, s, yield)
	}
	err := parallel(ctx, r.options.Parallel, objects, l.read, l.take)
	if err == nil {
		err = l.listErr
	}
	if err == nil || !isDamaged(err) {
		err = errors.Join(err, l.commit())
	}
	if err != nil {
		l.rollback()
	}
	switch {
	case isFull(err): // the disk is, before the cache has reached its limit
		return r.full(c, keep)
	case err == nil:
		return l.failed
	}
	return err
}

// eachPending yields what is to be loaded. It reads over a connection of its own, and holds
// none while it yields.
func (r *Reader) eachPending(ctx context.Context, c *cache, s hours, yield func(pendingObject) bool) error {
	before := pendingObject{hour: s.to + 1}
	for {
		var page []pendingObject
		err := c.read(ctx, func(_ context.Context, conn *sqlite.Conn) error {
			return query(conn, `SELECT key, etag, hour FROM s3_object WHERE loaded = 0 AND hour >= ?1 AND (hour, key) < (?2, ?3)
				ORDER BY hour DESC, key DESC LIMIT ?4`, func(stmt *sqlite.Stmt) {
				page = append(page, pendingObject{stmt.ColumnText(0), stmt.ColumnText(1), hour(stmt.ColumnInt64(2))})
			}, int64(s.from), int64(before.hour), before.key, int64(pendingPage))
		})
		if err != nil {
			return err
		}
		for _, object := range page {
			if !yield(object) {
				return nil
			}
			before = object
		}
		if len(page) < pendingPage {
			return nil
		}
	}
}

// loading is one load.
type loading struct {
	reader *Reader
	cache  *cache
	keep   hours
	free   chan *batch
	idle   chan *unzipper

	listErr  error
	failed   error // the last object that could not be read
	failures int   // of them in a row

	open            bool // a transaction is
	events, objects int  // in it
}

// read reads one object, in a goroutine of its own.
func (l *loading) read(ctx context.Context, object pendingObject, emit func(part) bool) {
	body, err := l.reader.options.Bucket.Get(ctx, object.key)
	if err != nil {
		if errors.Is(err, ErrGone) {
			err = nil
		}
		emit(part{object: object, last: true, err: err})
		return
	}
	defer body.Close()
	unreadable, err := l.split(body, func(b *batch) bool { return emit(part{object: object, batch: b}) })
	if ctx.Err() != nil {
		return
	}
	emit(part{object: object, last: true, unreadable: unreadable, err: err})
}

// split makes batches of what an object holds. An error is one of reading the object;
// damage that is in the object itself is counted as an unreadable record.
func (l *loading) split(body io.Reader, emit func(*batch) bool) (unreadable int64, err error) {
	source := &noted{r: body}
	u := l.unzipper()
	defer l.putBack(u)
	plain, err := u.open(source)
	if err == nil {
		all := newRecords(plain, u.buf)
		err = l.batches(all, emit)
		unreadable, u.buf = all.unreadable, all.buf
	}
	if err != nil && source.err == nil {
		return unreadable + 1, nil // all bytes have come, and they are no gzip
	}
	return unreadable, err
}

func (l *loading) batches(all *records, emit func(*batch) bool) error {
	b := l.batch()
	for {
		more, err := all.next(b)
		if len(b.events) > 0 && (!more || b.full()) {
			b.seal()
			if !emit(b) {
				return context.Canceled
			}
			b = nil
			if more {
				b = l.batch()
			}
		}
		if !more {
			l.recycle(b)
			return err
		}
	}
}

func (l *loading) batch() *batch {
	select {
	case b := <-l.free:
		return b
	default:
		return newBatch()
	}
}

func (l *loading) recycle(b *batch) {
	if b == nil {
		return
	}
	b.reset()
	select {
	case l.free <- b:
	default:
	}
}

// take stores a part.
func (l *loading) take(p part) error {
	defer l.recycle(p.batch)
	if err := l.begin(); err != nil {
		return err
	}
	if p.batch != nil {
		for i := range p.batch.events {
			if _, err := l.cache.inserter.Insert(&p.batch.events[i]); err != nil {
				return err
			}
		}
		l.events += len(p.batch.events)
	}
	if p.last {
		if err := l.end(p); err != nil {
			return err
		}
	}
	if l.events >= l.reader.commitEvents || l.objects >= commitObjects {
		return l.commit()
	}
	return nil
}

// end notes that an object is loaded, in the transaction of its last events.
func (l *loading) end(p part) error {
	if p.err != nil {
		if errors.Is(p.err, context.Canceled) || errors.Is(p.err, context.DeadlineExceeded) {
			return nil
		}
		l.failed = p.err
		if l.failures++; l.failures >= maxFailures {
			return fmt.Errorf("%d objects in a row cannot be read: %w", l.failures, p.err)
		}
		l.reader.options.Logger.LogAttrs(context.Background(), slog.LevelWarn, "events are not readable", slog.String("object", p.object.key), slog.Any("error", p.err))
		return nil
	}
	l.failures = 0
	l.objects++
	return l.cache.exec("UPDATE s3_object SET loaded = 1, unreadable = ?3 WHERE key = ?1 AND etag = ?2", p.object.key, p.object.etag, p.unreadable)
}

func (l *loading) begin() error {
	if l.open {
		return nil
	}
	if err := l.cache.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	l.open = true
	return nil
}

// commit ends the transaction and makes room for the next.
func (l *loading) commit() error {
	if !l.open {
		return nil
	}
	if err := l.cache.inserter.Flush(); err != nil {
		return err
	}
	if err := l.cache.exec("COMMIT"); err != nil {
		return err
	}
	l.open, l.events, l.objects = false, 0, 0
	l.reader.progress.tell()
	return l.reader.room(l.cache, l.keep)
}

func (l *loading) rollback() {
	if !l.open {
		return
	}
	l.open = false
	l.cache.inserter.Discard()
	if !l.cache.write.AutocommitEnabled() {
		// The error that led here is the one that counts.
		_ = l.cache.exec("ROLLBACK")
	}
}
