package functionurl

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

const (
	eventOverhead = 4 << 10 // bytes of an event beside a body, as a first guess
	drainLimit    = 64 << 20
)

// ServeHTTP invokes the function. When the function fails after its first output, or the request's
// context ends, the client's connection is cut, by panic(http.ErrAbortHandler), so that it cannot
// pass for a clean end.
func (f *Function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	inv := newInvocation(w)
	inv.id = newID()
	w.Header().Set("X-Amzn-Requestid", inv.id)
	switch err := f.read(inv, r); {
	case errors.Is(err, errTooLarge):
		f.refuseSize(w, r)
		return
	case err != nil:
		refuse(w, http.StatusBadRequest, "BadRequestException", `{"message":"Bad Request"}`)
		return
	}
	switch f.admit(inv) {
	case throttled:
		f.giveBack(inv.event)
		inv.finish(errThrottled)
	case refused:
		inv.finish(ErrClosed)
	}
	select {
	case <-inv.done:
	case <-r.Context().Done():
		if !f.withdraw(inv) {
			inv.leave(f.options.FailWrites)
		}
		// If it is not the client that has left but the caller that gave up, the client must
		// not take this for the end.
		panic(http.ErrAbortHandler)
	}
	switch begun := inv.detach(); {
	case inv.err == nil:
	case begun:
		panic(http.ErrAbortHandler)
	case errors.Is(inv.err, errThrottled): // without Retry-After, as on AWS
		refuse(w, http.StatusTooManyRequests, "TooManyRequestsException",
			`{"Reason":"ConcurrentInvocationLimitExceeded","Type":"User","message":"Rate Exceeded."}`)
	case errors.Is(inv.err, ErrClosed):
		refuse(w, http.StatusServiceUnavailable, "ServiceUnavailableException", `{"message":"Service Unavailable"}`)
	default:
		// AWS says no more than this, of a timeout neither.
		refuse(w, http.StatusBadGateway, "", "Internal Server Error")
	}
}

// read makes the event of r. errTooLarge: it is over the limit.
func (f *Function) read(inv *invocation, r *http.Request) error {
	if r.ContentLength > EventLimit {
		return errTooLarge
	}
	b := f.buffer(int(max(r.ContentLength, 0)) + 1)
	defer f.giveBack(b)
	body, err := readAll(*b, io.LimitReader(r.Body, EventLimit+1))
	*b = body
	if err != nil {
		return err
	}
	now := time.Now()
	inv.trace = traceOf(r, inv.id, now)
	inv.event = f.buffer(len(body)*4/3 + eventOverhead)
	*inv.event = event{
		request: r, body: body, base64: f.options.Base64, domain: or(f.options.Domain, r.Host),
		id: inv.id, trace: inv.trace, now: now,
	}.append(*inv.event)
	if len(*inv.event) > EventLimit {
		f.giveBack(inv.event)
		return errTooLarge
	}
	return nil
}

// readAll is io.ReadAll into a given slice.
func readAll(b []byte, r io.Reader) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}

// refuseSize answers 413. It reads what the client still sends: many clients look at the
// answer only after that.
func (f *Function) refuseSize(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, r.Body, drainLimit)
	}
	refuse(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLargeException", fmt.Sprintf(
		`{"Type":"User","message":"Request must be smaller than %d bytes for the InvokeFunction operation"}`, EventLimit))
}

// refuse answers for the front itself.
func refuse(w http.ResponseWriter, status int, kind, body string) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if kind != "" {
		h.Set("X-Amzn-Errortype", kind)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}
