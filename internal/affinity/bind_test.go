package affinity_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/mem"
)

var (
	ref  = affinity.Ref{SessionKey: "s1", Model: "m"}
	toA  = affinity.Target{Provider: "A", KeyID: "1", Model: "m", Surface: "openai-chat-completions"}
	toB  = affinity.Target{Provider: "B", KeyID: "1", Model: "m", Surface: "openai-chat-completions"}
	toC  = affinity.Target{Provider: "C", KeyID: "1", Model: "m", Surface: "openai-chat-completions"}
	noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
)

const idle = 6 * time.Hour

func binder(store affinity.Store) *affinity.Binder {
	return &affinity.Binder{Store: store, Idle: idle, Budget: time.Second}
}

func any1(affinity.Target) bool { return true }

func commitment(to affinity.Target, request string) affinity.Commitment {
	return affinity.Commitment{To: to, RequestID: request, SwitchCost: func(affinity.Pin) int64 { return 7 }}
}

// served returns a store in which s1 has been served by to, switches times moved before.
func served(t *testing.T, to affinity.Target, switches int64) *mem.Store {
	t.Helper()
	store := &mem.Store{}
	store.Put(affinity.Pin{
		Ref: ref, Target: to, Served: true, Epoch: 1 + switches, SwitchCount: switches,
		AssignedAt: noon, LastUsedAt: noon, ExpiresAt: noon.Add(idle),
	})
	return store
}

func onlyPin(t *testing.T, store *mem.Store) affinity.Pin {
	t.Helper()
	pins := store.Pins()
	if len(pins) != 1 {
		t.Fatalf("Pins() = %d rows, want 1", len(pins))
	}
	return pins[0]
}

func TestFirstRequestClaimsThenConfirms(t *testing.T) {
	store := &mem.Store{}
	b := binder(store).Lookup(t.Context(), ref, noon, any1)
	if b.Pin() != nil || b.State() != affinity.StateNone {
		t.Fatalf("Lookup() = %v, %v, want no pin", b.Pin(), b.State())
	}
	if adopted := b.Claim(t.Context(), toA, "claim by b", "/t", "id", noon); adopted {
		t.Fatal("Claim() adopted a pin of nobody")
	}
	if pin := onlyPin(t, store); pin.Served || pin.Target != toA {
		t.Errorf("claim = %+v, want a tentative one for A", pin)
	}
	if switched := b.Commit(t.Context(), commitment(toA, "r0"), noon); switched {
		t.Error("Commit() counted a first assignment")
	}
	if pin := onlyPin(t, store); !pin.Served || pin.SwitchCount != 0 || b.State() != affinity.StateAssigned {
		t.Errorf("pin = %+v, state %v, want served, not switched, assigned", pin, b.State())
	}
}

// S-AFF-03: the row names the server that answered, uncounted, and there is none if nobody did.
func TestFirstRequestThatFailsOver(t *testing.T) {
	store := &mem.Store{}
	b := binder(store).Lookup(t.Context(), ref, noon, any1)
	b.Claim(t.Context(), toA, "claim by b", "", "id", noon)
	if b.Commit(t.Context(), commitment(toB, "r0"), noon) {
		t.Error("Commit() counted the failover of a first assignment")
	}
	if pin := onlyPin(t, store); pin.Target != toB || !pin.Served || pin.SwitchCount != 0 {
		t.Errorf("pin = %+v, want served by B, uncounted", pin)
	}

	none := &mem.Store{}
	b = binder(none).Lookup(t.Context(), ref, noon, any1)
	b.Claim(t.Context(), toA, "claim by b", "", "id", noon)
	b.Release(t.Context())
	if pins := none.Pins(); len(pins) != 0 {
		t.Errorf("Pins() after nobody answered = %v, want none", pins)
	}
}

// S-DB-02: the loser of a first burst adopts the winner's pin before it calls upstream.
func TestLoserOfAClaimAdoptsTheWinner(t *testing.T) {
	store := &mem.Store{}
	one := binder(store).Lookup(t.Context(), ref, noon, any1)
	two := binder(store).Lookup(t.Context(), ref, noon, any1)
	one.Claim(t.Context(), toA, "claim by one", "", "id", noon)
	if adopted := two.Claim(t.Context(), toB, "claim by two", "", "id", noon); !adopted || two.Pin().Target != toA {
		t.Fatalf("Claim() = %v, pin %v, want A adopted", adopted, two.Pin())
	}
	// The winner gives up; the loser, which was served, makes the row anew.
	one.Release(t.Context())
	two.Commit(t.Context(), commitment(toA, "r1"), noon)
	if pin := onlyPin(t, store); pin.Target != toA || !pin.Served {
		t.Errorf("pin = %+v, want served by A", pin)
	}
}

// Of two requests that claim the same target in the same second, one has the claim. The other
// must not take it for its own: it would withdraw it when it fails.
func TestEqualClaimsHaveOneOwner(t *testing.T) {
	store := &mem.Store{}
	one := binder(store).Lookup(t.Context(), ref, noon, any1)
	two := binder(store).Lookup(t.Context(), ref, noon, any1)
	one.Claim(t.Context(), toA, "r1", "", "id", noon)
	if adopted := two.Claim(t.Context(), toA, "r2", "", "id", noon); !adopted || two.State() != affinity.StatePinned {
		t.Errorf("Claim() = %v, state %v, want the other's adopted", adopted, two.State())
	}
	two.Release(t.Context())
	if pin := onlyPin(t, store); pin.Target != toA || pin.LastSwitchRequestID != "r1" {
		t.Errorf("pin = %+v, want the claim of r1", pin)
	}
}

// A request that adopted a claim and had to leave it counts only if the claim had served by then.
func TestLeavingAnAdoptedClaim(t *testing.T) {
	for _, one := range []struct {
		name    string
		confirm bool
		want    int64
	}{{"never served", false, 0}, {"served meanwhile", true, 1}} {
		t.Run(one.name, func(t *testing.T) {
			store := &mem.Store{}
			winner := binder(store).Lookup(t.Context(), ref, noon, any1)
			winner.Claim(t.Context(), toA, "claim by winner", "", "id", noon)
			loser := binder(store).Lookup(t.Context(), ref, noon, any1)
			if one.confirm {
				winner.Commit(t.Context(), commitment(toA, "r0"), noon)
			}
			if got := loser.Commit(t.Context(), commitment(toB, "r1"), noon); got != one.confirm {
				t.Errorf("Commit() = %v, want %v", got, one.confirm)
			}
			if pin := onlyPin(t, store); pin.Target != toB || pin.SwitchCount != one.want {
				t.Errorf("pin = %+v, want B with %d switches", pin, one.want)
			}
		})
	}
}

// S-DB-03b: of many requests that saw A fail, one counts; S-AFF-01.
func TestSwitchIsCountedOnce(t *testing.T) {
	store := served(t, toA, 3)
	const racers = 50
	var wg sync.WaitGroup
	counted := make(chan bool, racers)
	bindings := make([]*affinity.Binding, racers) // all read the pin before any moves it
	for i := range bindings {
		bindings[i] = binder(store).Lookup(t.Context(), ref, noon, any1)
	}
	for i, b := range bindings {
		wg.Go(func() {
			to := toB
			if i%2 == 1 {
				to = toC
			}
			counted <- b.Commit(context.Background(), commitment(to, "r"+string(rune('0'+i))), noon)
		})
	}
	wg.Wait()
	close(counted)
	total := 0
	for one := range counted {
		if one {
			total++
		}
	}
	if pin := onlyPin(t, store); total != 1 || pin.SwitchCount != 4 || pin.SwitchCostNanoUSD != 7 {
		t.Errorf("%d counted, pin %+v, want one switch, the fourth", total, pin)
	}
}

// A served pin that is followed needs no write at all; another surface is no other place.
func TestFollowingAPinWritesNothing(t *testing.T) {
	store := served(t, toA, 0)
	b := binder(store).Lookup(t.Context(), ref, noon, any1)
	store.Fault = func(op string) (bool, error) { t.Errorf("store asked to %s", op); return false, nil }
	to := toA
	to.Surface = "openai-responses"
	if b.Commit(t.Context(), commitment(to, "r"), noon) {
		t.Error("Commit() counted")
	}
	b.Release(t.Context())
}

// S-DB-04a: a pin to what is no longer configured is replaced.
func TestStalePinIsReplaced(t *testing.T) {
	store := served(t, toA, 5)
	b := binder(store).Lookup(t.Context(), ref, noon, func(target affinity.Target) bool { return target.Provider != "A" })
	if b.Pin() != nil {
		t.Fatalf("Lookup() = %v, want none", b.Pin())
	}
	b.Claim(t.Context(), toB, "claim by b", "", "id", noon)
	b.Commit(t.Context(), commitment(toB, "r"), noon)
	if pin := onlyPin(t, store); pin.Target != toB || pin.SwitchCount != 0 {
		t.Errorf("pin = %+v, want a fresh one for B", pin)
	}
}

// S-DB-04c: a store that does not answer fails nothing and is not written to.
func TestStoreFaultIsUnknown(t *testing.T) {
	down := errors.New("down")
	for _, op := range []string{mem.OpLookup, mem.OpAssign, mem.OpConfirm} {
		t.Run(op, func(t *testing.T) {
			store := &mem.Store{Fault: func(got string) (bool, error) {
				if got == op {
					return false, down
				}
				return true, nil
			}}
			b := binder(store).Lookup(t.Context(), ref, noon, any1)
			b.Claim(t.Context(), toA, "claim by b", "", "id", noon)
			if b.Commit(t.Context(), commitment(toA, "r"), noon) {
				t.Error("Commit() counted")
			}
			if b.State() != affinity.StateUnknown || !errors.Is(b.Err(), down) {
				t.Errorf("State() = %v, Err() = %v, want unknown and the cause", b.State(), b.Err())
			}
		})
	}
}

// S-DB-03c: a switch whose answer got lost is recognised when it is written again.
func TestLostAnswerOfASwitch(t *testing.T) {
	store := served(t, toA, 0)
	b := binder(store).Lookup(t.Context(), ref, noon, any1)
	move := affinity.Move{To: toB, RequestID: "r0", CostNanoUSD: 7}
	if _, err := store.IncrementSwitch(t.Context(), *b.Pin(), move, noon, idle); err != nil {
		t.Fatal(err)
	}
	if !b.Commit(t.Context(), commitment(toB, "r0"), noon) {
		t.Error("Commit() = false, want its own write recognised")
	}
	if pin := onlyPin(t, store); pin.SwitchCount != 1 {
		t.Errorf("SwitchCount = %d, want 1", pin.SwitchCount)
	}
}

// S-DB-03c: a switch to which the store did not answer in time is settled when nobody waits
// any more, and counts once whether it had been written or not.
func TestSDB03UnansweredSwitchIsSettled(t *testing.T) {
	for _, applied := range []bool{true, false} {
		store, fail := served(t, toA, 0), true
		store.Fault = func(op string) (bool, error) {
			if op == mem.OpIncrementSwitch && fail {
				return applied, errors.New("no answer")
			}
			return true, nil
		}
		b := binder(store).Lookup(t.Context(), ref, noon, any1)
		if b.Commit(t.Context(), commitment(toB, "r0"), noon) || b.State() != affinity.StateUnknown {
			t.Errorf("applied %t: Commit() counted what was not answered, or State() = %v, want unknown", applied, b.State())
		}
		if b.Settle(t.Context(), noon, time.Second) {
			t.Errorf("applied %t: Settle() counted what was not answered again", applied)
		}
		fail = false
		if !b.Settle(t.Context(), noon, time.Second) {
			t.Errorf("applied %t: Settle() = false, want the switch counted", applied)
		}
		if b.Settle(t.Context(), noon, time.Second) {
			t.Errorf("applied %t: Settle() counted twice", applied)
		}
		if pin := onlyPin(t, store); pin.SwitchCount != 1 || !pin.Same(toB) {
			t.Errorf("applied %t: pin = %+v, want one switch to B", applied, pin)
		}
		if b.Pin().SwitchCount != 1 {
			t.Errorf("applied %t: Pin().SwitchCount = %d, want 1", applied, b.Pin().SwitchCount)
		}
	}
}

// What another request has made of the pin meanwhile stands.
func TestSettleLeavesWhatOthersMoved(t *testing.T) {
	store, fail := served(t, toA, 0), true
	store.Fault = func(op string) (bool, error) {
		if op == mem.OpIncrementSwitch && fail {
			return false, errors.New("no answer")
		}
		return true, nil
	}
	b := binder(store).Lookup(t.Context(), ref, noon, any1)
	other := binder(store).Lookup(t.Context(), ref, noon, any1)
	b.Commit(t.Context(), commitment(toB, "r0"), noon)
	fail = false
	if !other.Commit(t.Context(), commitment(toC, "r1"), noon) {
		t.Fatal("the other's Commit() = false, want it counted")
	}
	if b.Settle(t.Context(), noon, time.Second) {
		t.Error("Settle() counted over another's move")
	}
	if pin := onlyPin(t, store); pin.SwitchCount != 1 || !pin.Same(toC) {
		t.Errorf("pin = %+v, want the other's one switch to C", pin)
	}
	if b.Settle(t.Context(), noon, time.Second) || b.Pin() == nil || !b.Pin().Same(toC) {
		t.Errorf("then Pin() = %+v, want the other's, and nothing left to settle", b.Pin())
	}
}

// A pin that was cleared meanwhile is not made again.
func TestSettleLeavesWhatIsGone(t *testing.T) {
	store, fail := served(t, toA, 0), true
	store.Fault = func(op string) (bool, error) {
		if op == mem.OpIncrementSwitch && fail {
			return false, errors.New("no answer")
		}
		return true, nil
	}
	b := binder(store).Lookup(t.Context(), ref, noon, any1)
	b.Commit(t.Context(), commitment(toB, "r0"), noon)
	fail = false
	if b.Settle(t.Context(), noon.Add(2*idle), time.Second) {
		t.Error("Settle() counted a switch of a pin that has expired")
	}
	if _, err := store.Lookup(t.Context(), ref, noon.Add(2*idle)); !errors.Is(err, affinity.ErrNotFound) {
		t.Errorf("Lookup() = %v, want ErrNotFound", err)
	}
}
