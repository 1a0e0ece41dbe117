package carrier

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	// finishPatience is how long FinishResponse waits for Lambda to accept the response.
	finishPatience = 200 * time.Millisecond
	// donePatience is how long the loop waits for that after the deadline, by which Lambda
	// has killed the process.
	donePatience = time.Second
	// unlimited stands in where Lambda named no deadline: its longest.
	unlimited = 15 * time.Minute
	// copied is the size in bytes up to which a write is copied behind its frame; a larger
	// one is handed to the kernel beside it.
	copied = 16 << 10
)

var (
	errEnded = errors.New("carrier: the response has ended")
	errEarly = errors.New("the Runtime API answered before the end of the response")
)

// pen is what a loop's responses write with.
type pen struct {
	out     []byte // what leaves with the next send
	prelude []byte
	parts   [3][]byte
	answer  chan answer // of the one reader there is at a time
}

// response is the ResponseWriter of an invocation: a chunked POST under way. Lambda's
// answer to it is read beside, so that a write after the front has given up fails.
type response struct {
	ctx  context.Context
	link *link
	pen  *pen
	id   string
	head bool // the request was a HEAD: the client takes no body

	header  http.Header
	status  int   // 0 until the head has been written
	asking  bool  // the answer is being read
	ended   bool  // nothing more can be sent
	limited bool  // the connection has a write deadline
	err     error // what broke it
}

var (
	_ http.ResponseWriter = (*response)(nil)
	_ http.Flusher        = (*response)(nil)
	_ Finisher            = (*response)(nil)
)

// Header returns the headers to send. They are taken at the first Write or WriteHeader;
// what is changed after that is not seen.
func (w *response) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

// WriteHeader sends status and headers. A 1xx status is passed over: the prelude can say
// only one, and it has to be the last.
func (w *response) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("carrier: WriteHeader(%d): no such status", status))
	}
	if status < 200 || w.status != 0 {
		return
	}
	w.begin(status)
	w.send(nil) //nolint:errcheck // the next Write tells
}

// Write sends p at once. It fails when the front has gone, and from then on always.
func (w *response) Write(p []byte) (int, error) {
	if err := w.writable(); err != nil {
		return 0, err
	}
	if w.status == 0 {
		w.begin(http.StatusOK)
	}
	size, refused := len(p), error(nil)
	switch {
	case w.status == http.StatusNoContent || w.status == http.StatusNotModified:
		if size > 0 {
			p, size, refused = nil, 0, http.ErrBodyNotAllowed
		}
	case w.head:
		p = nil
	}
	if err := w.send(p); err != nil {
		return 0, err
	}
	return size, refused
}

// Flush sends status and headers if nothing has; all else has been sent.
func (w *response) Flush() { w.FlushError() } //nolint:errcheck // Flush cannot tell

// FlushError is Flush for http.ResponseController.
func (w *response) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.err
}

// SetWriteDeadline limits how long writes may wait for a client that reads slowly. It is
// for http.ResponseController; a write that runs into it breaks the response.
func (w *response) SetWriteDeadline(t time.Time) error {
	if w.ended || w.link.conn == nil {
		return http.ErrNotSupported
	}
	w.limited = true
	return w.link.conn.SetWriteDeadline(t)
}

// FinishResponse ends the response and waits, not for long, until Lambda has taken it.
func (w *response) FinishResponse() error {
	w.end("")
	if !w.asking {
		return w.err
	}
	patience := time.NewTimer(finishPatience)
	defer patience.Stop()
	select {
	case a := <-w.pen.answer:
		w.settle(a)
	case <-patience.C: // done goes on waiting
	}
	return w.err
}

// writable returns why nothing can be written any more. An answer that comes before the end
// of the response says that nobody takes the rest.
func (w *response) writable() error {
	if w.asking && !w.ended {
		select {
		case a := <-w.pen.answer:
			w.asking = false
			w.fail(because(errEarly, a.err))
		default:
		}
	}
	switch {
	case w.err != nil:
		return w.err
	case w.ended:
		return errEnded
	}
	return nil
}

// begin writes the head of the message and the prelude, which leave with the next send.
func (w *response) begin(status int) {
	w.status = status
	out := append(w.pen.out[:0], "POST "+version+"invocation/"...)
	out = append(out, w.id...)
	out = append(out, "/response HTTP/1.1\r\nHost: "...)
	out = append(out, w.link.address...)
	out = append(out, "\r\nUser-Agent: "+userAgent+
		"\r\nContent-Type: application/vnd.awslambda.http-integration-response"+
		"\r\nLambda-Runtime-Function-Response-Mode: streaming"+
		"\r\nTransfer-Encoding: chunked"+
		"\r\nTrailer: "+headerErrorType+", "+headerErrorBody+"\r\n\r\n"...)
	w.pen.prelude = appendPrelude(w.pen.prelude[:0], status, w.header)
	out = strconv.AppendInt(out, int64(len(w.pen.prelude)), 16)
	out = append(out, "\r\n"...)
	out = append(out, w.pen.prelude...)
	w.pen.out = append(out, "\r\n"...)
}

// send sends what has been written and p as a chunk, in one system call.
func (w *response) send(p []byte) error {
	out := w.pen.out
	if len(p) > 0 {
		out = strconv.AppendInt(out, int64(len(p)), 16)
		out = append(out, "\r\n"...)
	}
	if len(p) > 0 && len(p) <= copied {
		out = append(out, p...)
		out = append(out, "\r\n"...)
		p = nil
	}
	w.pen.out = out[:0]
	if len(out) == 0 {
		return nil
	}
	var err error
	if w.link.conn == nil {
		err = w.link.dial(w.ctx)
	}
	switch {
	case err != nil:
	case p == nil:
		_, err = w.link.conn.Write(out)
	default:
		w.pen.parts = [3][]byte{out, p, []byte("\r\n")}
		buffers := net.Buffers(w.pen.parts[:])
		_, err = buffers.WriteTo(w.link.conn)
		w.pen.parts = [3][]byte{}
	}
	if err != nil {
		w.fail(err)
		return w.err
	}
	if !w.asking {
		w.ask()
	}
	return nil
}

// ask reads Lambda's answer beside the writing. Whoever takes the answer, or closes the
// connection and then takes it, has joined the reader.
func (w *response) ask() {
	w.asking = true
	if w.pen.answer == nil {
		w.pen.answer = make(chan answer, 1)
	}
	answers, reader := w.pen.answer, w.link.reader
	go func() { answers <- readAnswer(reader) }()
}

// end writes the end of the response, with trailers that are whole lines.
func (w *response) end(trailers string) {
	if w.ended {
		return
	}
	if w.status == 0 {
		w.begin(http.StatusOK)
	}
	w.pen.out = append(w.pen.out, "0\r\n"...)
	w.pen.out = append(w.pen.out, trailers...)
	w.pen.out = append(w.pen.out, "\r\n"...)
	w.send(nil) //nolint:errcheck // kept in w.err
	w.ended = true
}

// abort ends a response whose handler panicked: before output by saying so to the client,
// after output so that Lambda cuts it and nobody takes it for whole.
func (w *response) abort(f failure) {
	if w.status != 0 {
		w.end(f.trailers())
		return
	}
	w.header = http.Header{"Content-Type": {"application/json"}}
	w.begin(http.StatusInternalServerError)
	w.Write([]byte(internalError)) //nolint:errcheck // kept in w.err
}

// done ends the response when the handler has not, waits until Lambda has taken it, and
// leaves the link ready for another exchange. It returns what went wrong with the response.
func (w *response) done(deadline time.Time) error {
	w.end("")
	if w.asking {
		if deadline.IsZero() {
			deadline = time.Now().Add(unlimited)
		}
		w.link.conn.SetReadDeadline(deadline.Add(donePatience)) //nolint:errcheck // the read tells
		w.settle(<-w.pen.answer)
		if w.link.conn != nil {
			w.link.conn.SetReadDeadline(time.Time{}) //nolint:errcheck // the next read tells
		}
	}
	if w.limited && w.link.conn != nil {
		w.link.conn.SetWriteDeadline(time.Time{}) //nolint:errcheck // the next write tells
	}
	return w.err
}

// settle takes Lambda's answer to the whole response.
func (w *response) settle(a answer) {
	w.asking = false
	w.link.settle(a)
	if a.err != nil && w.err == nil {
		w.err = fmt.Errorf("response to Lambda: %w", a.err)
	}
}

// fail breaks the response: the connection is of no more use, and the reader is joined.
func (w *response) fail(cause error) {
	w.link.drop()
	if w.asking {
		w.asking = false
		if a := <-w.pen.answer; errors.As(a.err, new(*refused)) {
			cause = because(cause, a.err)
		}
	}
	w.ended = true
	w.err = fmt.Errorf("response to Lambda: %w", cause)
}

// because is err with its cause behind it, on one line for the log.
func because(err, cause error) error {
	if cause == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
