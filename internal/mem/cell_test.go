package mem_test

import (
	"testing"

	"switchboard/internal/mem"
	"switchboard/internal/shared"
	"switchboard/internal/shared/sharedtest"
)

func TestCellKeepsTheContract(t *testing.T) {
	sharedtest.Run(t, func(*testing.T) func(string) shared.Cell {
		cells := map[string]*mem.Cell{}
		return func(id string) shared.Cell {
			if cells[id] == nil {
				cells[id] = &mem.Cell{}
			}
			return cells[id]
		}
	})
}
