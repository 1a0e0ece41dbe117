package translate

import (
	"bytes"

	"switchboard/internal/sse"
	"switchboard/internal/wire"
)

// maxEvent is the largest event in bytes that is translated: it must be had whole.
const maxEvent = 16 << 20

// Stream translates the events of one streamed answer. What it gives does not depend on how
// the stream is cut. It makes nothing up: a stream that is cut before its end marker gets
// none.
type Stream struct {
	buf
	to      wire.Surface
	o       Reply
	scanner sse.Scanner
	doc     document
	ended   bool // by an end marker or an error: nothing follows
	broken  bool

	chat     toChat
	messages toMessages
}

// NewStream begins the translation of a stream from the provider's surface to the client's.
func NewStream(from, to wire.Surface, o Reply) *Stream {
	s := &Stream{to: to, o: o}
	s.scanner.Limit = maxEvent
	s.ended = !Can(to, from)
	return s
}

// Feed takes the next bytes of the provider's stream and returns those for the client. They
// are valid until the next call.
func (s *Stream) Feed(chunk []byte) []byte {
	s.b = s.b[:0]
	s.scanner.Feed(chunk)
	for {
		event, ok := s.scanner.Next()
		if !ok {
			return s.b
		}
		s.event(&event)
	}
}

// Close ends the input and returns what is left to say: of a chat completion that gave its
// finish reason, which is whole without an end marker, the end.
func (s *Stream) Close() []byte {
	s.b = s.b[:0]
	if event, ok := s.scanner.Close(); ok {
		s.event(&event)
	}
	if !s.ended && s.to == wire.Messages && s.messages.finish != "" {
		s.endMessage()
	}
	return s.b
}

// Broken tells whether the translation has ended the stream with an error of its own, because
// an event is larger than can be kept.
func (s *Stream) Broken() bool { return s.broken }

func (s *Stream) event(e *sse.Event) {
	switch data := bytes.TrimSpace(e.Data); {
	case s.ended:
	case e.Comment:
		s.ping()
	case e.TooLong:
		s.broken = true
		s.fail(value{})
	case s.to == wire.Messages && string(data) == "[DONE]":
		s.endMessage()
	case !s.doc.parse(data) || !s.doc.root().isObject():
		switch {
		case string(e.Name) == "error":
			s.fail(value{})
		case string(e.Name) == "message_stop" && s.to == wire.Chat && len(data) == 0:
			s.endChat()
		}
	case string(e.Name) == "error":
		s.fail(s.doc.root())
	case s.to == wire.Messages:
		s.chatChunk(s.doc.root())
	default:
		s.messagesEvent(e.Name, s.doc.root())
	}
}

// fail passes an error on. Nothing follows it.
func (s *Stream) fail(root value) {
	s.b = append(s.b, streamError(s.to, root)...)
	s.ended = true
}

// ping keeps the connection alive, as the provider does.
func (s *Stream) ping() {
	if s.to == wire.Messages {
		if s.messages.begun {
			s.b = append(s.b, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...)
		}
		return
	}
	s.b = append(s.b, ": ping\n\n"...)
}
