package functionurl

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	integrationType = "application/vnd.awslambda.http-integration-response"

	pieceSize = 32 << 10 // of a streamed response, read at a time
	// responseLimit is that of a buffered response; AWS gives it 100 bytes more than an event.
	responseLimit = 6<<20 + 100
	// breakTime is how long a broken response may wait to learn whether its process has died,
	// so that a client that tries again at once meets a new one.
	breakTime = 50 * time.Millisecond
)

// response takes the runtime's answer to invocation id to the client.
func (e *environment) response(w http.ResponseWriter, r *http.Request, id string) {
	inv := e.find(id)
	if inv == nil {
		reply(w, http.StatusBadRequest, "InvalidRequestID", "no such invocation")
		return
	}
	upload := http.NewResponseController(w)
	failWrites := e.f.options.FailWrites
	switch err := inv.respond(upload, failWrites); {
	case errors.Is(err, errLeft):
		e.complete(inv)
		panic(http.ErrAbortHandler)
	case err != nil:
		reply(w, http.StatusForbidden, "InvalidStateTransition", err.Error())
		return
	}
	kind := r.Header.Get("Content-Type")
	strict := strings.HasPrefix(kind, integrationType)
	var err error
	if strict || r.Header.Get("Lambda-Runtime-Function-Response-Mode") == "streaming" {
		err = e.stream(inv, r, relay{inv: inv, strict: strict, kind: kind})
	} else {
		err = e.buffered(inv, r.Body, kind)
	}
	inv.responded()
	if errors.Is(err, errBroken) {
		e.wait()
	}
	e.conclude(inv, err)
	switch {
	case errors.Is(err, errBroken), errors.Is(err, errLeft) && failWrites:
		panic(http.ErrAbortHandler)
	case errors.Is(err, errTooLarge):
		reply(w, http.StatusRequestEntityTooLarge, "Function.ResponseSizeTooLarge", err.Error())
	default:
		accept(w)
	}
}

// wait gives the death of the process a moment to be seen.
func (e *environment) wait() {
	select {
	case <-e.exited:
	case <-time.After(breakTime):
	}
}

// stream copies a streamed response as it comes.
func (e *environment) stream(inv *invocation, r *http.Request, to relay) error {
	b := e.f.buffer(pieceSize)
	defer e.f.giveBack(b)
	piece := (*b)[:pieceSize]
	var failed error // the client's side; the runtime is heard out
	for {
		n, err := r.Body.Read(piece)
		if n > 0 && failed == nil {
			if failed = to.piece(piece[:n]); errors.Is(failed, errPrelude) {
				e.f.logs.line(e.number, inv.id+" "+failed.Error())
				e.conclude(inv, failed)
			}
		}
		switch {
		case errors.Is(failed, errLeft) && e.f.options.FailWrites:
			return failed
		case err == nil:
			continue
		case !errors.Is(err, io.EOF):
			if inv.hasLeft() && e.f.options.FailWrites {
				return errLeft
			}
			return errBroken
		}
		break
	}
	if failed == nil {
		failed = to.end()
	}
	if kind := r.Trailer.Get("Lambda-Runtime-Function-Error-Type"); kind != "" {
		e.f.logs.line(e.number, inv.id+" function error in the stream: "+kind)
		failed = errFunction
	}
	return failed
}

// buffered sends a response that comes whole.
func (e *environment) buffered(inv *invocation, body io.Reader, kind string) error {
	b := e.f.buffer(bytes.MinRead)
	defer e.f.giveBack(b)
	text := bytes.NewBuffer(*b)
	_, err := text.ReadFrom(io.LimitReader(body, responseLimit+1))
	*b = text.Bytes()
	switch {
	case err != nil && inv.hasLeft() && e.f.options.FailWrites:
		return errLeft
	case err != nil:
		return errBroken
	case text.Len() > responseLimit:
		_, _ = io.Copy(io.Discard, body)
		return errTooLarge
	}
	a, content, err := parseBuffered(text.Bytes(), kind)
	if err != nil {
		e.f.logs.line(e.number, inv.id+" "+err.Error())
		return err
	}
	if err = inv.begin(a); err == nil {
		err = inv.write(content)
	}
	return err
}

// relay takes the pieces of a streamed response: first the prelude, then the body.
type relay struct {
	inv    *invocation
	strict bool   // a prelude must come
	kind   string // content type when there is none
	head   []byte // before the prelude is whole
	begun  bool
}

// piece sends p on. errPrelude: there will be no answer; errLeft: nobody to send it to.
func (s *relay) piece(p []byte) error {
	if s.begun {
		return s.inv.write(p)
	}
	s.head = append(s.head, p...)
	if !s.strict && !bytes.HasPrefix(bytes.TrimLeft(s.head, " \t\r\n"), []byte("{")) {
		return s.raw()
	}
	prelude, body, whole := bytes.Cut(s.head, separator())
	switch {
	case whole && len(prelude) <= maxPrelude:
		a, err := parsePrelude(prelude)
		if err != nil && !s.strict {
			return s.raw()
		}
		if err != nil {
			return err
		}
		return s.begin(a, body)
	case len(s.head) < maxPrelude+len(separator()):
		return nil
	case s.strict:
		return errPrelude
	}
	return s.raw()
}

// raw begins a stream without a prelude: status 200, and the runtime's content type.
func (s *relay) raw() error {
	return s.begin(plain(s.kind), s.head)
}

func (s *relay) begin(a answer, body []byte) error {
	s.begun = true
	if err := s.inv.begin(a); err != nil {
		return err
	}
	err := s.inv.write(body)
	s.head = nil
	return err
}

// end is called when the runtime's stream has ended well.
func (s *relay) end() error {
	switch {
	case s.begun:
		return nil
	case s.strict:
		return errPrelude
	}
	return s.raw()
}
