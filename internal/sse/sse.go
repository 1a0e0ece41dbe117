// Package sse splits a byte stream into server-sent events without changing a byte.
package sse

// MaxEvent is how many bytes of one event the scanner keeps. Of a larger event it reports
// the end with TooLong set and no data; the bytes of the stream are not its business.
const MaxEvent = 1 << 20

// Event is one event as it ended. Its slices are valid until the next call of Next or Feed.
type Event struct {
	Name    []byte // of the last event: line, or nil
	Data    []byte // data lines joined by '\n'; nil for comments and empty events
	Comment bool   // nothing but comment lines
	TooLong bool
	End     int // offset in the fed chunk just after the event's blank line
}

// Scanner finds events in a stream that arrives in chunks cut anywhere. Line ends are LF,
// CRLF or CR. An event that lies whole in one chunk with one data line is not copied and
// costs no allocation. The zero Scanner is ready.
type Scanner struct {
	chunk []byte
}

// Feed gives the scanner the next chunk. All events of the one before must have been taken.
func (s *Scanner) Feed(chunk []byte) { panic("todo") }

// Next returns the next event that ends in the chunk. false: more input is needed.
func (s *Scanner) Next() (Event, bool) { panic("todo") }

// Close ends the input: an event that lacks only its blank line is returned with End 0.
func (s *Scanner) Close() (Event, bool) { panic("todo") }

// Partial tells how many bytes of the stream belong to an event that has not ended.
func (s *Scanner) Partial() int { panic("todo") }
