package provider

import (
	"bytes"
	"math/bits"
)

// opening is how the last chat chunk began, up to its choices. The chunks of a stream
// begin alike (id, model, time, …): what is equal need not be walked again, which is
// half the cost of a content chunk.
type opening struct {
	n    int
	text [256]byte
}

func (o *opening) opens(data []byte) bool {
	return o.n > 0 && len(data) > o.n && bytes.Equal(data[:o.n], o.text[:o.n])
}

func (o *opening) keep(part []byte) {
	if o.n = 0; len(part) <= len(o.text) {
		o.n = copy(o.text[:], part)
	}
}

// readChat takes a chat.completion.chunk.
func (s *Stream) readChat(data []byte) Mark {
	c := cursor{b: data}
	var mark Mark
	var usage, failed bool
	choices, walked := 0, false
	if s.opening.opens(data) {
		walked = true
		c.i = s.opening.n
		mark, choices = s.readChoices(&c)
	} else {
		c.open('{')
	}
	for {
		key, ok := c.key()
		if !ok {
			break
		}
		switch string(key) {
		case "choices":
			if !walked && !usage && !failed {
				s.opening.keep(data[:c.i])
			}
			walked = true
			var m Mark
			m, choices = s.readChoices(&c)
			mark |= m
		case "usage":
			usage = s.takeUsage(&c) || usage
		case "service_tier":
			s.setTier(c.str())
		case "x_groq":
			failed = s.readGroq(&c) || failed
		case "error":
			failed = c.filled() || failed
		case "object", "type":
			// {"object":"error",…} and {"type":"error",…} from servers of other shapes.
			failed = string(c.str()) == "error" || failed
		default:
			c.skip()
		}
	}
	switch {
	case failed:
		return s.fail(data)
	case c.bad:
		return 0 // cut: the client cannot read it either
	case usage && choices == 0:
		mark |= UsageOnly
	}
	s.final = s.final || mark&(UsageOnly|End) != 0
	return mark
}

// takeUsage reads a usage object in place of what was known; null and other kinds of value
// are none.
func (s *Stream) takeUsage(c *cursor) bool {
	if c.peek() != '{' {
		c.skip()
		return false
	}
	var t tokens
	tier := t.read(c)
	if c.bad {
		return false // cut: its numbers may be as well
	}
	s.tokens, s.seen = t, true
	s.setTier(tier)
	return true
}

// readChoices returns what the choices mean and how many there are.
func (s *Stream) readChoices(c *cursor) (mark Mark, n int) {
	if !c.open('[') {
		return 0, 0
	}
	ended := false
	for ; c.element(); n++ {
		output, finished := s.readChoice(c)
		if output {
			mark |= Output
		}
		ended = ended || finished
	}
	if ended && s.begun == s.finished {
		mark |= End
	}
	return mark, n
}

func (s *Stream) readChoice(c *cursor) (output, finished bool) {
	if !c.open('{') {
		return false, false
	}
	var index int64
	for {
		key, ok := c.key()
		if !ok {
			break
		}
		switch string(key) {
		case "index":
			index, _, _ = c.count()
		case "delta", "message":
			output = readDelta(c) || output
		case "text":
			output = c.filled() || output
		case "finish_reason":
			reason := c.str()
			output = output || len(reason) > 0
			// "error" is how some report a generation that broke off.
			finished = len(reason) > 0 && string(reason) != "error"
		default:
			c.skip()
		}
	}
	bit := uint64(1) << min(index, bits.UintSize-1)
	s.begun |= bit
	if finished && !c.bad {
		s.finished |= bit
	}
	return output, finished && !c.bad
}

// readDelta tells whether a delta has content of any kind: text, refusal, reasoning, tool
// calls, audio or what a vendor will invent. The role alone is none.
func readDelta(c *cursor) (output bool) {
	if !c.open('{') {
		return false
	}
	for {
		key, ok := c.key()
		if !ok {
			return output
		}
		switch string(key) {
		case "role", "name", "id", "index", "provider_specific_fields":
			c.skip()
		default:
			output = c.filled() || output
		}
	}
}
