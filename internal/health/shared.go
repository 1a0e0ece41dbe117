package health

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"switchboard/internal/shared"
)

const (
	// fresh is how long what was read of the other instances is good enough (DESIGN 6).
	fresh = time.Second
	// swapTries bounds how often an update is decided again after a lost race.
	swapTries = 5
	// maxNews bounds the reports that wait for a cell that is down.
	maxNews = 256
)

// Shared is a Board that all instances share through one Cell.
//
// Each instance routes by its own copy, to which its reports are applied at once. Share
// replays them on the shared document, so that failures in a row, doublings and trials are
// counted over all instances; Refresh takes the others' over. Readers take one atomic load.
type Shared struct {
	settings Settings
	cell     shared.Cell
	keys     Keys
	logger   *slog.Logger

	now     atomic.Pointer[state]
	pending atomic.Bool
	loaded  atomic.Int64 // when the cell was last asked, epoch nanoseconds

	mu      sync.Mutex // guards what follows, and is held for no I/O
	news    []news     // reported here and not shared
	gone    int        // how many reports have left news, ever
	base    *state     // as last read or written
	version int64      // of base
	based   time.Time  // when base became what it is
	// malformed is the last document that could not be read.
	malformed []byte

	updating chan struct{} // full while the cell is updated: one at a time
	name     string        // of this instance among all
}

// news is a report that is not shared yet.
type news struct {
	outcome Outcome
	at      time.Time
}

var _ Board = (*Shared)(nil)

// NewShared returns a board over what cell holds. It reads nothing before Refresh.
func NewShared(settings Settings, cell shared.Cell, keys Keys, logger *slog.Logger) *Shared {
	s := &Shared{settings: settings, cell: cell, keys: keys, logger: logger, base: &state{}, name: rand.Text(), updating: make(chan struct{}, 1)}
	s.now.Store(s.base)
	return s
}

// View implements Board. While nothing is degraded it allocates nothing.
func (s *Shared) View(now time.Time) View {
	known := s.now.Load()
	if known.standings == 0 {
		return quiet{}
	}
	return view{known, now}
}

// List is what is not healthy at now, as for Memory.
func (s *Shared) List(now time.Time) []Status { return s.now.Load().list(now) }

// Report implements Board.
func (s *Shared) Report(outcome Outcome, now time.Time) {
	if s.now.Load().indifferent(outcome) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.Store(apply(s.settings, s.now.Load(), outcome, now))
	if len(s.news) == maxNews {
		s.news = s.news[1:]
		s.gone++
	}
	s.news = append(s.news, news{outcome, now})
	s.pending.Store(true)
}

// Due tells whether the next Refresh asks the cell.
func (s *Shared) Due(now time.Time) bool { return now.UnixNano()-s.loaded.Load() >= int64(fresh) }

// Refresh implements Board. Of parallel callers one asks; the others go on with what is known.
func (s *Shared) Refresh(ctx context.Context, now time.Time) {
	last := s.loaded.Load()
	if now.UnixNano()-last < int64(fresh) || !s.loaded.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	// A read may be behind our own write, but no longer than that: a lower version after it
	// is that of a document which was begun anew, because the last one was deleted or broken.
	accept := func(version int64) bool { return version >= s.version || now.Sub(s.based) >= fresh }
	if err := s.load(ctx, now, accept); err != nil {
		s.logger.WarnContext(ctx, "shared health is not readable", slog.Any("cause", err))
	}
}

// load takes over the cell's document if its version is acceptable.
func (s *Shared) load(ctx context.Context, now time.Time, accept func(version int64) bool) error {
	data, version, err := s.cell.Load(ctx)
	if err != nil {
		return err
	}
	read, err := decode(data, s.keys)
	if err != nil {
		s.logMalformed(ctx, data, err)
		read = &state{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if accept(version) {
		s.rebase(read, version, now)
	}
	return nil
}

// logMalformed writes a document to the log once: it is read every second until an update
// overwrites it.
func (s *Shared) logMalformed(ctx context.Context, data []byte, cause error) {
	s.mu.Lock()
	logged := bytes.Equal(data, s.malformed)
	s.malformed = data
	s.mu.Unlock()
	if !logged {
		s.logger.ErrorContext(ctx, "malformed shared health", slog.String("document", string(data)), slog.Any("cause", cause))
	}
}

// rebase makes read what is known to be shared. What is not shared yet stays visible here.
func (s *Shared) rebase(read *state, version int64, now time.Time) {
	s.base, s.version, s.based = read, version, now
	for _, one := range s.news {
		read = apply(s.settings, read, one.outcome, one.at)
	}
	s.now.Store(read)
}

// Pending implements Board.
func (s *Shared) Pending() bool { return s.pending.Load() }

// Share implements Board. Whoever comes while another shares finds its news shared as well.
func (s *Shared) Share(ctx context.Context, now time.Time) {
	_, err := s.alone(ctx, func() (bool, error) {
		if !s.pending.Load() {
			return false, nil
		}
		return s.update(ctx, now, func(next *state) (*state, bool) { return next, true })
	})
	if err != nil {
		s.logger.WarnContext(ctx, "health is not shared", slog.Any("cause", err))
	}
}

// Probe implements Board: the lease is taken in the cell, so that one instance probes. When
// the cell does not answer, each instance gives its own lease.
func (s *Shared) Probe(ctx context.Context, provider, keyID, model string, now time.Time, lease time.Duration) bool {
	take := func(next *state) (*state, bool) { return probe(next, provider, keyID, model, now, lease) }
	switch s.now.Load().status(provider, keyID, model, now).State {
	case Healthy:
		return true
	case Degraded:
		return false
	}
	won, err := s.alone(ctx, func() (bool, error) { return s.update(ctx, now, take) })
	if err == nil {
		return won
	}
	s.logger.WarnContext(ctx, "trial is not shared", slog.Any("cause", err))
	s.mu.Lock()
	defer s.mu.Unlock()
	next, won := take(s.now.Load())
	if won {
		s.now.Store(next)
	}
	return won
}

// alone does one update of the cell while no other runs. It waits for that until ctx ends.
func (s *Shared) alone(ctx context.Context, do func() (bool, error)) (bool, error) {
	select {
	case s.updating <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-s.updating }()
	return do()
}

// update replays the news and then change on the shared state until that is stored; false
// when change refuses. It is called alone.
func (s *Shared) update(ctx context.Context, now time.Time, change func(*state) (*state, bool)) (bool, error) {
	var err error
	for range swapTries {
		s.mu.Lock()
		next, version, count, gone := s.base, s.version, len(s.news), s.gone
		for _, one := range s.news {
			next = apply(s.settings, next, one.outcome, one.at)
		}
		s.mu.Unlock()
		next, changed := change(next)
		if !changed && count == 0 {
			return false, nil
		}
		if err = s.swap(ctx, next, version, gone+count, now); err == nil {
			return changed, nil
		}
		if !errors.Is(err, shared.ErrChanged) {
			return false, err
		}
		if err := s.load(ctx, now, func(int64) bool { return true }); err != nil {
			return false, err
		}
	}
	return false, err
}

// swap stores next and forgets the news that are in it: the first told of all there ever were.
func (s *Shared) swap(ctx context.Context, next *state, version int64, told int, now time.Time) error {
	data, err := encode(next, s.name, s.keys, now)
	if err != nil {
		return err
	}
	if err := s.cell.Swap(ctx, data, version, now.Add(documentLife)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.news = append([]news(nil), s.news[max(0, told-s.gone):]...)
	s.gone = max(s.gone, told)
	s.pending.Store(len(s.news) > 0)
	s.rebase(next, version+1, now)
	return nil
}
