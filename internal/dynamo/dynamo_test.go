package dynamo_test

import (
	"testing"

	"switchboard/internal/affinity/affinitytest"
)

func TestStoreKeepsTheContract(t *testing.T) {
	affinitytest.Run(t, func(t *testing.T) affinitytest.Stores {
		deviates(t)
		r := newRig(t)
		return affinitytest.Stores{Store: r.store, Aliases: r.store, Peer: r.another()}
	})
}
