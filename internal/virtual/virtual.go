// Package virtual keeps the virtual models that operators save, live beside the declared ones.
package virtual

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"switchboard/internal/provider"
	"switchboard/internal/route"
	"switchboard/internal/shared"
)

// DocumentID names the document of the saved virtual models among those that all instances
// share.
const DocumentID = "virtual-models"

const (
	// fresh is how long what was read is good enough: with the second that a Load may be
	// behind, every instance sees a change within 10 s.
	fresh = 9 * time.Second
	// again is when a cell that did not answer is asked again.
	again = time.Second
	// behind is how long a Load may still bring what was there before our own Swap.
	behind = 2 * time.Second
)

// Models is what can be asked for, as declared and as saved. A saved virtual model that
// cannot be used is left out, logged once and listed with its problem; nothing that is
// stored keeps the rest from working.
//
// Requests take one atomic load and go on with the catalog they took, whatever is saved
// meanwhile.
type Models struct {
	real     *route.Catalog // providers and no virtual model
	declared []route.Virtual
	names    map[string]bool // of the declared ones
	cell     shared.Cell
	logger   *slog.Logger

	now     atomic.Pointer[state]
	due     atomic.Int64  // when the cell is asked next, epoch nanoseconds
	silent  atomic.Bool   // it did not answer the last time
	reading chan struct{} // holds one: who reads for a request
	editing chan struct{} // holds one: who edits

	mu     sync.Mutex // guards what follows, and is held for no I/O
	wrote  time.Time  // when we last replaced the document
	logged map[string]bool
}

// state is one version of the document, worked out. Immutable.
type state struct {
	data    []byte
	version int64
	problem string // why the document as a whole cannot be read
	entries []entry
	catalog *route.Catalog
}

// New returns the declared virtual models over providers, to which Refresh adds what cell
// holds. Its error is that of route.NewCatalog.
func New(providers []*provider.Provider, declared []route.Virtual, cell shared.Cell, logger *slog.Logger) (*Models, error) {
	real, err := route.NewCatalog(providers, nil)
	if err != nil {
		return nil, err
	}
	catalog, err := real.With(declared)
	if err != nil {
		return nil, err
	}
	m := &Models{
		real: real, declared: declared, names: make(map[string]bool, len(declared)), cell: cell, logger: logger,
		reading: make(chan struct{}, 1), editing: make(chan struct{}, 1), logged: map[string]bool{},
	}
	for i := range declared {
		m.names[declared[i].Source] = true
	}
	m.now.Store(&state{catalog: catalog})
	return m, nil
}

// For is what exists for callers with that user path.
func (m *Models) For(userPath string) *route.Catalog { return m.now.Load().catalog.For(userPath) }

// Due tells whether the next Refresh asks the cell.
func (m *Models) Due(now time.Time) bool { return now.UnixNano() >= m.due.Load() }

// Refresh takes over what other instances have saved, if the last look was too long ago. Of
// parallel callers one asks and the others wait for it, no longer than their contexts: an
// instance that has slept must not route by what it knew before. While the cell is silent
// they do not wait.
func (m *Models) Refresh(ctx context.Context, now time.Time) {
	if !m.Due(now) || !m.take(ctx) {
		return
	}
	defer func() { <-m.reading }()
	if !m.Due(now) {
		return
	}
	wait := fresh
	_, err := m.load(ctx)
	if m.silent.Store(err != nil); err != nil {
		wait = again
		m.logger.WarnContext(ctx, "saved virtual models are not readable", slog.Any("cause", err))
	}
	m.due.Store(now.Add(wait).UnixNano())
}

// take is the right to read for a request.
func (m *Models) take(ctx context.Context) bool {
	select {
	case m.reading <- struct{}{}:
		return true
	default:
	}
	if m.silent.Load() {
		return false
	}
	select {
	case m.reading <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// load reads the cell and makes what it holds current.
func (m *Models) load(ctx context.Context) (*state, error) {
	data, version, err := m.cell.Load(ctx)
	if err != nil {
		return nil, err
	}
	return m.adopt(ctx, data, version), nil
}

// adopt makes a document current and returns what is: something newer, when a read was
// behind our own write.
func (m *Models) adopt(ctx context.Context, data []byte, version int64) *state {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.now.Load()
	same := version == known.version && bytes.Equal(data, known.data)
	if same || version < known.version && time.Since(m.wrote) < behind {
		return known
	}
	next := m.build(data, version)
	m.log(ctx, next)
	m.now.Store(next)
	return next
}

// log says what cannot be used, each thing once.
func (m *Models) log(ctx context.Context, s *state) {
	say := func(about, source, problem, stored string) {
		if key := about + "\x00" + source + "\x00" + problem; !m.logged[key] && len(m.logged) < 1000 {
			m.logged[key] = true
			m.logger.ErrorContext(ctx, "saved virtual model is not used", slog.String("source", source),
				slog.String("problem", problem), slog.String("stored", stored))
		}
	}
	if s.problem != "" {
		say("document", "", s.problem, string(s.data))
	}
	for i := range s.entries {
		if e := &s.entries[i]; e.problem != "" {
			say("entry", e.model.Source, e.problem, string(e.raw))
		}
	}
}

// swap replaces the document of a version. A Swap whose answer got lost is made again: a
// repeat of an applied one is success.
func (m *Models) swap(ctx context.Context, data []byte, version int64) error {
	expires := time.Now().AddDate(100, 0, 0) // it stays
	err := m.cell.Swap(ctx, data, version, expires)
	if err != nil && !errors.Is(err, shared.ErrChanged) && ctx.Err() == nil {
		err = m.cell.Swap(ctx, data, version, expires)
	}
	if err == nil {
		m.mu.Lock()
		m.wrote = time.Now()
		m.mu.Unlock()
	}
	return err
}
