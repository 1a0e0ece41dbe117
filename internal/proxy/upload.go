package proxy

import (
	"io"
	"sync"

	"switchboard/internal/wire"
)

// upload is a request body on its way. A transport may still read it when the answer is
// there already, or the call has been given up; close waits for that, so that the memory
// of the body, which another request will use, can never go out with this one.
type upload struct {
	body wire.Body

	mu      sync.Mutex
	readers []io.ReadCloser
	closed  bool
}

// open returns a reader from the start of the body.
func (u *upload) open() io.ReadCloser {
	reader := u.body.NewReader()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		reader.Close() //nolint:errcheck // never fails; its reads do from now on
	}
	u.readers = append(u.readers, reader)
	return reader
}

// close ends all reading of the body.
func (u *upload) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for _, reader := range u.readers {
		reader.Close() //nolint:errcheck // never fails
	}
}
