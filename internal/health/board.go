package health

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Memory is a Board in this process.
//
// Readers take one atomic load and see an immutable state; writers copy what they change
// under a mutex. A success while nothing is known of its provider, which is nearly every
// report, takes no lock.
type Memory struct {
	settings Settings
	now      atomic.Pointer[state]
	writing  sync.Mutex
}

var _ Board = (*Memory)(nil)

// NewBoard returns a board on which nothing is degraded.
func NewBoard(settings Settings) *Memory {
	m := &Memory{settings: settings}
	m.now.Store(&state{})
	return m
}

// View implements Board. While nothing is degraded it allocates nothing.
func (m *Memory) View(now time.Time) View {
	s := m.now.Load()
	if s.standings == 0 {
		return quiet{}
	}
	return view{s, now}
}

// Report implements Board.
func (m *Memory) Report(outcome Outcome, now time.Time) {
	if m.now.Load().indifferent(outcome) {
		return
	}
	m.writing.Lock()
	defer m.writing.Unlock()
	m.now.Store(apply(m.settings, m.now.Load(), outcome, now))
}

// Probe implements Board. It also takes the lease of every wider and narrower degradation
// that covers the target and has expired: the one trial decides about them all.
func (m *Memory) Probe(_ context.Context, provider, keyID, model string, now time.Time, lease time.Duration) bool {
	m.writing.Lock()
	defer m.writing.Unlock()
	next, ok := probe(m.now.Load(), provider, keyID, model, now, lease)
	if ok {
		m.now.Store(next)
	}
	return ok
}

// Refresh implements Board: nobody else knows anything.
func (m *Memory) Refresh(context.Context, time.Time) {}

// Pending implements Board.
func (m *Memory) Pending() bool { return false }

// Share implements Board: there is nobody to share with.
func (m *Memory) Share(context.Context, time.Time) {}

// List is what is not healthy at now, for operators: one Status per degraded scope, sorted
// by provider, key and model.
func (m *Memory) List(now time.Time) []Status { return m.now.Load().list(now) }

// view is a state at one instant.
type view struct {
	state *state
	now   time.Time
}

func (v view) Status(provider, keyID, model string) Status {
	return v.state.status(provider, keyID, model, v.now)
}

func (v view) Quiet() bool { return false }

// quiet is the view while nothing is degraded.
type quiet struct{}

func (quiet) Status(string, string, string) Status { return Status{} }
func (quiet) Quiet() bool                          { return true }
