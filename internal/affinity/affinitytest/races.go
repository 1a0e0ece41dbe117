package affinitytest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"switchboard/internal/affinity"
)

const contenders = 200

// race runs do for every contender at once; with a Peer, half of them go there. do returns
// what the store said. Exactly one may win; everybody else must get the winner's pin.
func (k *keyboard) race(op string, do func(store affinity.Store, n int) (affinity.Pin, error)) affinity.Pin {
	k.Helper()
	pins, errs := make([]affinity.Pin, contenders), make([]error, contenders)
	start := make(chan struct{})
	var group sync.WaitGroup
	for n := range contenders {
		store := k.Store
		if k.Peer != nil && n%2 == 1 {
			store = k.Peer
		}
		group.Go(func() {
			<-start
			pins[n], errs[n] = do(store, n)
		})
	}
	close(start)
	group.Wait()

	winner := -1
	for n, err := range errs {
		switch {
		case err == nil && winner >= 0:
			k.Fatalf("%s: contenders %d and %d both won", op, winner, n)
		case err == nil:
			winner = n
		case !errors.Is(err, affinity.ErrConflict):
			k.Fatalf("%s: contender %d: %v", op, n, err)
		}
	}
	if winner < 0 {
		k.Fatalf("%s: nobody of %d won", op, contenders)
	}
	for n, pin := range pins {
		k.same(fmt.Sprintf("%s: contender %d's view of winner %d", op, n, winner), pin, pins[winner])
	}
	return pins[winner]
}

func (k *keyboard) contender(n int) affinity.Target {
	return target(fmt.Sprintf("provider-%d", n%3), fmt.Sprintf("key-%d", n))
}

func parallelClaims(k *keyboard) {
	won := k.race("Assign", func(store affinity.Store, n int) (affinity.Pin, error) {
		return store.Assign(k.Context(), k.pin("s1", k.contender(n)), nil, k.now, k.idle)
	})
	k.same("Assign", won, k.fresh("s1", won.Target))
	k.sees("s1", won)
}

// parallelClaimsOfOneTarget: they differ in nothing but the request.
func parallelClaimsOfOneTarget(k *keyboard) {
	won := k.race("Assign", func(store affinity.Store, n int) (affinity.Pin, error) {
		return store.Assign(k.Context(), by(k.pin("s1", a()), fmt.Sprint("r", n)), nil, k.now, k.idle)
	})
	k.same("Assign", won, by(k.fresh("s1", a()), won.LastSwitchRequestID))
	k.sees("s1", won)
}

func parallelClaimsOverExpired(k *keyboard) {
	old := k.serves("s1", a())
	k.switches(old, b(), "r1", 3)
	k.passes(k.idle + time.Second)
	won := k.race("Assign", func(store affinity.Store, n int) (affinity.Pin, error) {
		return store.Assign(k.Context(), k.pin("s1", k.contender(n)), nil, k.now, k.idle)
	})
	k.same("Assign", won, k.fresh("s1", won.Target))
	k.sees("s1", won)
}

func parallelSwitches(k *keyboard) {
	read := k.serves("s1", a())
	won := k.race("IncrementSwitch", func(store affinity.Store, n int) (affinity.Pin, error) {
		move := affinity.Move{To: k.contender(n), RequestID: fmt.Sprint("r", n), CostNanoUSD: 10}
		return store.IncrementSwitch(k.Context(), read, move, k.now, k.idle)
	})
	if won.SwitchCount != 1 || won.Epoch != read.Epoch+1 || won.SwitchCostNanoUSD != 10 {
		k.Fatalf("after %d parallel switches: %+v, want one counted", contenders, won)
	}
	k.sees("s1", won)
}

func parallelSwitchesToOneTarget(k *keyboard) {
	read := k.serves("s1", a())
	won := k.race("IncrementSwitch", func(store affinity.Store, n int) (affinity.Pin, error) {
		move := affinity.Move{To: b(), RequestID: fmt.Sprint("r", n), CostNanoUSD: 10}
		return store.IncrementSwitch(k.Context(), read, move, k.now, k.idle)
	})
	if won.SwitchCount != 1 || !won.Same(b()) {
		k.Fatalf("after %d parallel switches: %+v, want one counted", contenders, won)
	}
	k.sees("s1", won)
}

func parallelReassigns(k *keyboard) {
	read := k.claims("s1", a())
	won := k.race("Reassign", func(store affinity.Store, n int) (affinity.Pin, error) {
		return store.Reassign(k.Context(), read, k.contender(n), k.now, k.idle)
	})
	if won.SwitchCount != 0 || won.Epoch != 2 || !won.Served {
		k.Fatalf("after %d parallel reassigns: %+v, want one, not counted", contenders, won)
	}
	k.sees("s1", won)
}

func parallelUsage(k *keyboard) {
	want := k.serves("s1", a())
	var group sync.WaitGroup
	errs := make([]error, 20)
	for n := range errs {
		group.Go(func() {
			usage := affinity.Usage{InputTokens: 10, OutputTokens: 1, CachedTokens: 2, CostNanoUSD: 3}
			errs[n] = k.Store.AddUsage(k.Context(), k.ref("s1"), usage, k.now, k.idle)
		})
	}
	group.Wait()
	k.ok("AddUsage", errors.Join(errs...))
	k.settles()
	want.InputTokens, want.OutputTokens, want.CachedTokens, want.CostNanoUSD = 200, 20, 40, 60
	want.Requests, want.LastInputTokens = 20, 10
	k.sees("s1", want)
}

// repeatedSwitches: every contender writes everything twice, as a client that lost the
// answer does, and moves on from what it is told. The count is the number of moves.
func repeatedSwitches(k *keyboard) {
	start := k.serves("s1", a())
	const workers, moves = 8, 10
	won := make([]int64, workers)
	errs := make([]error, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			read := start
			for won[w] < moves {
				move := affinity.Move{To: target("provider", fmt.Sprint(w, "-", won[w])), RequestID: fmt.Sprint("r", w, "-", won[w])}
				pin, err := k.Store.IncrementSwitch(k.Context(), read, move, k.now, k.idle)
				if again, errAgain := k.Store.IncrementSwitch(k.Context(), read, move, k.now, k.idle); err == nil && errAgain != nil {
					pin = again // somebody has moved it on in between
				}
				switch {
				case err == nil:
					won[w]++
				case !errors.Is(err, affinity.ErrConflict):
					errs[w] = err
					return
				}
				read = pin
			}
		})
	}
	group.Wait()
	k.ok("IncrementSwitch", errors.Join(errs...))
	if got := k.look("s1"); got.SwitchCount != workers*moves || got.Epoch != workers*moves+1 {
		k.Fatalf("switch count %d, epoch %d after %d switches", got.SwitchCount, got.Epoch, workers*moves)
	}
}
