package provider

import (
	"bytes"

	"switchboard/internal/health"
	"switchboard/internal/sse"
	"switchboard/internal/wire"
)

// Mark is what an event means for the relay.
type Mark uint8

// Marks of an event; several may be set.
const (
	Output    Mark = 1 << iota // the client would see content: no failover after it
	UsageOnly                  // a chat chunk with empty choices and usage: hidden when we asked for it
	Error                      // an error event; see Stream.Failure
	End                        // the stream is complete without more
	Done                       // the end marker itself ([DONE], message_stop, response.completed)
)

// Stream observes the events of one streamed answer. Reading is lenient: what it does not
// understand is no error. It never keeps slices of what it was given.
type Stream struct {
	surface wire.Surface
	vendor  *Vendor // nil: one like all

	tokens tokens
	seen   bool // a usage object was there
	final  bool // the usage is complete
	tier   string
	id     string

	// Choices of a chat stream, a bit each: with n > 1 the first one to finish does not
	// make the stream complete.
	begun, finished uint64
	opening         opening

	failure Failure
	status  int
}

// NewStream starts observing; the value form lets the caller embed it.
func NewStream(surface wire.Surface) Stream { return Stream{surface: surface} }

// NewStream starts observing an answer of the vendor.
func (v *Vendor) NewStream(surface wire.Surface) Stream { return Stream{surface: surface, vendor: v} }

// Read takes the next event. No allocation for a content chunk.
func (s *Stream) Read(e sse.Event) Mark {
	if e.Comment {
		return 0
	}
	if e.TooLong {
		return s.readLarge(e)
	}
	data := trim(e.Data)
	switch {
	case string(data) == "[DONE]":
		s.final = true
		return End | Done
	case string(e.Name) == "error":
		return s.fail(data)
	case !looksWhole(data):
		// Nothing, plain text, or JSON that the end of the stream has cut.
		return s.nameOnly(e.Name, data)
	}
	switch s.surface {
	case wire.Responses:
		return s.readResponses(e.Name, data)
	case wire.Messages:
		return s.readMessages(e.Name, data)
	default:
		return s.readChat(data)
	}
}

// nameOnly is what an event without readable data means: only Anthropic's end marker says
// all in its name.
func (s *Stream) nameOnly(name, data []byte) Mark {
	if s.vendor != nil && s.vendor.WrapsErrors && len(data) > 0 && data[0] == '[' {
		if inner := unwrap(data); looksWhole(inner) && errorMember(inner) {
			return s.fail(inner)
		}
	}
	if s.surface == wire.Messages && string(name) == "message_stop" && len(data) == 0 {
		return End | Done
	}
	return 0
}

// readLarge takes an event too large to keep. It is content; of the one that ends a
// responses stream the totals stand in its tail.
func (s *Stream) readLarge(e sse.Event) Mark {
	switch string(e.Name) {
	case "error":
		return s.fail(nil)
	case "response.completed", "response.incomplete":
		s.final = true
		s.takeTail(e.Tail)
		return Output | End | Done
	}
	return Output
}

// takeTail reads usage from the end of an event's raw lines.
func (s *Stream) takeTail(tail []byte) {
	tail = bytes.TrimRight(tail, "\r\n")
	if t, tier, ok := tailUsage(tail, 2); ok {
		s.tokens, s.seen = t, true
		s.setTier(tier)
	}
}

// Usage returns what is known: Quality exact after the final usage, partial when only a
// part was seen (Anthropic's message_start without message_delta), else unknown.
func (s *Stream) Usage() Usage {
	if !s.seen {
		return Usage{ServiceTier: s.tier, Quality: usageUnknown}
	}
	u := s.tokens.usage(s.surface, s.tier, s.final)
	if s.vendor != nil {
		s.vendor.correct(&u, &s.tokens)
	}
	return u
}

// ResponseID is the id of a responses-surface answer, else empty.
func (s *Stream) ResponseID() string { return s.id }

// Failure is what the last Error event meant, with the HTTP status that its type stands
// for (529 overloaded, 429 rate limit, 400 invalid request, else 502).
func (s *Stream) Failure() (Failure, int) {
	if s.status == 0 {
		return Failure{Class: health.ServerError}, 502
	}
	return s.failure, s.status
}

func (s *Stream) fail(data []byte) Mark {
	e := readComplaint(data)
	s.failure, s.status = e.inBand(s.vendor)
	return Error
}

// setTier keeps a service tier; the last one that is named wins. nil names none.
func (s *Stream) setTier(raw []byte) {
	if raw != nil && string(raw) != s.tier {
		s.tier = tierName(raw)
	}
}

// typeOf returns the type of an event: what its data says, else its name.
func typeOf(name, data []byte) []byte {
	c := cursor{b: data}
	if c.open('{') {
		for {
			key, ok := c.key()
			if !ok {
				break
			}
			if string(key) == "type" {
				if t := c.str(); len(t) > 0 {
					return t
				}
				break
			}
			c.skip()
		}
	}
	return name
}

// errorMember tells whether an event without a type is an error in the shape {"error":…}.
func errorMember(data []byte) bool {
	c := cursor{b: data}
	if !c.open('{') {
		return false
	}
	for {
		key, ok := c.key()
		if !ok {
			return false
		}
		if string(key) == "error" {
			return c.filled()
		}
		c.skip()
	}
}

// looksWhole tells whether data can be a complete JSON object.
func looksWhole(data []byte) bool {
	return len(data) > 1 && data[0] == '{' && data[len(data)-1] == '}'
}

// trim is bytes.TrimSpace for JSON's white space, without its work for other texts.
func trim(b []byte) []byte {
	for len(b) > 0 && b[0] <= ' ' {
		b = b[1:]
	}
	for len(b) > 0 && b[len(b)-1] <= ' ' {
		b = b[:len(b)-1]
	}
	return b
}
