package carrier

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	version    = "/2018-06-01/runtime/"
	userAgent  = "switchboard"
	dialBudget = 5 * time.Second

	// readAhead is the buffer in bytes for the heads of the Runtime API's answers. What is
	// longer, an event's body, goes past it.
	readAhead = 4 << 10
	// largestEvent is above the most in bytes that Lambda sends (6 MB, and what is around it).
	largestEvent = 7 << 20
	// explanation is how much in bytes of an answer that refuses is kept for the log.
	explanation = 1 << 10
)

// link is one kept connection to the Runtime API, used for one exchange at a time. It is a
// client of its own, because a response has to be written from the handler's Write, in one
// system call and without another goroutine between.
type link struct {
	address string
	conn    net.Conn // nil when there is none
	reader  *bufio.Reader
	used    bool // conn has carried an exchange
}

// invocation is the answer to next, but for the event.
type invocation struct {
	Invocation
	deadline time.Time // zero when Lambda names none
}

func (l *link) dial(ctx context.Context) error {
	conn, err := (&net.Dialer{Timeout: dialBudget}).DialContext(ctx, "tcp", l.address)
	if err != nil {
		return err
	}
	if l.reader == nil {
		l.reader = bufio.NewReaderSize(conn, readAhead)
	}
	l.reader.Reset(conn)
	l.conn, l.used = conn, false
	return nil
}

// drop gives the connection up; the next exchange makes a new one.
func (l *link) drop() {
	if l.conn != nil {
		l.conn.Close() //nolint:errcheck // nothing more is expected of it
		l.conn = nil
	}
}

// begin sends what starts an exchange, on a new connection when there is none.
func (l *link) begin(ctx context.Context, head []byte) error {
	if l.conn == nil {
		if err := l.dial(ctx); err != nil {
			return err
		}
	}
	_, err := l.conn.Write(head)
	return err
}

// next waits for an invocation and reads its event into buf or a larger buffer, which it
// returns. The end of ctx ends the wait.
func (l *link) next(ctx context.Context, buf []byte) (invocation, []byte, error) {
	inv, event, err := l.askNext(ctx, buf)
	if errors.Is(err, errStale) && ctx.Err() == nil {
		// The kept connection had been closed meanwhile: no invocation was handed out on it.
		inv, event, err = l.askNext(ctx, buf)
	}
	if err != nil {
		l.drop()
		return inv, buf, fmt.Errorf("next invocation: %w", err)
	}
	return inv, event, nil
}

// errStale is a kept connection that was closed before a byte of an answer came.
var errStale = errors.New("the kept connection was closed")

func (l *link) askNext(ctx context.Context, buf []byte) (invocation, []byte, error) {
	kept := l.conn != nil && l.used
	err := l.begin(ctx, []byte("GET "+version+"invocation/next HTTP/1.1\r\nHost: "+l.address+"\r\nUser-Agent: "+userAgent+"\r\n\r\n"))
	if err == nil {
		err = l.await(ctx)
	}
	if err != nil {
		l.drop()
		if kept {
			err = because(errStale, err)
		}
		return invocation{}, buf, err
	}
	l.used = true
	return l.readEvent(buf)
}

// await waits for the first byte of an answer, or for the end of ctx. What has begun to
// arrive by then is still taken: somebody waits for its answer.
func (l *link) await(ctx context.Context) error {
	conn, ended := l.conn, make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		conn.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // a closed one is not waited for
		close(ended)
	})
	_, err := l.reader.Peek(1)
	if !stop() {
		<-ended
		conn.SetReadDeadline(time.Time{}) //nolint:errcheck // the next read tells
	}
	return err
}

func (l *link) readEvent(buf []byte) (invocation, []byte, error) {
	response, err := http.ReadResponse(l.reader, nil)
	if err != nil {
		return invocation{}, buf, err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end, or the connection is dropped
	if response.StatusCode != http.StatusOK {
		return invocation{}, buf, refusal(response)
	}
	buf, err = readAll(response.Body, response.ContentLength, buf)
	if err != nil {
		return invocation{}, buf, err
	}
	if response.Close {
		l.drop()
	}
	h := response.Header
	inv := invocation{Invocation: Invocation{
		RequestID: h.Get("Lambda-Runtime-Aws-Request-Id"), TraceID: h.Get("Lambda-Runtime-Trace-Id"),
		FunctionARN: h.Get("Lambda-Runtime-Invoked-Function-Arn"),
	}}
	if ms, err := strconv.ParseInt(h.Get("Lambda-Runtime-Deadline-Ms"), 10, 64); err == nil {
		inv.deadline = time.UnixMilli(ms)
	}
	return inv, buf, nil
}

// readAll reads r, which announces length bytes or, when that is negative, does not say,
// into buf or a larger buffer.
func readAll(r io.Reader, length int64, buf []byte) ([]byte, error) {
	if length >= 0 {
		if int64(cap(buf)) < length {
			// With room to grow: each turn of a conversation is a little longer than the last.
			buf = make([]byte, max(length, min(2*int64(cap(buf)), largestEvent)))
		}
		buf = buf[:length]
		_, err := io.ReadFull(r, buf)
		return buf, err
	}
	buf = buf[:0]
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}

// refused is an answer of the Runtime API that is none of those its protocol has.
type refused struct{ status, why string }

func (e *refused) Error() string { return "the Runtime API answered " + e.status + ": " + e.why }

func refusal(response *http.Response) error {
	why, _ := io.ReadAll(io.LimitReader(response.Body, explanation)) //nolint:errcheck // the status is what counts
	return &refused{response.Status, string(why)}
}

// post sends a whole JSON message and reads the answer, until ctx ends.
func (l *link) post(ctx context.Context, path, errorType string, message []byte) error {
	head := "POST " + version + path + " HTTP/1.1\r\nHost: " + l.address + "\r\nUser-Agent: " + userAgent +
		"\r\nContent-Type: application/json\r\n" + headerErrorType + ": " + errorType +
		"\r\nContent-Length: " + strconv.Itoa(len(message)) + "\r\n\r\n"
	err := l.begin(ctx, append([]byte(head), message...))
	if err == nil {
		err = l.await(ctx)
	}
	if err != nil {
		l.drop()
		return err
	}
	answer := readAnswer(l.reader)
	l.settle(answer)
	return answer.err
}

// answer is what the Runtime API said to a message.
type answer struct {
	keep bool // the connection can carry another exchange
	err  error
}

// readAnswer reads the answer to a message: a 202, or an error.
func readAnswer(reader *bufio.Reader) answer {
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return answer{false, err}
	}
	defer response.Body.Close() //nolint:errcheck // read to its end, or the connection is dropped
	if response.StatusCode != http.StatusAccepted {
		err = refusal(response)
	}
	_, copied := io.Copy(io.Discard, response.Body)
	return answer{copied == nil && !response.Close, err}
}

// settle ends an exchange: the connection is kept when it can be.
func (l *link) settle(a answer) {
	l.used = true
	if !a.keep {
		l.drop()
	}
}
