package wire

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
)

const (
	// trusted is the most memory in bytes that is set aside because a client announces a
	// length; a longer body is grown as it arrives.
	trusted = 8 << 20
	// firstGuess is the buffer in bytes for a body of unknown length.
	firstGuess = 16 << 10
)

// ReadBody reads a request body of at most limit bytes, into buf when that is large enough.
// contentLength is the announced length; 0 and less mean that it is not known, because some
// carriers hand over a body without one. It fails with *Error: 413 above the limit, which
// the message names, 400 when the body ends before its announced length or cannot be read,
// 408 when the client was too slow.
func ReadBody(r io.Reader, contentLength, limit int64, buf []byte) ([]byte, error) {
	if contentLength > limit {
		return nil, tooLarge(limit)
	}
	buf = buf[:0]
	if r == nil {
		return buf, nil
	}
	most := limit + 1 // one more than allowed tells that there is more
	if contentLength > 0 {
		most = contentLength
	}
	for int64(len(buf)) < most {
		if len(buf) == cap(buf) {
			buf = grow(buf, contentLength, most)
		}
		free := buf[len(buf):cap(buf)]
		n, err := r.Read(free[:min(int64(len(free)), most-int64(len(buf)))])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			if contentLength > 0 && int64(len(buf)) == contentLength {
				break
			}
			return nil, unreadable(err, limit)
		}
	}
	if int64(len(buf)) > limit {
		return nil, tooLarge(limit)
	}
	if int64(len(buf)) < contentLength {
		return nil, endedEarly(fmt.Errorf("%d of %d bytes: %w", len(buf), contentLength, io.ErrUnexpectedEOF))
	}
	return buf, nil
}

// InMemory returns a request body that its carrier has in memory as a whole, without
// copying it; ok is false for any other body. The bytes are the carrier's, until the handler
// returns. It fails with *Error, 413, above the limit.
func InMemory(r io.Reader, limit int64) (body []byte, ok bool, err error) {
	whole, ok := r.(interface{ Bytes() []byte })
	if !ok {
		return nil, false, nil
	}
	if body = whole.Bytes(); int64(len(body)) > limit {
		return nil, true, tooLarge(limit)
	}
	return body, true, nil
}

// grow returns buf with room for more, at most most bytes in all.
func grow(buf []byte, contentLength, most int64) []byte {
	size := 2 * int64(cap(buf))
	if len(buf) == 0 {
		size = firstGuess
		if contentLength > 0 {
			size = min(contentLength, trusted)
		}
	}
	larger := make([]byte, len(buf), min(max(size, firstGuess), most))
	copy(larger, buf)
	return larger
}

func unreadable(err error, limit int64) *Error {
	var tooMany *http.MaxBytesError
	switch {
	case errors.As(err, &tooMany):
		return tooLarge(min(limit, tooMany.Limit))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return endedEarly(err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Error{
			Status: http.StatusRequestTimeout, Type: "invalid_request_error", Code: "body_timeout",
			Message: "The request body did not arrive in time.", Cause: err,
		}
	}
	e := refuse("invalid_body", "", "The request body could not be read.")
	e.Cause = err
	return e
}

func endedEarly(cause error) *Error {
	e := refuse("invalid_body", "", "The request body ended early: fewer bytes came than were announced.")
	e.Cause = cause
	return e
}

func tooLarge(limit int64) *Error {
	mebibytes := strconv.FormatFloat(float64(limit)/(1<<20), 'f', -1, 64)
	if limit%(1<<20) != 0 {
		mebibytes = "about " + strconv.FormatFloat(float64(limit)/(1<<20), 'f', 2, 64)
	}
	return &Error{
		Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Code: "request_too_large",
		Message: fmt.Sprintf("The request body is larger than the limit of %d bytes (%s MiB).", limit, mebibytes),
	}
}
