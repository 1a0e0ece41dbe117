// Package budget limits the time of a call, at no cost until somebody waits for its end.
package budget

import (
	"context"
	"sync"
	"time"
)

// call is a context with a deadline whose timer is made only when Done is asked for. Most
// calls to a store on this machine end before anything has to wait; a timer for each would
// cost more than they do.
type call struct {
	context.Context
	deadline time.Time

	mu     sync.Mutex
	timed  context.Context //nolint:containedctx // the context proper, once it is needed
	cancel context.CancelFunc
}

var _ context.Context = (*call)(nil)

// With is context.WithTimeout. release must be called when the call has ended; the context
// reads as ended after it only if somebody had asked for Done.
func With(parent context.Context, limit time.Duration) (ctx context.Context, release func()) {
	c := &call{Context: parent, deadline: time.Now().Add(limit)}
	if sooner, ok := parent.Deadline(); ok && sooner.Before(c.deadline) {
		c.deadline = sooner
	}
	return c, c.release
}

// Deadline is the sooner of the budget's end and the parent's deadline.
func (c *call) Deadline() (time.Time, bool) { return c.deadline, true }

// Done makes the timer.
func (c *call) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil {
		c.timed, c.cancel = context.WithDeadline(c.Context, c.deadline)
	}
	return c.timed.Done()
}

// Err is like that of any context, and asks the clock where there is no timer.
func (c *call) Err() error {
	c.mu.Lock()
	timed := c.timed
	c.mu.Unlock()
	switch {
	case timed != nil:
		return timed.Err()
	case c.Context.Err() != nil:
		return c.Context.Err()
	case !time.Now().Before(c.deadline):
		return context.DeadlineExceeded
	}
	return nil
}

func (c *call) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
}
