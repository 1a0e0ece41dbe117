package dynamo_test

import (
	"testing"

	"switchboard/internal/shared"
	"switchboard/internal/shared/sharedtest"
)

func TestDocumentKeepsTheContract(t *testing.T) {
	sharedtest.Run(t, func(t *testing.T) func(string) shared.Cell {
		r := newRig(t)
		return func(id string) shared.Cell { return r.another().Document(id) }
	})
}
