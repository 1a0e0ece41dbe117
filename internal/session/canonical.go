package session

import (
	"bytes"
	"encoding/binary"
	"slices"

	"switchboard/internal/wire"
)

// canonical writes JSON values in a form in which two spellings of one value are equal
// bytes, and two values never are: texts decoded behind their length, objects with their
// members sorted, no white space, no cache_control.
//
//	s<length, 4 bytes><text>   string, and the name of a member
//	n<length, 4 bytes><text>   number by its literal text, true, false, null; and any value
//	                           below maxDepth as it is spelled
//	[<value>…]                 array
//	{<name><value>…}           object
type canonical struct {
	body    []byte
	out     []byte
	scratch []byte   // where an object's members are put in order
	members []extent // of the objects that are open
	depth   int
}

// extent is where a member stands in out.
type extent struct{ name, value, end int }

// kind is how an object is read.
type kind int

const (
	plain kind = iota
	otherMessage
	systemMessage
)

// maxDepth bounds the recursion. What lies deeper counts as it is spelled; no schema that a
// provider accepts is a tenth as deep.
const maxDepth = 100

const (
	// billing begins a system block that Claude Code rewrites on every turn.
	billing = "x-anthropic-billing-header:"
	// A text part is these around the text, behind its own length.
	partBegin    = "{s\x04\x00\x00\x00texts"
	partText     = "s\x04\x00\x00\x00types\x04\x00\x00\x00text}"
	partInput    = "s\x04\x00\x00\x00types\x0a\x00\x00\x00input_text}"
	lengthOfSize = 4
)

// text writes a string that is already decoded.
func (c *canonical) text(s string) {
	c.out = append(c.out, 's')
	c.out = binary.LittleEndian.AppendUint32(c.out, uint32(len(s)))
	c.out = append(c.out, s...)
}

// string decodes and writes a string of the body.
func (c *canonical) string(value wire.Span) bool {
	c.out = append(c.out, 's', 0, 0, 0, 0)
	start := len(c.out)
	var ok bool
	c.out, ok = wire.AppendString(c.out, c.body, value)
	binary.LittleEndian.PutUint32(c.out[start-lengthOfSize:], uint32(len(c.out)-start))
	return ok
}

// value writes the value that begins at i and returns the offset behind it.
func (c *canonical) value(i int) (int, bool) {
	if i >= len(c.body) {
		return i, false
	}
	switch {
	case c.depth == maxDepth:
	case c.body[i] == '{':
		return c.object(i, plain)
	case c.body[i] == '[':
		return c.array(i, func(i int) (int, bool) { return c.value(i) })
	}
	value, ok := wire.Value(c.body, i)
	if !ok {
		return i, false
	}
	if c.body[i] == '"' {
		return value.End, c.string(value)
	}
	c.out = append(c.out, 'n')
	c.out = binary.LittleEndian.AppendUint32(c.out, uint32(value.End-value.Start))
	c.out = append(c.out, value.Of(c.body)...)
	return value.End, true
}

// array writes an array with each element written by element.
func (c *canonical) array(i int, element func(int) (int, bool)) (int, bool) {
	c.depth++
	c.out = append(c.out, '[')
	i = wire.Space(c.body, i+1)
	if i < len(c.body) && c.body[i] == ']' {
		i++
	} else {
		for more := true; more; {
			var ok bool
			if i, ok = element(i); !ok {
				return i, false
			}
			if i, more, ok = c.separator(i, ']'); !ok {
				return i, false
			}
		}
	}
	c.out = append(c.out, ']')
	c.depth--
	return i, true
}

// separator reads what follows an element or member: a comma and more, or the end.
func (c *canonical) separator(i int, closing byte) (next int, more, ok bool) {
	i = wire.Space(c.body, i)
	switch {
	case i >= len(c.body):
		return i, false, false
	case c.body[i] == closing:
		return i + 1, false, true
	case c.body[i] != ',':
		return i, false, false
	}
	return wire.Space(c.body, i+1), true, true
}

// object writes an object with its members in order of their decoded names.
func (c *canonical) object(i int, kind kind) (int, bool) {
	if i >= len(c.body) || c.body[i] != '{' {
		return i, false
	}
	c.depth++
	c.out = append(c.out, '{')
	first := len(c.members)
	i = wire.Space(c.body, i+1)
	if i < len(c.body) && c.body[i] == '}' {
		i++
	} else {
		for more := true; more; {
			var ok bool
			if i, ok = c.member(i, kind); !ok {
				return i, false
			}
			if i, more, ok = c.separator(i, '}'); !ok {
				return i, false
			}
		}
	}
	c.sort(c.members[first:])
	c.members = c.members[:first]
	c.out = append(c.out, '}')
	c.depth--
	return i, true
}

// member writes one member, unless it is one that does not count.
func (c *canonical) member(i int, kind kind) (int, bool) {
	name, ok := wire.Value(c.body, i)
	if !ok || c.body[i] != '"' {
		return i, false
	}
	start := len(c.out)
	if !c.string(name) {
		return i, false
	}
	i = wire.Space(c.body, name.End)
	if i >= len(c.body) || c.body[i] != ':' {
		return i, false
	}
	i = wire.Space(c.body, i+1)
	value := len(c.out)
	end, ok := c.memberValue(c.out[start+1+lengthOfSize:value], i, kind)
	if len(c.out) == value {
		c.out = c.out[:start]
		return end, ok
	}
	c.members = append(c.members, extent{start, value, len(c.out)})
	return end, ok
}

// memberValue writes a member's value; nothing for one that does not count.
func (c *canonical) memberValue(name []byte, i int, kind kind) (int, bool) {
	if string(name) == "cache_control" {
		value, ok := wire.Value(c.body, i)
		return value.End, ok
	}
	if kind != plain {
		switch string(name) {
		case "content":
			return c.content(i, kind)
		case "role", "type":
			return c.label(i, kind)
		}
	}
	return c.value(i)
}

// label writes the role or type of a message: system for developer, and nothing for the
// type message, which is what an item of the Responses surface is without a type.
func (c *canonical) label(i int, kind kind) (int, bool) {
	value, ok := wire.Value(c.body, i)
	switch {
	case ok && wire.Is(c.body, value, "message"):
		return value.End, true
	case ok && kind == systemMessage && wire.Is(c.body, value, "developer"):
		c.text("system")
		return value.End, true
	}
	return c.value(i)
}

// content writes what a message or system prompt says: one text part as its text, system
// blocks that change on every turn left out; nothing when nothing is left.
func (c *canonical) content(i int, kind kind) (int, bool) {
	start := len(c.out)
	if i >= len(c.body) || c.body[i] != '[' {
		end, ok := c.value(i)
		if kind == systemMessage && bytes.HasPrefix(c.out[start:], []byte("s")) &&
			bytes.HasPrefix(c.out[start+1+lengthOfSize:], []byte(billing)) {
			c.out = c.out[:start]
		}
		return end, ok
	}
	count, last := 0, 0
	end, ok := c.array(i, func(i int) (int, bool) {
		part := len(c.out)
		end, ok := c.value(i)
		if text, isText := textOf(c.out[part:]); kind == systemMessage && isText && bytes.HasPrefix(text, []byte(billing)) {
			c.out = c.out[:part]
			return end, ok
		}
		count, last = count+1, part
		return end, ok
	})
	switch {
	case !ok:
		return end, false
	case count == 0:
		c.out = c.out[:start]
	case count == 1:
		if text, isText := textOf(c.out[last : len(c.out)-1]); isText {
			size := lengthOfSize + len(text)
			from := last + len(partBegin)
			c.out[start] = 's'
			copy(c.out[start+1:], c.out[from:from+size])
			c.out = c.out[:start+1+size]
		}
	}
	return end, true
}

// textOf is the text of a canonical text part that has nothing but its text.
func textOf(part []byte) ([]byte, bool) {
	rest, ok := bytes.CutPrefix(part, []byte(partBegin))
	if !ok || len(rest) < lengthOfSize {
		return nil, false
	}
	size := int(binary.LittleEndian.Uint32(rest))
	rest = rest[lengthOfSize:]
	if size > len(rest) {
		return nil, false
	}
	end := string(rest[size:])
	return rest[:size], end == partText || end == partInput
}

// sort puts an object's members, the last thing written, in order of their names. Members
// of one name keep their order.
func (c *canonical) sort(members []extent) {
	byName := func(a, b extent) int {
		return bytes.Compare(c.out[a.name+1+lengthOfSize:a.value], c.out[b.name+1+lengthOfSize:b.value])
	}
	if slices.IsSortedFunc(members, byName) {
		return
	}
	start := members[0].name
	slices.SortStableFunc(members, byName)
	c.scratch = append(c.scratch[:0], c.out[start:]...)
	c.out = c.out[:start]
	for _, m := range members {
		c.out = append(c.out, c.scratch[m.name-start:m.end-start]...)
	}
}
