package s3log

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"switchboard/internal/record"
)

const (
	// maxRecord is the longest record that is read; Firehose takes none over 1,000 KiB.
	maxRecord = 1 << 20
	// maxTries bounds the search for a whole record behind a cut one on the same line.
	maxTries = 16
	// marker begins every event that a recorder writes. Texts in an event cannot hold it:
	// their quotes are escaped.
	marker = `{"event_id"`
)

// records splits a stream into events: JSON objects, with or without newlines between them.
//
// No record goes beyond a newline. What is no event is counted and skipped: a line that was
// cut, an object without event_id, garbage. Behind it reading goes on at the next newline, or
// where the next event begins. Memory is bounded by maxRecord, whatever comes.
type records struct {
	r        io.Reader
	buf      []byte
	pos, end int   // buf[pos:end] is what has been read and not used
	begun    bool  // a byte order mark can come no more
	err      error // of r; io.EOF at its end
	tries    int   // failed records since the last good one or newline

	unreadable int64
}

func newRecords(r io.Reader, buf []byte) *records {
	if len(buf) == 0 {
		buf = make([]byte, 64<<10)
	}
	return &records{r: r, buf: buf}
}

// next reads the next event into b. At the end of the stream more is false, and err is that
// of reading, if any.
func (s *records) next(b *batch) (more bool, err error) {
	for {
		if !s.find() {
			return false, s.failure()
		}
		n, got := b.parse(s.buf[s.pos:s.end])
		if got == other {
			n, got = s.slow(b)
		}
		switch {
		case got == event:
			s.pos += n
			s.tries = 0
			return true, nil
		case got == short && s.fill(s.end-s.pos):
			// Again, with twice as much of it: the work stays linear.
		case got == short && s.failure() != nil:
			return false, s.failure() // what is here may be whole; nobody knows
		default: // garbage, cut by the end of the stream, or too long
			s.skip(n)
		}
	}
}

// failure is why the stream ended before its end.
func (s *records) failure() error {
	if errors.Is(s.err, io.EOF) {
		return nil
	}
	return s.err
}

// find goes to the next byte that is no white space.
func (s *records) find() bool {
	if !s.begun {
		s.begun = true
		s.fill(len(bom))
		if bytes.HasPrefix(s.buf[:s.end], []byte(bom)) {
			s.pos = len(bom)
		}
	}
	for {
		for ; s.pos < s.end; s.pos++ {
			switch s.buf[s.pos] {
			case '\n':
				s.tries = 0
			case ' ', '\t', '\r':
			default:
				return true
			}
		}
		if !s.fill(1) {
			return false
		}
	}
}

const bom = "\xef\xbb\xbf"

// fill reads more, n bytes if there are as many. It is false when there is no more, or no
// more room.
func (s *records) fill(n int) bool {
	if s.pos > 0 {
		s.end = copy(s.buf, s.buf[s.pos:s.end])
		s.pos = 0
	}
	want := min(s.end+n, maxRecord)
	if want > len(s.buf) {
		s.buf = append(make([]byte, 0, min(max(2*len(s.buf), want), maxRecord)), s.buf...)
		s.buf = s.buf[:cap(s.buf)]
	}
	more := false
	for empty := 0; s.err == nil && s.end < want; {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		s.err = err
		more = more || n > 0
		if empty++; n > 0 {
			empty = 0
		}
		if empty == 100 && err == nil {
			s.err = io.ErrNoProgress
		}
	}
	return more
}

// skip counts what is at pos as unreadable, and goes to the end of its line or to the next
// event on it. What a record without event_id took, n bytes, is whole: behind it is another.
func (s *records) skip(n int) {
	s.unreadable++
	if n > 0 {
		s.pos += n
		return
	}
	s.tries++
	s.pos++
	for {
		rest := s.buf[s.pos:s.end]
		line := bytes.IndexByte(rest, '\n')
		if line >= 0 {
			rest = rest[:line]
		}
		if at := bytes.Index(rest, []byte(marker)); at >= 0 && s.tries < maxTries {
			s.pos += at
			return
		}
		if line >= 0 {
			s.pos += line
			return
		}
		s.pos = max(s.pos, s.end-len(marker)+1)
		if !s.fill(1) {
			s.pos = s.end
			return
		}
	}
}

// slow reads an object that the parser leaves to encoding/json: one with escapes, with
// fields that this version does not know, or with a fault.
func (s *records) slow(b *batch) (n int, got verdict) {
	text := s.buf[s.pos:s.end]
	if text[0] != '{' {
		return 0, none
	}
	n, got = objectEnd(text)
	if got != event {
		return 0, got
	}
	var e record.Event
	if err := json.Unmarshal(text[:n], &e); err != nil {
		if json.Valid(text[:n]) {
			return n, none // an object, but not ours
		}
		return 0, none
	}
	if !isEvent(&e) {
		return n, none
	}
	b.add(&e)
	return n, event
}

// isEvent tells what can be counted, once and somewhere in time, from other objects.
func isEvent(e *record.Event) bool {
	return e.EventID != "" && 0 < e.CreatedAt && e.CreatedAt < maxTime
}

// objectEnd finds where the object at the start of text ends, on the same line.
func objectEnd(text []byte) (n int, got verdict) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			return 0, none
		case quoted && c == '\\':
			i++
			if i < len(text) && text[i] == '\n' {
				return 0, none
			}
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1, event
			}
		}
	}
	return 0, short
}
