package functionurl

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Why an invocation did not end well. Before output each becomes a 502, after it a cut.
var (
	errExited    = errors.New("the process exited")
	errTimeout   = errors.New("the function timed out")
	errFunction  = errors.New("the function reported an error")
	errNoAnswer  = errors.New("the runtime asked for the next event without answering this one")
	errBroken    = errors.New("the runtime broke its response off")
	errLeft      = errors.New("the client has left")
	errThrottled = errors.New("no environment is free")
	errTwice     = errors.New("the runtime has responded already")
)

// invocation is one request on its way through an environment, and the client's side of it.
type invocation struct {
	id    string
	trace string
	event *[]byte

	// Guarded by Function.mu.
	cold      bool
	timedOut  bool
	completed bool        // the runtime has answered; its next request for an event ends it
	timer     *time.Timer // kills the process at the deadline; nil until the event is handed over
	patience  *time.Timer // of a request in the queue that may not wait long

	once sync.Once
	done chan struct{} // closed when the client's response is over, with err set
	err  error

	// mu is held while something is written to the client, which may take as long as the
	// client likes: never take it while holding Function.mu.
	mu      sync.Mutex
	w       http.ResponseWriter // nil when the client has left or was answered
	control *http.ResponseController
	begun   atomic.Bool              // the status has gone out
	posting bool                     // the runtime has begun its response
	upload  *http.ResponseController // of the runtime's connection, while it responds
	left    bool
}

func newInvocation(w http.ResponseWriter) *invocation {
	return &invocation{w: w, control: http.NewResponseController(w), done: make(chan struct{})}
}

// finish ends the client's response; only the first call counts. nil is a clean end.
func (v *invocation) finish(err error) {
	v.once.Do(func() {
		v.err = err
		close(v.done)
	})
}

// begin sends status and headers, with what comes next or at the next flush.
func (v *invocation) begin(a answer) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.w == nil {
		return errLeft
	}
	a.write(v.w.Header())
	v.w.WriteHeader(a.status)
	v.begun.Store(true)
	return nil
}

// write sends p at once. An empty p sends what begin has left.
func (v *invocation) write(p []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.w == nil {
		return errLeft
	}
	if len(p) > 0 {
		// A status without a body swallows it, as the front on AWS does.
		if _, err := v.w.Write(p); err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
			v.w = nil
			return errLeft
		}
	}
	if err := v.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		v.w = nil
		return errLeft
	}
	return nil
}

// respond notes that the runtime has begun its response on a connection. Only one may, and
// none after the client has left if that is to be felt.
func (v *invocation) respond(upload *http.ResponseController, failWrites bool) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.posting:
		return errTwice
	case v.left && failWrites:
		v.posting = true
		return errLeft
	}
	v.posting, v.upload = true, upload
	return nil
}

// leave is the client's disconnect. The invocation runs on; with failWrites its connection
// breaks as soon as it is used.
func (v *invocation) leave(failWrites bool) {
	if v.begun.Load() {
		v.breakWrites()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.w, v.left = nil, true
	if failWrites && v.upload != nil {
		_ = v.upload.SetReadDeadline(time.Unix(1, 0))
	}
}

// responded is called when the runtime's response has been read: from here on its connection
// belongs to other calls.
func (v *invocation) responded() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.upload = nil
}

// detach takes the client's side away from whoever may still write to it, and says whether the
// status has gone out. A write under way is waited for; if the response has failed, a write that
// waits for a slow client is broken.
func (v *invocation) detach() (begun bool) {
	if v.err != nil && v.begun.Load() {
		v.breakWrites()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.w = nil
	return v.begun.Load()
}

// breakWrites lets a write under way fail that waits for a slow client. The connection cannot be
// used after it.
func (v *invocation) breakWrites() { _ = v.control.SetWriteDeadline(time.Unix(1, 0)) }

func (v *invocation) hasLeft() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.left
}
