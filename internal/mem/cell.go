package mem

import (
	"bytes"
	"context"
	"sync"
	"time"

	"switchboard/internal/shared"
)

// Names of a Cell's operations that a Fault sees.
const (
	OpLoad = "load"
	OpSwap = "swap"
)

// Cell keeps one document. The zero value holds none.
type Cell struct {
	// Fault, when not nil, is asked before every operation. It is set before first use.
	Fault Fault

	mu      sync.Mutex
	data    []byte
	version int64
}

var _ shared.Cell = (*Cell)(nil)

// Load implements shared.Cell.
func (c *Cell) Load(ctx context.Context) ([]byte, int64, error) {
	if _, err := c.Fault.before(ctx, OpLoad); err != nil {
		return nil, 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.data), c.version, nil
}

// Swap implements shared.Cell. The document does not expire.
func (c *Cell) Swap(ctx context.Context, data []byte, version int64, _ time.Time) error {
	run, fault := c.Fault.before(ctx, OpSwap)
	var err error
	if run {
		err = c.swap(data, version)
	}
	if fault != nil {
		return fault
	}
	return err
}

func (c *Cell) swap(data []byte, version int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.version == version:
		c.data, c.version = bytes.Clone(data), version+1
		return nil
	case c.version == version+1 && bytes.Equal(c.data, data):
		return nil
	}
	return shared.ErrChanged
}
