package proxy

import (
	"context"
	"net/http"
	"time"
)

// farewell is how long after the call's own deadline the client may take for what it is
// still told. What is left to the carrier's belongs to the books and the event.
const farewell = time.Second

// clientWriter writes to a client that may be slow, and gives one up that has stopped
// reading: it would hold its call, and a stop of the process, for as long as it likes.
type clientWriter struct {
	w        http.ResponseWriter
	flusher  http.Flusher // nil where the carrier sends each write at once
	limiter  interface{ SetWriteDeadline(time.Time) error }
	patience time.Duration // for one write
	until    time.Time     // the deadline that stands
	last     time.Time     // of all writes; zero when the call has no deadline
}

func newClientWriter(ctx context.Context, w http.ResponseWriter, patience time.Duration) *clientWriter {
	c := &clientWriter{w: w, patience: patience}
	if deadline, limited := ctx.Deadline(); limited {
		c.last = deadline.Add(min(farewell, max(time.Until(deadline)/5, farewell/10)))
	}
	c.flusher, _ = w.(http.Flusher)
	c.limiter, _ = w.(interface{ SetWriteDeadline(time.Time) error })
	return c
}

// write sends b. The deadline is moved only when half of it has gone, so that a stream of
// small chunks does not pay for it.
func (c *clientWriter) write(b []byte) error {
	if c.limiter != nil {
		if now := time.Now(); c.until.Sub(now) < c.patience/2 && (c.until.IsZero() || c.until != c.last) {
			c.until = now.Add(c.patience)
			if !c.last.IsZero() && c.last.Before(c.until) {
				c.until = c.last
			}
			if c.limiter.SetWriteDeadline(c.until) != nil {
				c.limiter = nil // the carrier has none
			}
		}
	}
	_, err := c.w.Write(b)
	return err
}

func (c *clientWriter) flush() {
	if c.flusher != nil {
		c.flusher.Flush()
	}
}

// close lifts the deadline: the connection may serve other requests. Where the call has one,
// it stands for the end of the response too, and the carrier lifts it.
func (c *clientWriter) close() {
	if c.limiter != nil && !c.until.IsZero() {
		c.limiter.SetWriteDeadline(c.last) //nolint:errcheck // a connection that is gone has none
	}
}
