package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// Answer is an upstream's answer of which nothing has been sent yet. Not for concurrent use.
type Answer struct {
	Stream bool // server-sent events

	client   *Client
	vendor   *provider.Vendor
	upload   upload
	surface  wire.Surface
	ctx      context.Context
	cancel   context.CancelCauseFunc
	timer    *time.Timer
	since    time.Time    // the call began
	begun    bool         // the first byte is there
	limit    atomic.Int64 // of a read, in nanoseconds; 0 before the first byte
	waiting  atomic.Int64 // when the read under way began, in nanoseconds after since
	response *http.Response
	body     io.Reader
	plain    bool // the bytes can be read: not compressed
	billed   bool
	key      string

	translation *translation // nil: the client speaks the provider's surface

	observer provider.Stream
	filter   filter
	hide     bool // we asked for usage, the client did not

	held     []byte // read and not sent
	buffer   *[bufferSize]byte
	eof      bool
	complete bool // nothing more is needed: a finish reason or the end marker was seen
	done     bool // the end marker was seen
	failed   bool // an error event was seen

	usage      provider.Usage
	responseID string
}

// Ending says how an answer ended.
type Ending struct {
	Class   health.Class // OK, ClientGone, or what broke it
	Failure provider.Failure
	Cause   error // for the log
	// Abort: what was sent cannot be told from a whole answer, so that the connection must
	// be broken.
	Abort bool
}

// Close gives back what the answer holds and ends the call if it is still under way.
func (a *Answer) Close() {
	a.timer.Stop()
	a.cancel(errDone)
	if a.response != nil {
		a.response.Body.Close()
	}
	a.upload.close()
	if a.buffer != nil {
		a.client.buffers.Put(a.buffer)
		a.buffer = nil
	}
}

// ReleaseRequest tells whether the request has been sent whole; its memory is then no
// longer read and may be used again while the answer goes on.
func (a *Answer) ReleaseRequest() bool {
	if !a.upload.sent() {
		return false
	}
	a.upload.close()
	return true
}

// Status is the upstream's status, 2xx.
func (a *Answer) Status() int { return a.response.StatusCode }

// Usage is what the answer consumed, as far as known; final after Copy.
func (a *Answer) Usage() provider.Usage {
	if a.Stream {
		return a.observer.Usage()
	}
	return a.usage
}

// ResponseID is the id of a responses-surface answer, or empty.
func (a *Answer) ResponseID() string {
	if a.Stream {
		return a.observer.ResponseID()
	}
	return a.responseID
}

// WriteHeader sends the answer's head: its status and allow-listed headers.
func (a *Answer) WriteHeader(w http.ResponseWriter) {
	header := w.Header()
	CopyHeaders(header, a.response.Header, a.key)
	switch {
	case a.translation != nil && !a.Stream:
		header["Content-Type"] = []string{"application/json"}
		header["Content-Length"] = []string{strconv.Itoa(len(a.held))}
	case a.Stream:
		header["Cache-Control"] = []string{"no-cache"}
		header["X-Accel-Buffering"] = []string{"no"}
	case a.eof:
		header["Content-Length"] = []string{strconv.Itoa(len(a.held))}
	case a.response.ContentLength >= 0:
		header["Content-Length"] = []string{strconv.FormatInt(a.response.ContentLength, 10)}
	}
	w.WriteHeader(a.response.StatusCode)
}

// Copy sends the rest of the answer to the client as it comes.
func (a *Answer) Copy(w http.ResponseWriter) Ending {
	if a.Stream {
		return a.copyStream(w)
	}
	return a.copyUnary(w)
}

// read reads once into the answer's buffer.
func (a *Answer) read() ([]byte, error) {
	if a.buffer == nil {
		a.buffer = a.client.buffers.Get().(*[bufferSize]byte)
	}
	n, err := a.Read(a.buffer[:])
	return a.buffer[:n], err
}

// Read reads from the upstream under the limit that is due: to the first byte since the
// call began, then of silence. Between reads no limit runs: how long the client takes for
// what it was sent is not the upstream's fault.
//
// The timer is not set anew for each read: it finds out, when it fires, how long the read
// under way has waited.
func (a *Answer) Read(p []byte) (int, error) {
	if a.begun {
		a.waiting.Store(int64(time.Since(a.since)))
	}
	n, err := a.body.Read(p)
	if n > 0 {
		a.begin()
	}
	if a.begun {
		a.waiting.Store(notWaiting)
	}
	return n, err
}

// notWaiting is the value of Answer.waiting between reads.
const notWaiting = -1

// begin ends the wait for the first byte.
func (a *Answer) begin() {
	if !a.begun {
		a.begun = true
		a.waiting.Store(notWaiting)
		a.limit.Store(int64(a.client.timeouts.Idle))
		a.timer.Reset(a.client.timeouts.Idle)
	}
}

// expire is what the timer does. Before the first byte, and when a finished stream is
// drained, its time is the limit itself.
func (a *Answer) expire() {
	limit, began := time.Duration(a.limit.Load()), time.Duration(a.waiting.Load())
	if limit == 0 {
		a.cancel(ErrFirstByte)
		return
	}
	left := limit
	if began != notWaiting {
		left = limit - (time.Since(a.since) - began)
	}
	if left <= 0 {
		a.cancel(ErrIdle)
		return
	}
	a.timer.Reset(left)
}

// readHead reads an answer that is not streamed: whole when it is small, so that a cut can
// still fail over, else its beginning.
func (a *Answer) readHead() *Failure {
	a.begin() // its head is there
	most := maxUnary
	if a.translation != nil {
		most = maxTranslated
	}
	if n := a.response.ContentLength; n >= 0 && n <= int64(most) {
		a.held = make([]byte, n)
		if _, err := io.ReadFull(a, a.held); err != nil {
			return a.broken(err)
		}
		a.eof = true
	}
	for !a.eof && len(a.held) < most {
		chunk, err := a.read()
		a.held = append(a.held, chunk...)
		if errors.Is(err, io.EOF) {
			a.eof = true
		} else if err != nil {
			return a.broken(err)
		}
	}
	if a.eof && a.plain {
		if failure := a.noAnswer(); failure != nil {
			return failure
		}
	}
	if a.eof && a.plain && a.billed {
		a.usage, a.responseID = a.vendor.ReadAnswer(a.surface, a.held, true)
	}
	return a.translateWhole()
}

func (a *Answer) copyUnary(w http.ResponseWriter) Ending {
	client := newClientWriter(a.ctx, w, a.client.timeouts.Idle)
	defer client.close()
	if err := client.write(a.held); err != nil {
		return a.clientGone(err)
	}
	if a.eof {
		// Now, and not when the handler returns: the client need not wait for the books.
		client.flush()
		return Ending{Class: health.OK}
	}
	tail := a.held
	for {
		chunk, err := a.read()
		if len(chunk) > 0 {
			if err := client.write(chunk); err != nil {
				return a.clientGone(err)
			}
			tail = append(tail, chunk...)
			if len(tail) > 2*unaryTail {
				tail = append(tail[:0], tail[len(tail)-unaryTail:]...)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			ending := a.cut(err)
			ending.Abort = true
			return ending
		}
	}
	if a.plain && a.billed {
		a.usage, a.responseID = a.vendor.ReadAnswer(a.surface, tail, false)
	}
	return Ending{Class: health.OK}
}

// clientGone ends the upstream call because the client no longer reads.
func (a *Answer) clientGone(err error) Ending {
	if cause := context.Cause(a.ctx); errors.Is(cause, ErrDeadline) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	a.cancel(err)
	return Ending{Class: health.ClientGone, Cause: err}
}

// cut is the ending of an answer that broke after its beginning was sent.
func (a *Answer) cut(err error) Ending {
	f := a.broken(err)
	return Ending{Class: f.Class, Failure: f.Failure, Cause: f.Cause}
}
