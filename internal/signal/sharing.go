package signal

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"switchboard/internal/shared"
)

// DocumentID names the document of the signals among those that all instances share.
const DocumentID = "signals"

const (
	// fresh is how long what was read of the other instances is good enough.
	fresh = 2 * time.Second
	// every is how often an instance tells what it has seen, at most.
	every = 5 * time.Second
	// behind is how long a Load may still bring what was there before our own Swap.
	behind = 2 * time.Second
	// swapTries bounds how often a lost race is run again: what is not told now is told later.
	swapTries = 3
)

// sharing is how a table stays in touch with those of other processes.
type sharing struct {
	cell    shared.Cell
	logger  *slog.Logger
	writer  string // this instance among all
	pending atomic.Bool
	loaded  atomic.Int64 // when the cell was last asked, epoch nanoseconds
	told    atomic.Int64 // when we last began to tell

	updating sync.Mutex // one update of the cell at a time

	mu      sync.Mutex // guards what follows, and is held for no I/O
	base    document   // as last read or written
	version int64
	based   time.Time // when base became what it is
}

// NewShared returns a table that shares through cell. It reads nothing before Refresh.
func NewShared(cell shared.Cell, logger *slog.Logger) *Table {
	t := NewTable()
	t.sharing = &sharing{cell: cell, logger: logger, writer: rand.Text()}
	return t
}

// Due tells whether the next Refresh asks the cell.
func (t *Table) Due(now time.Time) bool {
	return t.sharing != nil && now.UnixNano()-t.sharing.loaded.Load() >= int64(fresh)
}

// Refresh takes over what others have told, if the last look was too long ago. Of parallel
// callers one asks; the others go on with what is known. It waits no longer than ctx, and
// leaves everything as it was when there is no answer.
func (t *Table) Refresh(ctx context.Context, now time.Time) {
	s := t.sharing
	if s == nil {
		return
	}
	last := s.loaded.Load()
	if now.UnixNano()-last < int64(fresh) || !s.loaded.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	if err := t.load(ctx, now, false); err != nil {
		s.logger.WarnContext(ctx, "shared signals are not readable", slog.Any("cause", err))
	}
}

// load makes the cell's document the base. One that may be older than what we have written
// is left, unless it is certain: after a lost race.
func (t *Table) load(ctx context.Context, now time.Time, certain bool) error {
	s := t.sharing
	data, version, err := s.cell.Load(ctx)
	if err != nil {
		return err
	}
	read, err := decode(data, now)
	if err != nil { // the next update overwrites it
		s.logger.ErrorContext(ctx, "malformed shared signals", slog.String("document", string(data)), slog.Any("cause", err))
		read = document{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !certain && version < s.version && now.Sub(s.based) < behind {
		return nil
	}
	s.base, s.version, s.based = read, version, now
	t.rebase(read, now)
	return nil
}

// rebase makes what is known what others have told, and our own news beside it.
func (t *Table) rebase(read document, now time.Time) {
	for target := range read.targets {
		t.cell(target)
	}
	for target, c := range *t.cells.Load() {
		known := read.of(target, now)
		c.mu.Lock()
		c.fade(now)
		c.known = c.news
		c.known.merge(known)
		c.mu.Unlock()
	}
}

// Pending tells whether Share has anything to tell, and may.
func (t *Table) Pending(now time.Time) bool {
	s := t.sharing
	return s != nil && s.pending.Load() && now.UnixNano()-s.told.Load() >= int64(every)
}

// Share tells the others what was seen here since the last time. It waits no longer than ctx;
// what could not be told is told later.
func (t *Table) Share(ctx context.Context, now time.Time) {
	s := t.sharing
	if s == nil || !s.updating.TryLock() {
		return
	}
	defer s.updating.Unlock()
	if !t.Pending(now) {
		return
	}
	s.told.Store(now.UnixNano())
	s.pending.Store(false)
	news := t.collect(now)
	if len(news.targets) == 0 {
		return
	}
	if err := t.tell(ctx, news, now); err != nil {
		s.pending.Store(true)
		if !errors.Is(err, shared.ErrChanged) { // a race that others have won is no fault
			s.logger.WarnContext(ctx, "signals are not shared", slog.Any("cause", err))
		}
	}
}

// collect is what is not shared yet, as of now.
func (t *Table) collect(now time.Time) document {
	d := document{at: now, targets: map[Target]evidence{}}
	for target, c := range *t.cells.Load() {
		c.mu.Lock()
		c.fade(now)
		if c.news.counts() {
			d.targets[target] = c.news
		}
		c.mu.Unlock()
	}
	return d
}

// tell adds the news to the shared document.
func (t *Table) tell(ctx context.Context, news document, now time.Time) error {
	s := t.sharing
	var err error
	for range swapTries {
		s.mu.Lock()
		base, version := s.base, s.version
		s.mu.Unlock()
		next := base.with(news, now)
		var data []byte
		if data, err = next.encode(s.writer); err != nil {
			return err
		}
		if err = s.cell.Swap(ctx, data, version, now.Add(documentLife)); err == nil {
			s.mu.Lock()
			s.base, s.version, s.based = next, version+1, now
			t.forget(news)
			s.mu.Unlock()
			return nil
		}
		if !errors.Is(err, shared.ErrChanged) {
			return err
		}
		if err := t.load(ctx, now, true); err != nil {
			return err
		}
	}
	return err
}

// forget takes out of the news what has been told.
func (t *Table) forget(told document) {
	cells := *t.cells.Load()
	for target, e := range told.targets {
		c := cells[target]
		c.mu.Lock()
		if age := c.at.Sub(told.at); age > 0 {
			e.scale(remains(age))
		}
		c.news.remove(e)
		c.mu.Unlock()
	}
}
