package proxy

import (
	"errors"
	"io"
	"net/http"
	"time"

	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// holdPreamble reads a stream until its first output. What came so far stays in held. A
// preamble that says nothing for preambleMax is let go, so that the client is not left
// without a head while a model thinks; a later failure is then reported in the stream.
func (a *Answer) holdPreamble() *Failure {
	a.filter.start(&a.observer, a.hide && a.plain, a.keys())
	if !a.plain {
		a.begin()
		if a.translation != nil {
			return a.untranslated("compressed in an unknown way")
		}
		return nil
	}
	var since time.Time // of the first event
	for {
		chunk, err := a.read()
		out, marks := a.filter.feed(chunk)
		a.held = append(a.held, a.translation.feed(out)...)
		if len(chunk) > 0 {
			if since.IsZero() {
				since = time.Now()
			}
		}
		if err != nil {
			more, last := a.filter.close()
			a.held, marks = append(a.held, a.translation.feed(more)...), marks|last
		}
		a.note(marks)
		switch {
		case marks&provider.Error != 0 && !a.filter.output:
			return a.inBand(a.filter.errorData)
		case marks&(provider.Output|provider.End|provider.Done) != 0:
			a.eof = err != nil
			return nil
		case errors.Is(err, io.EOF):
			return &Failure{
				Failure: provider.Failure{Class: health.Connection},
				Cause:   errors.New("stream ended before any output"),
			}
		case err != nil:
			return a.broken(err)
		case len(a.held) > maxHeld, !since.IsZero() && time.Since(since) > preambleMax:
			return nil
		}
	}
}

// note remembers what the marks say of the stream. After the end marker an upstream has
// drainLimit to close the stream, so that its connection can be used again.
func (a *Answer) note(marks provider.Mark) {
	a.complete = a.complete || marks&(provider.End|provider.Done) != 0
	a.failed = a.failed || marks&provider.Error != 0
	if marks&provider.Done != 0 && !a.done {
		a.done = true
		a.limit.Store(int64(drainLimit))
		a.timer.Reset(drainLimit)
	}
}

// copyStream relays a stream. Each chunk leaves as it came and at once.
func (a *Answer) copyStream(w http.ResponseWriter) Ending {
	client := newClientWriter(a.ctx, w, a.client.timeouts.Idle)
	defer client.close()
	if ending, done := a.send(client, a.held); done {
		return ending
	}
	a.held = nil
	var failure error
	for !a.eof && !a.failed && !a.translation.broken() {
		chunk, err := a.read()
		if len(chunk) > 0 {
			out, marks := chunk, provider.Mark(0)
			if a.plain {
				out, marks = a.filter.feed(chunk)
				a.note(marks)
			}
			if ending, done := a.send(client, a.translation.feed(out)); done {
				return ending
			}
		}
		if err != nil {
			a.eof = true
			if !errors.Is(err, io.EOF) {
				failure = err
			}
		}
	}
	if !a.plain {
		return a.endOpaque(failure)
	}
	if !a.failed {
		out, marks := a.filter.close()
		a.note(marks)
		if ending, done := a.send(client, a.translation.feed(out)); done {
			return ending
		}
		if ending, done := a.send(client, a.translation.close()); done {
			return ending
		}
	}
	return a.endStream(client, failure)
}

// endStream decides what the end of a stream means, and tells the client when it was not
// the end of the answer. Nothing is made up: no finish reason and no end marker.
func (a *Answer) endStream(client *clientWriter, failure error) Ending {
	if a.failed {
		f, _ := a.observer.Failure()
		return Ending{Class: f.Class, Failure: f, Cause: errors.New("error event in the stream")}
	}
	if a.translation.broken() {
		return Ending{Class: health.ServerError, Cause: errors.New("an event of the stream is too large to be translated")}
	}
	if a.complete {
		return Ending{Class: health.OK}
	}
	if failure == nil {
		failure = io.ErrUnexpectedEOF
	}
	ending := a.cut(failure)
	if ending.Class == health.ClientGone && !errors.Is(ending.Cause, ErrDeadline) {
		return ending
	}
	e := &wire.Error{
		Status: http.StatusBadGateway, Type: "api_error", Code: "upstream_cut",
		Message: "The provider's answer broke off before its end.",
	}
	if errors.Is(ending.Cause, ErrDeadline) {
		ending.Class = health.Timeout
	}
	if ending.Class == health.Timeout {
		e.Status, e.Code = http.StatusGatewayTimeout, "timeout"
		e.Message = "The provider's answer stopped: " + ending.Cause.Error() + "."
	}
	note := wire.StreamError(a.clientSurface(), e)
	if a.filter.partial && a.translation == nil {
		note = append([]byte("\n\n"), note...) // never glue it to a half line
	}
	a.send(client, note)
	return ending
}

// endOpaque ends a stream that could not be read: its end marker is unknown, so that only
// a broken connection counts as a failure.
func (a *Answer) endOpaque(failure error) Ending {
	if failure == nil {
		return Ending{Class: health.OK}
	}
	ending := a.cut(failure)
	ending.Abort = true
	return ending
}

func (a *Answer) send(client *clientWriter, chunk []byte) (Ending, bool) {
	if len(chunk) == 0 {
		return Ending{}, false
	}
	if err := client.write(chunk); err != nil {
		return a.clientGone(err), true
	}
	client.flush()
	return Ending{}, false
}
