package provider

import (
	"bytes"

	"switchboard/internal/wire"
)

// ReadAnswer reads usage and response id from an answer that was not streamed. body may be
// only the last part of a large one (whole false): usage is then found from its end.
func ReadAnswer(surface wire.Surface, body []byte, whole bool) (usage Usage, responseID string) {
	return new(Vendor).ReadAnswer(surface, body, whole)
}

// ReadAnswer is the function of that name for an answer of the vendor.
func (v *Vendor) ReadAnswer(surface wire.Surface, body []byte, whole bool) (usage Usage, responseID string) {
	s := v.NewStream(surface)
	s.final = true
	if whole {
		c := cursor{b: body}
		s.responseObject(&c)
	} else if t, tier, ok := tailUsage(trim(body), 1); ok {
		s.tokens, s.seen = t, true
		s.setTier(tier)
	}
	if surface == wire.Responses {
		responseID = s.id
	}
	return s.Usage(), responseID
}

// tailUsage finds the usage object, and the service tier, that stand depth objects deep in
// a JSON text of which only the end is known.
//
// It looks for the keys from the end. Inside a string their quotes would be escaped, so a
// match is a key or a whole string; that it is a member at the right depth shows from
// what follows: from there to the end exactly depth more objects must close than open.
func tailUsage(tail []byte, depth int) (t tokens, tier []byte, ok bool) {
	value, ok := tailMember(tail, "usage", depth, '{')
	if !ok {
		return t, nil, false
	}
	c := cursor{b: tail, i: value}
	tier = t.read(&c)
	if tier == nil {
		if value, found := tailMember(tail, "service_tier", depth, '"'); found {
			c := cursor{b: tail, i: value}
			tier = c.str()
		}
	}
	return t, tier, true
}

// tailMember returns the offset of a member's value that begins with first.
func tailMember(tail []byte, name string, depth int, first byte) (int, bool) {
	quoted := []byte(`"` + name + `"`)
	end := len(tail)
	for range 64 { // each look is linear in the tail: a text made to match often must not cost more
		at := bytes.LastIndex(tail[:end], quoted)
		if at < 0 {
			return 0, false
		}
		end = at
		c := cursor{b: tail, i: at + len(quoted)}
		if at > 0 && tail[at-1] == '\\' || c.peek() != ':' {
			continue
		}
		c.i++
		if c.peek() != first {
			continue
		}
		value := c.i
		c.skip()
		if !c.bad && closes(tail[c.i:]) == depth {
			return value, true
		}
	}
	return 0, false
}

// closes tells how many more objects and arrays close than open in the rest of a text; -1
// if the text does not end with the last of them.
func closes(rest []byte) int {
	c := cursor{b: trim(rest)}
	depth, lowest, end := 0, 0, 0
	for c.i < len(c.b) && !c.bad {
		switch c.b[c.i] {
		case '"':
			c.text()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < lowest {
				lowest, end = depth, c.i+1
			}
		}
		c.i++
	}
	if c.bad || end != len(c.b) {
		return -1
	}
	return -lowest
}
