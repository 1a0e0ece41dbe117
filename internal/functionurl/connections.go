package functionurl

import (
	"net"
	"net/http"
	"sync"
)

// connections counts those of one server, to know when all of them have ended.
type connections struct {
	mu    sync.Mutex
	open  int
	empty chan struct{} // closed at the next time that open is 0; nil: nobody waits
}

// note is a server's ConnState hook.
func (c *connections) note(_ net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open++
	case http.StateClosed, http.StateHijacked:
		c.open--
	}
	if c.open == 0 && c.empty != nil {
		close(c.empty)
		c.empty = nil
	}
}

// none is closed as soon as no connection is open.
func (c *connections) none() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == 0 {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	if c.empty == nil {
		c.empty = make(chan struct{})
	}
	return c.empty
}
