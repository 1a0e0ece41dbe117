package mem_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/affinity/affinitytest"
	"switchboard/internal/mem"
)

func TestStoreKeepsTheContract(t *testing.T) {
	affinitytest.Run(t, func(*testing.T) affinitytest.Stores {
		store := &mem.Store{}
		return affinitytest.Stores{Store: store, Aliases: store, Peer: store, InvalidUTF8: true}
	})
}

func TestFaultDecidesWhetherTheWriteHappened(t *testing.T) {
	now, lost := time.Unix(1_800_000_000, 0), errors.New("answer lost")
	pin := affinity.Pin{Ref: affinity.Ref{SessionKey: "s1", Model: "m"}, Target: affinity.Target{Provider: "a"}}
	for _, applied := range []bool{true, false} {
		store := &mem.Store{Fault: func(op string) (bool, error) {
			if op == mem.OpAssign {
				return applied, lost
			}
			return false, nil
		}}
		if _, err := store.Assign(t.Context(), pin, nil, now, time.Hour); !errors.Is(err, lost) {
			t.Errorf("Assign error = %v, want %v", err, lost)
		}
		if _, err := store.Lookup(t.Context(), pin.Ref, now); errors.Is(err, affinity.ErrNotFound) == applied {
			t.Errorf("applied %t: Lookup error = %v", applied, err)
		}
	}
}

func TestFaultyReads(t *testing.T) {
	down := errors.New("down")
	store := &mem.Store{Fault: func(string) (bool, error) { return false, down }}
	if _, err := store.Lookup(context.Background(), affinity.Ref{}, time.Now()); !errors.Is(err, down) {
		t.Errorf("Lookup error = %v, want %v", err, down)
	}
	if _, err := store.LookupAlias(context.Background(), "r", time.Now()); !errors.Is(err, down) {
		t.Errorf("LookupAlias error = %v, want %v", err, down)
	}
}
