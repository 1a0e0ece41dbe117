package session

import (
	"bytes"
	"slices"
	"strings"

	"switchboard/internal/wire"
)

// canonical writes JSON so that two spellings of one meaning become the same bytes: members
// sorted by key, no white space, strings by their value, cache_control left out. It serves
// the hash alone; the body that is forwarded is never touched.
type canonical struct {
	body []byte
	out  []byte // reused
}

// maxDepth is how deep values are put in order; what lies deeper is taken as it is spelled.
const maxDepth = 100

// billingHeader begins the system block in which Claude Code sends a nonce.
const billingHeader = "x-anthropic-billing-header:"

type member struct {
	key   string
	value wire.Span
}

func (c *canonical) value(out []byte, v wire.Span) []byte { return c.nested(out, v, 0) }

func (c *canonical) nested(out []byte, v wire.Span, depth int) []byte {
	raw := v.Of(c.body)
	if depth > maxDepth {
		return append(out, raw...)
	}
	switch raw[0] {
	case '"':
		return c.str(out, v)
	case '{':
		return c.object(out, v, depth)
	case '[':
		out = append(out, '[')
		wire.Elements(c.body, v, func(e wire.Span) bool {
			out = append(c.nested(out, e, depth+1), ',')
			return true
		})
		return append(out, ']')
	}
	return append(out, raw...)
}

func (c *canonical) object(out []byte, v wire.Span, depth int, without ...string) []byte {
	members := c.members(v, without...)
	slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	out = append(out, '{')
	for _, m := range members {
		out = append(quote(out, m.key), ':')
		out = append(c.nested(out, m.value, depth+1), ',')
	}
	return append(out, '}')
}

// members lists an object's members less cache_control and those named.
func (c *canonical) members(v wire.Span, without ...string) []member {
	var list []member
	wire.Members(c.body, v, func(key, value wire.Span) bool {
		name, _ := wire.String(c.body, key)
		if name != "cache_control" && !slices.Contains(without, name) {
			list = append(list, member{name, value})
		}
		return true
	})
	return list
}

// content takes a message's or the system's content: an array with one text part equals
// the string, and the billing header is no content.
func (c *canonical) content(out []byte, v wire.Span) []byte {
	if c.body[v.Start] != '[' {
		return c.value(out, v)
	}
	var parts []wire.Span
	wire.Elements(c.body, v, func(part wire.Span) bool {
		if text, ok := c.textOf(part); !ok || !c.isBilling(text) {
			parts = append(parts, part)
		}
		return true
	})
	if len(parts) == 1 {
		if text, ok := c.textOf(parts[0]); ok {
			return c.str(out, text)
		}
	}
	out = append(out, '[')
	for _, part := range parts {
		out = append(c.value(out, part), ',')
	}
	return append(out, ']')
}

func (c *canonical) isBilling(text wire.Span) bool {
	s, _ := wire.String(c.body, text)
	return strings.HasPrefix(s, billingHeader)
}

// textOf returns the text of a part that is nothing but text.
func (c *canonical) textOf(part wire.Span) (text wire.Span, ok bool) {
	if c.body[part.Start] != '{' {
		return wire.Span{}, false
	}
	kind := false
	for _, m := range c.members(part) {
		switch s, isString := wire.String(c.body, m.value); {
		case m.key == "type" && (s == "text" || s == "input_text"):
			kind = true
		case m.key == "text" && isString:
			text = m.value
		default:
			return wire.Span{}, false
		}
	}
	return text, kind && text.Found()
}

// message splits a message into role, content and the canonical form of the rest. The type
// that a responses item may or may not carry makes no difference.
func (c *canonical) message(m wire.Span) (role string, content wire.Span, rest []byte) {
	if c.body[m.Start] != '{' {
		return "", wire.Span{}, c.value(nil, m)
	}
	without := []string{"role", "content"}
	for _, one := range c.members(m) {
		switch s, _ := wire.String(c.body, one.value); {
		case one.key == "role":
			role = s
		case one.key == "content":
			content = one.value
		case one.key == "type" && s == "message":
			without = append(without, "type")
		}
	}
	return role, content, c.object(nil, m, 0, without...)
}

// str writes a string by its value: as it stands where nothing is escaped.
func (c *canonical) str(out []byte, v wire.Span) []byte {
	raw := v.Of(c.body)
	if bytes.IndexByte(raw, '\\') < 0 {
		return append(out, raw...)
	}
	s, ok := wire.String(c.body, v)
	if !ok {
		return append(out, raw...)
	}
	return quote(out, s)
}

// quote escapes only what must be, so that equal values have equal spellings.
func quote(out []byte, s string) []byte {
	out = append(out, '"')
	for i := range len(s) {
		switch b := s[i]; {
		case b == '"' || b == '\\':
			out = append(out, '\\', b)
		case b < ' ':
			const hex = "0123456789abcdef"
			out = append(out, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		default:
			out = append(out, b)
		}
	}
	return append(out, '"')
}
