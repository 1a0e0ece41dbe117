// Package sse splits a byte stream into server-sent events without changing a byte.
package sse

// MaxEvent is how many bytes of one event the scanner keeps. Of a larger event it reports
// the end with TooLong set and no data; the bytes of the stream are not its business.
const MaxEvent = 1 << 20

// headKept and tailKept are what is kept of a larger event: its name stands at the
// beginning, and totals stand at the end.
const (
	headKept = 256
	tailKept = 64 << 10
)

// Event is one event as it ended. Its slices are valid until the next call of Next or Feed.
type Event struct {
	Name    []byte // of the last event: line, or nil
	Data    []byte // data lines joined by '\n'; nil for comments and empty events
	Comment bool   // nothing but comment lines
	TooLong bool   // larger than MaxEvent: Name is only what its first 256 bytes say
	Tail    []byte // of a TooLong event: its last 64 KiB as they came, with line ends
	End     int    // offset in the fed chunk just after the event's blank line
}

// Scanner finds events in a stream that arrives in chunks cut anywhere. Line ends are LF,
// CRLF or CR. An event that lies whole in one chunk with one data line is not copied and
// costs no allocation. The zero Scanner is ready.
//
// What it reports does not depend on how the stream is cut: an event whose blank line is a
// CR at the end of a chunk is held until the next byte, or Close, tells whether an LF
// belongs to it.
type Scanner struct {
	// Limit replaces MaxEvent where it is not 0. It is set before the first chunk.
	Limit int

	chunk []byte
	pos   int     // of chunk, up to where lines have been found
	start int     // of chunk, where the current event's bytes begin
	next  lineEnd // of chunk

	size    int  // bytes of the current event up to pos
	inLine  bool // the current line has begun
	skipLF  bool // the last byte was a CR that ended a line
	pending bool // the last byte was a CR that ended the event
	started bool // the first event of the stream, with its byte order mark, is over
	taken   bool // held belongs to an event that has been returned

	held []byte // the current event's bytes from earlier chunks
	head []byte // of an event larger than MaxEvent: its beginning; held is its tail then
	join []byte // several data lines joined
}

// Feed gives the scanner the next chunk. All events of the one before must have been taken.
func (s *Scanner) Feed(chunk []byte) {
	s.chunk, s.pos, s.start = chunk, 0, 0
	s.next = lineEnd{lf: -1, cr: -1}
}

// Next returns the next event that ends in the chunk. false: more input is needed.
func (s *Scanner) Next() (Event, bool) {
	s.release()
	for s.pos < len(s.chunk) {
		c := s.chunk[s.pos]
		if s.pending || s.skipLF {
			ends := s.pending
			s.pending, s.skipLF = false, false
			if c == '\n' {
				s.advance(s.pos + 1)
			}
			if ends {
				return s.event(), true
			}
			continue
		}
		if !s.inLine && (c == '\n' || c == '\r') {
			s.advance(s.pos + 1)
			if c == '\r' {
				s.pending = true
				continue
			}
			return s.event(), true
		}
		at := s.next.from(s.chunk, s.pos)
		if at == len(s.chunk) {
			s.inLine = true
			s.advance(at)
			break
		}
		s.inLine = false
		s.skipLF = s.chunk[at] == '\r'
		s.advance(at + 1)
	}
	s.hold(s.chunk[s.start:])
	s.Feed(nil)
	return Event{}, false
}

// Close ends the input: an event that lacks only its blank line, or the end of its last
// line too, is returned with End 0. Whether that line is complete is for the caller to see.
func (s *Scanner) Close() (Event, bool) {
	s.release()
	if s.size == 0 {
		return Event{}, false
	}
	s.Feed(nil)
	s.pending, s.skipLF = false, false
	return s.event(), true
}

// Partial tells how many bytes of the stream belong to an event that has not ended. Its
// answer is about what Next has seen.
func (s *Scanner) Partial() int { return s.size }

func (s *Scanner) advance(to int) {
	s.size += to - s.pos
	s.pos = to
}

func (s *Scanner) limit() int {
	if s.Limit > 0 {
		return s.Limit
	}
	return MaxEvent
}

// event returns the event that ends at pos and begins the next one.
func (s *Scanner) event() Event {
	last := s.chunk[s.start:s.pos]
	var e Event
	switch {
	case s.size > s.limit():
		e = s.large(last)
	case len(s.held) > 0:
		s.held = append(s.held, last...)
		e = s.parse(s.held)
	default:
		e = s.parse(last)
	}
	e.End = s.pos
	s.start, s.size = s.pos, 0
	s.inLine, s.started, s.taken = false, true, true
	return e
}

// release gives up the bytes of the event returned last.
func (s *Scanner) release() {
	if !s.taken {
		return
	}
	s.taken = false
	s.held, s.head = reuse(s.held), s.head[:0]
	s.join = reuse(s.join)
}

// reuse empties a buffer, and drops one that an unusual event made large: a stream lives
// for minutes and there are many.
func reuse(b []byte) []byte {
	if cap(b) > 4*tailKept {
		return nil
	}
	return b[:0]
}
