package s3log

import "unicode/utf8"

// cursor walks over one record. The first thing that it does not expect ends the walk:
// whatever it is asked then, it says no and stays where it is.
type cursor struct {
	text []byte
	pos  int
	bad  verdict // event: nothing is wrong
}

func (c *cursor) fail(why verdict) {
	if c.bad == event {
		c.bad = why
	}
}

// space skips white space; a newline is none, it ends the record.
func (c *cursor) space() {
	for c.pos < len(c.text) && (c.text[c.pos] == ' ' || c.text[c.pos] == '\t' || c.text[c.pos] == '\r') {
		c.pos++
	}
}

// need takes a sign, behind white space.
func (c *cursor) need(sign byte) {
	if c.bad == event && c.pos < len(c.text) && c.text[c.pos] == sign {
		c.pos++ // as recorders write it
		return
	}
	c.space()
	switch {
	case c.bad != event:
	case c.pos == len(c.text):
		c.fail(short)
	case c.text[c.pos] != sign:
		c.fail(other)
	default:
		c.pos++
	}
}

// more tells whether another element of an object or a list follows, and takes what stands
// before it, or the end.
func (c *cursor) more(end byte, first bool) bool {
	c.space()
	switch {
	case c.bad != event:
		return false
	case c.pos == len(c.text):
		c.fail(short)
		return false
	case c.text[c.pos] == end:
		c.pos++
		return false
	case first:
		return true
	}
	c.need(',')
	c.space()
	return c.bad == event
}

// quoted takes a string and returns where it is between its quotes. One with an escape is
// not for us.
func (c *cursor) quoted() (from, to int) {
	c.need('"')
	if c.bad != event {
		return 0, 0
	}
	start, ascii := c.pos, true
	for i, b := range c.text[start:] {
		if b > '"' && b != '\\' && b < utf8.RuneSelf || b == ' ' || b == '!' {
			continue
		}
		switch {
		case b == '"':
			c.pos = start + i + 1
			if !ascii && !utf8.Valid(c.text[start:start+i]) {
				c.fail(other)
			}
			return start, start + i
		case b >= utf8.RuneSelf:
			ascii = false
		default: // an escape or a control character
			c.fail(other)
			return 0, 0
		}
	}
	c.fail(short)
	return 0, 0
}

// int takes a whole number of at most 18 digits.
func (c *cursor) int() int64 {
	if c.bad != event {
		return 0
	}
	i, negative := c.pos, false
	if i < len(c.text) && c.text[i] == '-' {
		i, negative = i+1, true
	}
	n, digits := int64(0), 0
	for ; i < len(c.text) && '0' <= c.text[i] && c.text[i] <= '9' && digits < 19; i++ {
		n, digits = 10*n+int64(c.text[i]-'0'), digits+1
	}
	switch {
	case i == len(c.text):
		c.fail(short)
		return 0
	case digits == 0 || digits > 18 || digits > 1 && c.text[i-digits] == '0':
		c.fail(other)
		return 0
	}
	switch c.text[i] {
	case ',', '}', ']', ' ', '\t', '\r':
	default: // a fraction, an exponent, or what no number has
		c.fail(other)
		return 0
	}
	c.pos = i
	if negative {
		n = -n
	}
	return n
}

func (c *cursor) bool() bool {
	rest := c.text[c.pos:]
	switch {
	case c.bad != event:
	case len(rest) < len("false"):
		c.fail(short)
	case string(rest[:4]) == "true":
		c.pos += 4
		return true
	case string(rest[:5]) == "false":
		c.pos += 5
	default:
		c.fail(other)
	}
	return false
}
