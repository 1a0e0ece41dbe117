package affinitytest

import (
	"context"
	"errors"

	"switchboard/internal/affinity"
)

func usageAddsUp(k *keyboard) {
	want := k.serves("s1", a())
	k.uses("s1", affinity.Usage{InputTokens: 1000, OutputTokens: 20, CachedTokens: 0, CostNanoUSD: 2_000_000})
	k.uses("s1", affinity.Usage{InputTokens: 1200, OutputTokens: 30, CachedTokens: 900, CostNanoUSD: 500_001})
	k.settles()
	want.InputTokens, want.OutputTokens, want.CachedTokens = 2200, 50, 900
	want.CostNanoUSD, want.Requests, want.LastInputTokens = 2_500_001, 2, 1200
	k.sees("s1", want)

	// Unknown usage counts the request and leaves the last prompt as it was.
	k.uses("s1", affinity.Usage{})
	k.settles()
	want.Requests = 3
	k.sees("s1", want)

	// A move keeps the sums.
	got := k.switches(want, b(), "r1", 7)
	want.Target, want.LastSwitchRequestID = b(), "r1"
	want.Epoch, want.SwitchCount, want.SwitchCostNanoUSD = 2, 1, 7
	k.same("IncrementSwitch", got, want)
	k.sees("s1", want)
}

func usageOfNobody(k *keyboard) {
	k.uses("s1", affinity.Usage{InputTokens: 5})
	k.settles()
	k.seesNone("s1")
	k.same("Assign", k.claims("s1", a()), k.fresh("s1", a()))
	k.settles()
	k.sees("s1", k.fresh("s1", a()))
}

// largeNumbers are exact beyond what a float keeps.
func largeNumbers(k *keyboard) {
	const big = 1<<53 + 1
	want := k.serves("s1", a())
	k.uses("s1", affinity.Usage{InputTokens: big, OutputTokens: big, CachedTokens: big, CostNanoUSD: big})
	k.uses("s1", affinity.Usage{OutputTokens: 2, CostNanoUSD: 2})
	k.settles()
	want.InputTokens, want.OutputTokens, want.CachedTokens, want.CostNanoUSD = big, big+2, big, big+2
	want.LastInputTokens, want.Requests = big, 2
	k.sees("s1", want)
	if got := k.switches(want, b(), "r1", big); got.SwitchCostNanoUSD != big {
		k.Fatalf("SwitchCostNanoUSD = %d, want %d", got.SwitchCostNanoUSD, int64(big))
	}
}

// endedContext: the caller has gone. It gets its context's error, and the store still works.
func endedContext(k *keyboard) {
	ctx, pin := k.ended(), k.claims("s1", a())
	wants := func(op string, err error) {
		k.Helper()
		if !errors.Is(err, context.Canceled) {
			k.Errorf("%s with an ended context: %v, want %v", op, err, context.Canceled)
		}
	}
	_, err := k.Store.Lookup(ctx, pin.Ref, k.now)
	wants("Lookup", err)
	_, err = k.Store.Assign(ctx, k.pin("s2", a()), nil, k.now, k.idle)
	wants("Assign", err)
	_, err = k.Store.Confirm(ctx, pin, k.now, k.idle)
	wants("Confirm", err)
	_, err = k.Store.Reassign(ctx, pin, b(), k.now, k.idle)
	wants("Reassign", err)
	_, err = k.Store.IncrementSwitch(ctx, pin, affinity.Move{To: b(), RequestID: "r"}, k.now, k.idle)
	wants("IncrementSwitch", err)
	wants("Withdraw", k.Store.Withdraw(ctx, pin))
	wants("AddUsage", k.Store.AddUsage(ctx, pin.Ref, affinity.Usage{InputTokens: 1}, k.now, k.idle))
	k.serves("s3", a())
}

// peerSees: what has returned is seen by every process.
func peerSees(k *keyboard) {
	if k.Peer == nil {
		k.Skip("the backend has no second way to its rows")
	}
	peer := *k
	peer.Store, peer.Peer = k.Peer, k.Store
	pin := k.claims("s1", a())
	peer.sees("s1", pin)
	pin = peer.confirms(pin)
	k.sees("s1", pin)
	pin = k.switches(pin, b(), "r1", 1)
	peer.sees("s1", pin)
	got, err := peer.Store.Assign(k.Context(), k.pin("s1", c()), nil, k.now, k.idle)
	k.conflict("Assign by the peer", got, err, pin)
	pin = peer.switches(pin, c(), "r2", 1)
	k.sees("s1", pin)
	tentative := peer.claims("s2", a())
	k.withdraws(tentative)
	peer.seesNone("s2")
}
