// Package shared defines how all instances share one small document.
package shared

import (
	"context"
	"errors"
	"time"
)

// ErrChanged: another process has replaced the document in between. Load it and decide
// again, never repeat the same Swap.
var ErrChanged = errors.New("the shared document has changed")

// Cell keeps one small document that all instances share (DESIGN 6, switchboard_state).
//
// Consistency: Swap is atomic, and of racing Swaps of one version exactly one succeeds. Load
// may be up to a second behind, except after a Swap of the same Cell that met ErrChanged: it
// then returns what the Swap was measured against, or newer. Concurrency: all methods may
// be called from any goroutine of any number of processes.
type Cell interface {
	// Load returns the document and its version; no data and version 0 when there is none.
	Load(ctx context.Context) (data []byte, version int64, err error)
	// Swap replaces the document if version is still the stored one (0: there is none) and
	// stores it as version+1. ErrChanged when it is another's by now; a repeat of an applied
	// Swap is success, which is told by the data: no two writers may write the same. The
	// document may be deleted once expires has passed.
	Swap(ctx context.Context, data []byte, version int64, expires time.Time) error
}
