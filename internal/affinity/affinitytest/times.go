package affinitytest

import (
	"time"

	"switchboard/internal/affinity"
)

// expired: the row is there, its time is over. The caller's clock decides.
func expired(k *keyboard) {
	pin := k.serves("s1", a())
	k.switches(pin, b(), "r1", 10)
	k.uses("s1", affinity.Usage{InputTokens: 10, OutputTokens: 1})
	k.settles()
	pin = k.look("s1")

	start := k.now
	k.now = pin.ExpiresAt.Add(-time.Millisecond)
	k.sees("s1", pin)
	k.now = pin.ExpiresAt
	k.seesNone("s1")

	got, err := k.Store.Confirm(k.Context(), pin, k.now, k.idle)
	k.notFound("Confirm", got, err)
	got, err = k.Store.Reassign(k.Context(), pin, c(), k.now, k.idle)
	k.notFound("Reassign", got, err)
	got, err = k.increment(pin, c(), "r2", 1)
	k.notFound("IncrementSwitch", got, err)
	k.uses("s1", affinity.Usage{InputTokens: 1000})
	k.settles()
	k.seesNone("s1")

	// A caller whose clock is late still sees it: nothing above has written.
	k.now = start
	k.sees("s1", pin)

	// A new claim starts from nothing.
	k.now = pin.ExpiresAt
	k.same("Assign over an expired row", k.claims("s1", c()), k.fresh("s1", c()))
	k.sees("s1", k.fresh("s1", c()))
	k.settles()
	k.sees("s1", k.fresh("s1", c()))
}

func expiryMovesOn(k *keyboard) {
	k.serves("s1", a())
	for range 5 {
		k.passes(k.idle - time.Second)
		k.uses("s1", affinity.Usage{InputTokens: 1})
		k.settles()
		pin := k.look("s1")
		if want := k.now.Add(k.idle); !pin.ExpiresAt.Equal(want) || !pin.LastUsedAt.Equal(k.now) {
			k.Fatalf("after use at %v: last used %v, expires %v, want expiry %v", k.now, pin.LastUsedAt, pin.ExpiresAt, want)
		}
	}
	k.passes(k.idle)
	k.seesNone("s1")
}

// timesNeverMoveBack: another instance's clock is 90 s late, and asks for a shorter life.
func timesNeverMoveBack(k *keyboard) {
	claim := k.claims("s1", a())
	tentative := k.claims("s2", a())
	k.passes(-90 * time.Second)
	want := claim
	want.Served = true
	k.same("Confirm by a late clock", k.confirms(claim), want)

	want.Target, want.Epoch, want.SwitchCount, want.LastSwitchRequestID = b(), 2, 1, "r1"
	k.same("IncrementSwitch by a late clock", k.switches(claim, b(), "r1", 0), want)

	k.uses("s1", affinity.Usage{InputTokens: 5})
	k.settles()
	want.InputTokens, want.LastInputTokens, want.Requests = 5, 5, 1
	k.sees("s1", want)

	moved := k.reassigns(tentative, b())
	if !moved.LastUsedAt.Equal(tentative.LastUsedAt) || !moved.ExpiresAt.Equal(tentative.ExpiresAt) {
		k.Fatalf("Reassign by a late clock moved times back: %+v", moved)
	}

	// last_used_at goes on, while the expiry, later already, stays.
	k.passes(2 * time.Minute)
	k.idle = time.Minute
	k.uses("s1", affinity.Usage{})
	k.settles()
	want.LastUsedAt = k.now
	want.Requests = 2
	k.sees("s1", want)
}

func precision(k *keyboard) {
	k.passes(123456789 * time.Nanosecond)
	want := k.fresh("s1", a())
	k.same("Assign", k.claims("s1", a()), want)
	k.sees("s1", want)
	k.now = k.now.In(time.FixedZone("elsewhere", 5*3600))
	k.sees("s1", want)
	k.passes(time.Second)
	got := k.confirms(want)
	if got.LastUsedAt.Location() != time.UTC || got.LastUsedAt.Nanosecond() != 0 || got.ExpiresAt.Nanosecond() != 0 {
		k.Fatalf("Confirm: last used %v, expires %v, want whole seconds in UTC", got.LastUsedAt, got.ExpiresAt)
	}
	k.sees("s1", got)
}
