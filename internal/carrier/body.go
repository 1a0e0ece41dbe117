package carrier

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// body is a request's body in the buffer its event came in. It is closed when the handler
// has returned: a transport that still reads it then must not see the next event.
type body struct {
	mu     sync.Mutex
	rest   []byte
	closed bool
}

var _ Buffered = (*body)(nil)

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case len(b.rest) == 0:
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func (b *body) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rest
}

func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.rest = true, nil
	return nil
}

// broken is a body that cannot be had.
type broken struct{ cause error }

func (b *broken) Read([]byte) (int, error) { return 0, b.cause }

func (b *broken) Close() error { return nil }

// decodeBase64 decodes text where it stands: what is written is always behind what is read.
func decodeBase64(text []byte) ([]byte, error) {
	n, err := base64.StdEncoding.Decode(text, text)
	if err != nil {
		return nil, fmt.Errorf("the event's body: %w", err)
	}
	return text[:n], nil
}
