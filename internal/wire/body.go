package wire

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ReadBody reads a request body of at most limit bytes, into buf when that is large enough.
// contentLength is what the client announced, or -1. Errors are *Error: 413 over the limit,
// 400 when the body ends early.
func ReadBody(r io.Reader, contentLength, limit int64, buf []byte) ([]byte, error) {
	if contentLength > limit {
		return nil, tooLarge(limit)
	}
	buf = buf[:0]
	if contentLength >= 0 {
		if int64(cap(buf)) < contentLength {
			buf = make([]byte, 0, contentLength)
		}
		buf = buf[:contentLength]
		if _, err := io.ReadFull(r, buf); err != nil {
			return nil, endedEarly(err)
		}
		return buf, nil
	}
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return nil, tooLarge(limit)
		}
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return nil, endedEarly(err)
		}
	}
}

func tooLarge(limit int64) *Error {
	return &Error{
		Status: http.StatusRequestEntityTooLarge, Type: "request_too_large", Code: "request_too_large",
		Message: fmt.Sprintf("The request body is larger than the limit of %d bytes (%.1f MiB).", limit, float64(limit)/(1<<20)),
	}
}

func endedEarly(cause error) *Error {
	return &Error{
		Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "incomplete_body",
		Message: "The request body ended early.", Cause: cause,
	}
}
