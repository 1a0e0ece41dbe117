package affinitytest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/affinity"
)

// Targets of the tests. a2 is another key of a's provider.
func a() affinity.Target  { return target("provider-a", "k1") }
func a2() affinity.Target { return target("provider-a", "k2") }
func b() affinity.Target  { return target("provider-b", "k1") }
func c() affinity.Target  { return target("provider-c", "k1") }

func target(provider, key string) affinity.Target {
	return affinity.Target{Provider: provider, KeyID: key, KeyPrint: "print of " + provider + " " + key, Model: "m-" + provider, Surface: "openai-chat-completions"}
}

// keyboard is one test's view of the store: its methods are the contract's verbs, in the
// third person when success is expected, and its clock stands until passes is called.
type keyboard struct {
	*testing.T
	Stores
	now  time.Time
	idle time.Duration
}

func (k *keyboard) ref(session string) affinity.Ref {
	return affinity.Ref{SessionKey: session, Model: "m-big"}
}

// passes moves the clock.
func (k *keyboard) passes(d time.Duration) { k.now = k.now.Add(d) }

// settles makes delayed writes visible.
func (k *keyboard) settles() {
	k.Helper()
	if k.Flush != nil {
		k.Flush(k.T)
	}
}

// pin is what a claim of session for to asks for.
func (k *keyboard) pin(session string, to affinity.Target) affinity.Pin {
	return affinity.Pin{Ref: k.ref(session), Target: to, UserPath: "/team/alpha", ClientSessionID: "client " + session, LastSwitchRequestID: "claim of " + session}
}

// fresh is the row that such a claim writes now.
func (k *keyboard) fresh(session string, to affinity.Target) affinity.Pin {
	pin := k.pin(session, to)
	pin.AssignedAt, pin.LastUsedAt, pin.ExpiresAt = k.now.Truncate(time.Second), k.now.Truncate(time.Second), k.now.Add(k.idle).Truncate(time.Second)
	pin.Epoch = 1
	return pin
}

// claims assigns and wants to win.
func (k *keyboard) claims(session string, to affinity.Target) affinity.Pin {
	k.Helper()
	return k.assigns(k.pin(session, to), nil)
}

func (k *keyboard) assigns(pin affinity.Pin, stale *affinity.Pin) affinity.Pin {
	k.Helper()
	got, err := k.Store.Assign(k.Context(), pin, stale, k.now, k.idle)
	k.ok("Assign", err)
	return got
}

// serves claims and confirms.
func (k *keyboard) serves(session string, to affinity.Target) affinity.Pin {
	k.Helper()
	return k.confirms(k.claims(session, to))
}

func (k *keyboard) confirms(read affinity.Pin) affinity.Pin {
	k.Helper()
	got, err := k.Store.Confirm(k.Context(), read, k.now, k.idle)
	k.ok("Confirm", err)
	return got
}

func (k *keyboard) reassigns(read affinity.Pin, to affinity.Target) affinity.Pin {
	k.Helper()
	got, err := k.Store.Reassign(k.Context(), read, to, k.now, k.idle)
	k.ok("Reassign", err)
	return got
}

func (k *keyboard) withdraws(read affinity.Pin) {
	k.Helper()
	k.ok("Withdraw", k.Store.Withdraw(k.Context(), read))
}

func (k *keyboard) switches(read affinity.Pin, to affinity.Target, requestID string, cost int64) affinity.Pin {
	k.Helper()
	got, err := k.increment(read, to, requestID, cost)
	k.ok("IncrementSwitch", err)
	return got
}

func (k *keyboard) increment(read affinity.Pin, to affinity.Target, requestID string, cost int64) (affinity.Pin, error) {
	move := affinity.Move{To: to, RequestID: requestID, CostNanoUSD: cost}
	return k.Store.IncrementSwitch(k.Context(), read, move, k.now, k.idle)
}

func (k *keyboard) uses(session string, usage affinity.Usage) {
	k.Helper()
	k.ok("AddUsage", k.Store.AddUsage(k.Context(), k.ref(session), usage, k.now, k.idle))
}

// sees looks the session up and wants this pin.
func (k *keyboard) sees(session string, want affinity.Pin) {
	k.Helper()
	got, err := k.Store.Lookup(k.Context(), k.ref(session), k.now)
	k.ok("Lookup", err)
	k.same("Lookup", got, want)
}

// look returns the session's pin.
func (k *keyboard) look(session string) affinity.Pin {
	k.Helper()
	got, err := k.Store.Lookup(k.Context(), k.ref(session), k.now)
	k.ok("Lookup", err)
	return got
}

// seesNone looks the session up and wants nothing.
func (k *keyboard) seesNone(session string) {
	k.Helper()
	got, err := k.Store.Lookup(k.Context(), k.ref(session), k.now)
	k.notFound("Lookup", got, err)
}

func (k *keyboard) ok(op string, err error) {
	k.Helper()
	if err != nil {
		k.Fatalf("%s: %v, want success", op, err)
	}
}

func (k *keyboard) same(op string, got, want affinity.Pin) {
	k.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		k.Fatalf("%s: pin differs (-want +got):\n%s", op, diff)
	}
}

// conflict wants ErrConflict, with the row as it is.
func (k *keyboard) conflict(op string, got affinity.Pin, err error, want affinity.Pin) {
	k.Helper()
	if !errors.Is(err, affinity.ErrConflict) {
		k.Fatalf("%s: error %v, want ErrConflict", op, err)
	}
	k.same(op+" (conflict)", got, want)
}

func (k *keyboard) notFound(op string, got affinity.Pin, err error) {
	k.Helper()
	if !errors.Is(err, affinity.ErrNotFound) {
		k.Fatalf("%s = %+v, %v, want ErrNotFound", op, got, err)
	}
}

// ended is a context that has ended.
func (k *keyboard) ended() context.Context {
	ctx, cancel := context.WithCancel(k.Context())
	cancel()
	return ctx
}
