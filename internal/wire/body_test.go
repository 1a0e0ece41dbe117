package wire

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadBody(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 5000) // 80 000 bytes
	for _, c := range []struct {
		name   string
		body   string
		length int64
		limit  int64
		buf    []byte
	}{
		{"known", text, int64(len(text)), 1 << 20, nil},
		{"unknown", text, -1, 1 << 20, nil},
		{"announced as 0 though there is one", text, 0, 1 << 20, nil},
		{"at the limit", text, int64(len(text)), int64(len(text)), nil},
		{"unknown, at the limit", text, -1, int64(len(text)), nil},
		{"empty", "", 0, 10, nil},
		{"empty, unknown", "", -1, 10, nil},
		{"small buffer", text, int64(len(text)), 1 << 20, make([]byte, 7, 10)},
		{"large buffer", text, int64(len(text)), 1 << 20, make([]byte, 3, 1<<20)},
		{"large buffer, unknown", text, -1, 1 << 20, make([]byte, 3, 1<<20)},
		{"longer than trusted", strings.Repeat(text, 150), int64(150 * len(text)), 32 << 20, nil},
	} {
		for how, reader := range map[string]io.Reader{
			"whole":           strings.NewReader(c.body),
			"in halves":       iotest.HalfReader(strings.NewReader(c.body)),
			"end with data":   iotest.DataErrReader(strings.NewReader(c.body)),
			"one byte a time": iotest.OneByteReader(strings.NewReader(c.body)),
		} {
			got, err := ReadBody(reader, c.length, c.limit, c.buf)
			if err != nil || string(got) != c.body {
				t.Errorf("%s, %s: ReadBody = %d bytes, %v, want %d, nil", c.name, how, len(got), err, len(c.body))
			}
			if cap(c.buf) >= 1<<20 && &got[0] != &c.buf[:1][0] {
				t.Errorf("%s, %s: ReadBody did not use the buffer", c.name, how)
			}
		}
	}
	if got, err := ReadBody(nil, 0, 10, nil); len(got) != 0 || err != nil {
		t.Errorf("ReadBody(nil) = %q, %v, want nothing", got, err)
	}
	if got, err := ReadBody(strings.NewReader("abcdef"), 3, 10, nil); string(got) != "abc" || err != nil {
		t.Errorf("ReadBody of 3 bytes = %q, %v, want abc", got, err)
	}
}

// TestLAM07 is case S-LAM-07 b: size limits are real, and the message names them.
func TestLAM07ReadBodyTooLarge(t *testing.T) {
	for _, c := range []struct {
		length, limit int64
		message       string
	}{
		{33554433, 33554432, "The request body is larger than the limit of 33554432 bytes (32 MiB)."},
		{2000, 1536, "The request body is larger than the limit of 1536 bytes (about 0.00 MiB)."},
		{2 << 20, 3 << 19, "The request body is larger than the limit of 1572864 bytes (about 1.50 MiB)."},
		{-1, 1 << 20, "The request body is larger than the limit of 1048576 bytes (1 MiB)."},
		{0, 1 << 20, "The request body is larger than the limit of 1048576 bytes (1 MiB)."},
	} {
		read := &counting{Reader: io.LimitReader(zeros{}, 40<<20)}
		_, err := ReadBody(read, c.length, c.limit, nil)
		var e *Error
		if !errors.As(err, &e) || e.Status != http.StatusRequestEntityTooLarge || e.Message != c.message {
			t.Errorf("ReadBody(length %d, limit %d) = %v, want 413 %q", c.length, c.limit, err, c.message)
		}
		if most := c.limit + 1; read.n > most || (c.length > c.limit && read.n > 0) {
			t.Errorf("ReadBody(length %d, limit %d) read %d bytes, want at most %d", c.length, c.limit, read.n, most)
		}
	}
}

func TestReadBodyEndsEarly(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name    string
		reader  io.Reader
		length  int64
		status  int
		message string
		cause   error
	}{
		{"short", strings.NewReader("abc"), 4, 400, "ended early", io.ErrUnexpectedEOF},
		{"nothing", strings.NewReader(""), 4, 400, "ended early", io.ErrUnexpectedEOF},
		{"cut", io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(io.ErrUnexpectedEOF)), 9, 400, "ended early", io.ErrUnexpectedEOF},
		{"cut, unknown length", io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(io.ErrUnexpectedEOF)), -1, 400, "ended early", io.ErrUnexpectedEOF},
		{"broken", iotest.ErrReader(broken), -1, 400, "could not be read", broken},
		{"slow", iotest.ErrReader(os.ErrDeadlineExceeded), -1, 408, "in time", os.ErrDeadlineExceeded},
		{"limited elsewhere", http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("abcdef")), 3), -1, 413, "limit of 3 bytes", nil},
	} {
		_, err := ReadBody(c.reader, c.length, 100, nil)
		var e *Error
		if !errors.As(err, &e) || e.Status != c.status || !strings.Contains(e.Message, c.message) {
			t.Errorf("%s: ReadBody = %v, want %d …%s…", c.name, err, c.status, c.message)
		}
		if c.cause != nil && !errors.Is(err, c.cause) {
			t.Errorf("%s: ReadBody = cause %v, want %v", c.name, errors.Unwrap(err), c.cause)
		}
	}
}

func TestReadBodyTakesLittleOnAnAnnouncement(t *testing.T) {
	var e *Error
	if _, err := ReadBody(strings.NewReader("{"), 1<<30, 1<<40, nil); !errors.As(err, &e) || e.Status != 400 {
		t.Errorf("ReadBody = %v, want 400", err)
	}
	if got := cap(grow(nil, 1<<30, 1<<30)); got != trusted {
		t.Errorf("grow for 1 GiB announced = %d bytes, want %d", got, trusted)
	}
	if got := cap(grow(bytes.Repeat([]byte{1}, trusted), 1<<30, 1<<30)); got < trusted+1 {
		t.Errorf("grow = %d bytes, want more than %d", got, trusted)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type counting struct {
	io.Reader
	n int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// inMemory is a body as a carrier has it that reads whole events.
type inMemory struct {
	io.Reader
	whole []byte
}

func (b inMemory) Bytes() []byte { return b.whole }

func TestLAM07InMemory(t *testing.T) {
	body := []byte(strings.Repeat("x", 100))
	got, ok, err := InMemory(inMemory{whole: body}, 100)
	if !ok || err != nil || &got[0] != &body[0] || len(got) != 100 {
		t.Errorf("InMemory of the limit's size = %d bytes, %v, %v, want the same bytes", len(got), ok, err)
	}
	var e *Error
	if _, ok, err := InMemory(inMemory{whole: body}, 99); !ok || !errors.As(err, &e) || e.Status != 413 || !strings.Contains(e.Message, "99 bytes") {
		t.Errorf("InMemory above the limit = %v, %v, want a 413 that says 99", ok, err)
	}
	if _, ok, err := InMemory(strings.NewReader("x"), 99); ok || err != nil {
		t.Errorf("InMemory of a stream = %v, %v, want no match", ok, err)
	}
}
