package proxy

import (
	"io"
	"sync"
	"sync/atomic"

	"switchboard/internal/wire"
)

// upload is a request body on its way. A transport may still read it when the answer is
// there already, or the call has been given up; close waits for that, so that the memory
// of the body, which another request will use, can never go out with this one.
type upload struct {
	body wire.Body

	mu      sync.Mutex
	readers []*sending
	closed  bool
}

// sending is one reader of the body; it knows how much has been read.
type sending struct {
	io.ReadCloser
	size int64
	read atomic.Int64
}

// Read reads the body. Its end is the end, also after Close: a transport looks once more
// whether there is too much, and would break the connection off for any other error.
func (s *sending) Read(p []byte) (int, error) {
	if s.read.Load() == s.size {
		return 0, io.EOF
	}
	n, err := s.ReadCloser.Read(p)
	s.read.Add(int64(n))
	return n, err
}

// open returns a reader from the start of the body.
func (u *upload) open() io.ReadCloser {
	reader := &sending{ReadCloser: u.body.NewReader(), size: u.body.Len()}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		reader.Close() //nolint:errcheck // never fails; its reads do from now on
	}
	u.readers = append(u.readers, reader)
	return reader
}

// sent tells whether the newest reader has been read to its end: the upstream has the
// whole body.
func (u *upload) sent() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.readers) > 0 && u.readers[len(u.readers)-1].read.Load() == u.body.Len()
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
