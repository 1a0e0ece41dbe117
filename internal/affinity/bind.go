package affinity

import (
	"context"
	"errors"
	"time"

	"switchboard/internal/budget"
)

// Binder is the one loop that binds sessions to targets over a Store. It owns the time
// budget: a store that is slow or down never fails a request (DESIGN 6).
type Binder struct {
	Store  Store
	Idle   time.Duration // an unused pin lives this long
	Budget time.Duration // for one store call before first output
}

// State says how a request relates to its pin.
type State string

// States of a Binding; they are the event's affinity field.
const (
	StateNone     State = "none"     // no session, or pins are off
	StatePinned   State = "pinned"   // a pin was found or adopted
	StateAssigned State = "assigned" // this request made the pin
	StateUnknown  State = "unknown"  // the store did not answer
)

// Binding is one request's view of its pin. Not for concurrent use.
type Binding struct {
	binder  *Binder
	ref     Ref
	state   State
	pin     *Pin // as last read or written
	stale   *Pin // a live row that names what is no longer configured
	claimed bool // this request wrote the tentative claim
	// unsettled is the Commit to which the store did not answer in time: it may have written it.
	unsettled *Commitment
	err       error
}

// Unbound is the binding of a request without a pin.
func Unbound() *Binding { return &Binding{state: StateNone} }

// Lookup reads the pin. usable says whether its provider and key are still configured; a
// pin that is not is treated as none and replaced by the next Claim.
func (b *Binder) Lookup(ctx context.Context, ref Ref, now time.Time, usable func(Target) bool) *Binding {
	binding := &Binding{binder: b, ref: ref, state: StateNone}
	ctx, release := budget.With(ctx, b.Budget)
	defer release()
	pin, err := b.Store.Lookup(ctx, ref, now)
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		binding.fault(err)
	case usable(pin.Target):
		binding.adopt(pin)
	default:
		binding.stale = &pin
	}
	return binding
}

// Pin is the pin to route by, or nil.
func (b *Binding) Pin() *Pin { return b.pin }

// Bound tells whether the request may have a pin at all.
func (b *Binding) Bound() bool { return b.binder != nil }

// State says how the request relates to its pin now.
func (b *Binding) State() State { return b.state }

// Err is the first fault of the store, for the log; nil when it answered.
func (b *Binding) Err() error { return b.err }

// Claim writes request requestID's tentative claim for to, before the upstream call. When another request
// was first, its pin is adopted instead: adopted is then true and the caller decides again
// with Pin. Without a store, or after a fault, it does nothing.
func (b *Binding) Claim(ctx context.Context, to Target, requestID, userPath, clientSessionID string, now time.Time) (adopted bool) {
	if b.binder == nil || b.pin != nil || b.state == StateUnknown {
		return false
	}
	ctx, release := budget.With(ctx, b.binder.Budget)
	defer release()
	pin, err := b.binder.Store.Assign(ctx, b.fresh(to, requestID, userPath, clientSessionID, false), b.stale, now, b.binder.Idle)
	switch {
	case errors.Is(err, ErrConflict):
		b.adopt(pin)
		return true
	case err != nil:
		b.fault(err)
	default:
		b.pin, b.claimed, b.state = &pin, true, StateAssigned
	}
	return false
}

// Commitment is what a first output is worth to the pin.
type Commitment struct {
	To              Target
	RequestID       string
	SwitchCost      func(read Pin) int64 // nano-USD of resending the session to a cold cache
	UserPath        string
	ClientSessionID string
}

// commitTries bounds how often Commit decides again after a lost race. Each loss means that
// another request of the same session moved the pin in between.
const commitTries = 4

// Commit settles the pin once c.To has answered, before the client sees the first byte:
// it confirms a tentative claim, moves it uncounted, or counts a switch. Exactly one of
// racing requests counts; the others adopt its pin. switched tells whether this one did.
func (b *Binding) Commit(ctx context.Context, c Commitment, now time.Time) (switched bool) {
	if b.binder == nil || b.pin == nil || b.pin.Served && b.pin.Same(c.To) {
		return false
	}
	ctx, release := budget.With(context.WithoutCancel(ctx), b.binder.Budget)
	defer release()
	left := b.pin.Target // where this request did not stay
	for range commitTries {
		pin, counted, err := b.settle(ctx, c, now)
		switch {
		case err == nil:
			b.pin = &pin
			return counted
		case errors.Is(err, ErrConflict):
			b.pin = &pin
			if pin.Same(c.To) && pin.Served || !pin.Same(left) && !pin.Same(c.To) {
				return false // somebody else's move stands
			}
		default:
			b.unsettled = &c
			b.fault(err)
			return false
		}
	}
	return false
}

// Settle makes the write of a Commit again to which the store did not answer, within limit:
// else its switch may stand in the row and be nobody's. Call it when no client waits. By its
// request the write is recognised, so that it counts once; switched is as for Commit. What
// others have made of the pin meanwhile stands. The state stays unknown.
func (b *Binding) Settle(ctx context.Context, now time.Time, limit time.Duration) (switched bool) {
	if b.unsettled == nil {
		return false
	}
	ctx, release := budget.With(context.WithoutCancel(ctx), limit)
	defer release()
	pin, counted, err := b.write(ctx, *b.unsettled, now)
	switch {
	case err == nil, errors.Is(err, ErrConflict):
		b.pin, b.unsettled = &pin, nil
	case errors.Is(err, ErrNotFound):
		b.unsettled = nil
	default:
		b.fault(err)
	}
	return counted && err == nil
}

// settle makes the one write that the pin as read asks for, or a new pin when it has gone.
func (b *Binding) settle(ctx context.Context, c Commitment, now time.Time) (pin Pin, counted bool, err error) {
	pin, counted, err = b.write(ctx, c, now)
	if errors.Is(err, ErrNotFound) {
		counted = false
		pin, err = b.binder.Store.Assign(ctx, b.fresh(c.To, c.RequestID, c.UserPath, c.ClientSessionID, true), nil, now, b.binder.Idle)
	}
	return pin, counted && err == nil, err
}

func (b *Binding) write(ctx context.Context, c Commitment, now time.Time) (pin Pin, counted bool, err error) {
	store, idle, read := b.binder.Store, b.binder.Idle, *b.pin
	switch {
	case read.Same(c.To):
		pin, err = store.Confirm(ctx, read, now, idle)
	case !read.Served:
		pin, err = store.Reassign(ctx, read, c.To, now, idle)
	default:
		counted = true
		move := Move{To: c.To, RequestID: c.RequestID, CostNanoUSD: c.SwitchCost(read)}
		pin, err = store.IncrementSwitch(ctx, read, move, now, idle)
	}
	return pin, counted, err
}

// Release withdraws this request's claim when nobody answered.
func (b *Binding) Release(ctx context.Context) {
	if !b.claimed {
		return
	}
	ctx, release := budget.With(context.WithoutCancel(ctx), b.binder.Budget)
	defer release()
	if err := b.binder.Store.Withdraw(ctx, *b.pin); err != nil {
		b.fault(err)
		return
	}
	b.pin, b.claimed, b.state = nil, false, StateNone
}

// AddUsage books a finished request on the pin. The store may take until limit is over.
func (b *Binding) AddUsage(ctx context.Context, usage Usage, now time.Time, limit time.Duration) {
	if b.binder == nil || b.pin == nil {
		return
	}
	ctx, release := budget.With(context.WithoutCancel(ctx), limit)
	defer release()
	if err := b.binder.Store.AddUsage(ctx, b.ref, usage, now, b.binder.Idle); err != nil {
		b.fault(err)
	}
}

func (b *Binding) adopt(pin Pin) { b.pin, b.state = &pin, StatePinned }

func (b *Binding) fault(err error) {
	b.state = StateUnknown
	if b.err == nil {
		b.err = err
	}
}

func (b *Binding) fresh(to Target, requestID, userPath, clientSessionID string, served bool) Pin {
	return Pin{
		Ref: b.ref, Target: to, UserPath: userPath, ClientSessionID: clientSessionID,
		Served: served, LastSwitchRequestID: requestID,
	}
}
