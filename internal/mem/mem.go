// Package mem keeps pins, aliases and routing events in memory, for tests.
package mem

import (
	"context"
	"sync"
	"time"

	"switchboard/internal/affinity"
)

// Names of the operations that a Fault sees.
const (
	OpLookup          = "lookup"
	OpAssign          = "assign"
	OpConfirm         = "confirm"
	OpReassign        = "reassign"
	OpWithdraw        = "withdraw"
	OpIncrementSwitch = "increment_switch"
	OpAddUsage        = "add_usage"
	OpPutAlias        = "put_alias"
	OpLookupAlias     = "lookup_alias"
	OpRecord          = "record"
)

// Fault decides how an operation goes wrong. A nil error lets it go right. Otherwise
// applied says whether the write happened all the same, and err is what the caller sees:
// (true, err) is the answer that got lost, (false, err) the write that did. Reads have
// nothing to apply. It is called without locks held and may block, as a slow store does.
type Fault func(op string) (applied bool, err error)

// before asks the fault about op. run tells whether the operation takes place.
func (f Fault) before(ctx context.Context, op string) (run bool, err error) {
	if f != nil {
		if applied, err := f(op); err != nil {
			return applied, err
		}
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return true, nil
}

// Store keeps pins and aliases. The zero value is an empty store.
type Store struct {
	// Fault, when not nil, is asked before every operation. It is set before first use.
	Fault Fault

	mu      sync.Mutex
	pins    map[affinity.Ref]affinity.Pin
	aliases map[string]affinity.Alias
}

var (
	_ affinity.Store   = (*Store)(nil)
	_ affinity.Aliases = (*Store)(nil)
)

// Pins returns a copy of all rows, expired ones too.
func (s *Store) Pins() []affinity.Pin {
	s.mu.Lock()
	defer s.mu.Unlock()
	pins := make([]affinity.Pin, 0, len(s.pins))
	for _, pin := range s.pins {
		pins = append(pins, pin)
	}
	return pins
}

// Put writes a row as it is, without any condition.
func (s *Store) Put(pin affinity.Pin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(pin)
}

func (s *Store) put(pin affinity.Pin) {
	if s.pins == nil {
		s.pins = make(map[affinity.Ref]affinity.Pin)
	}
	s.pins[pin.Ref] = pin
}

// live returns the row unless it is missing or expired.
func (s *Store) live(ref affinity.Ref, now time.Time) (affinity.Pin, bool) {
	pin, ok := s.pins[ref]
	return pin, ok && pin.ExpiresAt.After(now)
}

// Lookup implements affinity.Store.
func (s *Store) Lookup(ctx context.Context, ref affinity.Ref, now time.Time) (affinity.Pin, error) {
	if _, err := s.Fault.before(ctx, OpLookup); err != nil {
		return affinity.Pin{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if pin, ok := s.live(ref, now); ok {
		return pin, nil
	}
	return affinity.Pin{}, affinity.ErrNotFound
}

// write runs one conditional write under the lock and the fault.
func (s *Store) write(ctx context.Context, op string, do func() (affinity.Pin, error)) (affinity.Pin, error) {
	run, fault := s.Fault.before(ctx, op)
	var pin affinity.Pin
	var err error
	if run {
		s.mu.Lock()
		pin, err = do()
		s.mu.Unlock()
	}
	if fault != nil {
		return affinity.Pin{}, fault
	}
	return pin, err
}

// Assign implements affinity.Store.
func (s *Store) Assign(ctx context.Context, p affinity.Pin, stale *affinity.Pin, now time.Time, idle time.Duration) (affinity.Pin, error) {
	return s.write(ctx, OpAssign, func() (affinity.Pin, error) {
		fresh := affinity.Pin{
			Ref: p.Ref, Target: p.Target, UserPath: p.UserPath, ClientSessionID: p.ClientSessionID,
			AssignedAt: second(now), LastUsedAt: second(now), ExpiresAt: second(now.Add(idle)),
			Served: p.Served, Epoch: 1, LastSwitchRequestID: p.LastSwitchRequestID,
		}
		row, ok := s.live(p.Ref, now)
		switch {
		case ok && row.ClaimedBy(&p):
			return row, nil // the repeat of a write whose answer got lost
		case ok && (stale == nil || !asRead(row, *stale)):
			return row, affinity.ErrConflict
		}
		s.put(fresh)
		return fresh, nil
	})
}

// Confirm implements affinity.Store.
func (s *Store) Confirm(ctx context.Context, read affinity.Pin, now time.Time, idle time.Duration) (affinity.Pin, error) {
	return s.change(ctx, OpConfirm, read.Ref, now, idle, func(row *affinity.Pin) bool {
		row.Served = true
		return asRead(*row, read)
	})
}

// Reassign implements affinity.Store.
func (s *Store) Reassign(ctx context.Context, read affinity.Pin, to affinity.Target, now time.Time, idle time.Duration) (affinity.Pin, error) {
	return s.change(ctx, OpReassign, read.Ref, now, idle, func(row *affinity.Pin) bool {
		switch {
		case row.Same(to):
			row.Served = true
			return true
		case row.Served || !asRead(*row, read):
			return false
		}
		row.Target, row.Served = to, true
		row.Epoch++
		return true
	})
}

// IncrementSwitch implements affinity.Store.
func (s *Store) IncrementSwitch(ctx context.Context, read affinity.Pin, move affinity.Move, now time.Time, idle time.Duration) (affinity.Pin, error) {
	return s.change(ctx, OpIncrementSwitch, read.Ref, now, idle, func(row *affinity.Pin) bool {
		switch {
		case row.SwitchCount > 0 && row.Same(move.To) && move.RequestID != "" && row.LastSwitchRequestID == move.RequestID:
			return true
		case !row.Served || !asRead(*row, read):
			return false
		}
		row.Target, row.LastSwitchRequestID = move.To, move.RequestID
		row.Epoch++
		row.SwitchCount++
		row.SwitchCostNanoUSD += move.CostNanoUSD
		return true
	})
}

// change applies decide to a live row and keeps the result when decide accepts it.
func (s *Store) change(ctx context.Context, op string, ref affinity.Ref, now time.Time, idle time.Duration, decide func(row *affinity.Pin) bool) (affinity.Pin, error) {
	return s.write(ctx, op, func() (affinity.Pin, error) {
		row, ok := s.live(ref, now)
		if !ok {
			return affinity.Pin{}, affinity.ErrNotFound
		}
		changed := row
		if !decide(&changed) {
			return row, affinity.ErrConflict
		}
		touch(&changed, now, idle)
		s.put(changed)
		return changed, nil
	})
}

// Withdraw implements affinity.Store.
func (s *Store) Withdraw(ctx context.Context, read affinity.Pin) error {
	_, err := s.write(ctx, OpWithdraw, func() (affinity.Pin, error) {
		if row, ok := s.pins[read.Ref]; ok && !row.Served && asRead(row, read) {
			delete(s.pins, read.Ref)
		}
		return affinity.Pin{}, nil
	})
	return err
}

// AddUsage implements affinity.Store.
func (s *Store) AddUsage(ctx context.Context, ref affinity.Ref, usage affinity.Usage, now time.Time, idle time.Duration) error {
	_, err := s.write(ctx, OpAddUsage, func() (affinity.Pin, error) {
		row, ok := s.live(ref, now)
		if !ok {
			return row, nil
		}
		row.InputTokens += usage.InputTokens
		row.OutputTokens += usage.OutputTokens
		row.CachedTokens += usage.CachedTokens
		row.CostNanoUSD += usage.CostNanoUSD
		row.Requests++
		if usage.InputTokens > 0 {
			row.LastInputTokens = usage.InputTokens
		}
		touch(&row, now, idle)
		s.put(row)
		return row, nil
	})
	return err
}

// PutAlias implements affinity.Aliases.
func (s *Store) PutAlias(ctx context.Context, a affinity.Alias) error {
	_, err := s.write(ctx, OpPutAlias, func() (affinity.Pin, error) {
		if s.aliases == nil {
			s.aliases = make(map[string]affinity.Alias)
		}
		a.ExpiresAt = second(a.ExpiresAt)
		s.aliases[a.ResponseID] = a
		return affinity.Pin{}, nil
	})
	return err
}

// LookupAlias implements affinity.Aliases.
func (s *Store) LookupAlias(ctx context.Context, responseID string, now time.Time) (affinity.Alias, error) {
	if _, err := s.Fault.before(ctx, OpLookupAlias); err != nil {
		return affinity.Alias{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a, ok := s.aliases[responseID]; ok && a.ExpiresAt.After(now) {
		return a, nil
	}
	return affinity.Alias{}, affinity.ErrNotFound
}

// asRead tells whether the row has not moved since it was read.
func asRead(row, read affinity.Pin) bool {
	return row.Provider == read.Provider && row.KeyID == read.KeyID && row.KeyPrint == read.KeyPrint && row.Epoch == read.Epoch
}

// touch moves the times forward, never back.
func touch(row *affinity.Pin, now time.Time, idle time.Duration) {
	if used := second(now); used.After(row.LastUsedAt) {
		row.LastUsedAt = used
	}
	if expires := second(now.Add(idle)); expires.After(row.ExpiresAt) {
		row.ExpiresAt = expires
	}
}

func second(t time.Time) time.Time { return time.Unix(t.Unix(), 0).UTC() }
