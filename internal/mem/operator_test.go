package mem_test

import (
	"testing"

	"switchboard/internal/affinity"
	"switchboard/internal/affinity/affinitytest"
	"switchboard/internal/mem"
)

func TestOperatorKeepsTheContract(t *testing.T) {
	affinitytest.RunOperator(t, func(*testing.T) (affinitytest.Stores, affinity.Operator) {
		store := &mem.Store{}
		return affinitytest.Stores{Store: store, Aliases: store, Peer: store, InvalidUTF8: true}, mem.Operator{Store: store}
	})
}
