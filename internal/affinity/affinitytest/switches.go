package affinitytest

import (
	"time"

	"switchboard/internal/affinity"
)

func switchCounts(k *keyboard) {
	want := k.serves("s1", a())
	for i, to := range []affinity.Target{b(), c(), a(), a2()} {
		k.passes(time.Minute)
		request := string(rune('A' + i))
		got := k.switches(want, to, request, 100)
		want.Target, want.LastSwitchRequestID = to, request
		want.Epoch++
		want.SwitchCount++
		want.SwitchCostNanoUSD += 100
		want.LastUsedAt, want.ExpiresAt = k.now, k.now.Add(k.idle)
		k.same("IncrementSwitch", got, want)
		k.sees("s1", want)
	}
	if want.SwitchCount != 4 || want.SwitchCostNanoUSD != 400 {
		k.Fatalf("after four switches: %+v", want)
	}
}

func switchAsRead(k *keyboard) {
	read := k.serves("s1", a())
	moved := k.switches(read, b(), "r1", 10)
	got, err := k.increment(read, c(), "r2", 10)
	k.conflict("IncrementSwitch to elsewhere", got, err, moved)
	got, err = k.increment(read, b(), "r3", 10)
	k.conflict("IncrementSwitch to where it went", got, err, moved)

	// Back on the same provider and key, but not the same pin: the epoch tells.
	back := k.switches(moved, a(), "r4", 10)
	got, err = k.increment(read, c(), "r5", 10)
	k.conflict("IncrementSwitch of an older epoch", got, err, back)

	// The request that moved it first may not be taken for a repeat now.
	got, err = k.increment(read, b(), "r1", 10)
	k.conflict("IncrementSwitch repeated too late", got, err, back)
	k.sees("s1", back)
}

func switchOfAClaim(k *keyboard) {
	claim := k.claims("s1", a())
	got, err := k.increment(claim, b(), "r1", 10)
	k.conflict("IncrementSwitch of a claim", got, err, claim)
	k.sees("s1", claim)
}

// repeats: the answer to a write got lost and the same write comes again. It is success,
// changes nothing and returns the row.
func repeats(k *keyboard) {
	claim := k.claims("s1", a())
	k.same("Assign again", k.claims("s1", a()), claim)

	served := k.confirms(claim)
	k.same("Confirm again", k.confirms(claim), served)

	moved := k.switches(served, b(), "r1", 10)
	for range 3 {
		k.same("IncrementSwitch again", k.switches(served, b(), "r1", 10), moved)
	}
	// A moment later is still the same write.
	k.passes(time.Second)
	got := k.switches(served, b(), "r1", 10)
	if got.SwitchCount != 1 || got.SwitchCostNanoUSD != 10 || got.Epoch != moved.Epoch {
		k.Fatalf("IncrementSwitch repeated later = %+v, want one switch", got)
	}

	claim = k.claims("s2", a())
	want := k.reassigns(claim, b())
	k.same("Reassign again", k.reassigns(claim, b()), want)
	k.sees("s2", want)

	claim = k.claims("s3", a())
	k.withdraws(claim)
	k.withdraws(claim)
	k.seesNone("s3")
}
