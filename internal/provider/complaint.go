package provider

import (
	"bytes"
	"strings"
	"time"
)

// complaint is what an error body or error event says, in whichever of the vendors' shapes.
type complaint struct {
	shaped  bool   // JSON that says something about an error
	kind    string // error.type, lower case
	code    string // error.code when it is text, or error.status, lower case
	number  int    // error.code or error.status when it is an HTTP status
	message string // lower case
	param   bool   // a field of the request is named as the one at fault
	reset   string // when a limit ends, as a header would say it
	retry   time.Duration
}

// readComplaint reads b, which may be cut, or no JSON at all.
func readComplaint(b []byte) complaint {
	var e complaint
	c := cursor{b: trim(b)}
	if c.peek() == '[' { // Google wraps its errors in an array
		c.i++
	}
	if c.peek() == '{' {
		e.object(&c, 0)
	}
	return e
}

// object reads an object at a depth of nesting: {"error":{…}}, {"response":{"error":{…}}}
// or the members themselves. What an inner object says beats the outer one.
func (e *complaint) object(c *cursor, depth int) {
	c.i++
	var inner complaint
	for {
		key, ok := c.key()
		if !ok {
			break
		}
		switch string(key) {
		case "error", "response":
			if c.peek() == '{' && depth < 3 {
				inner.object(c, depth+1)
			} else if text := c.str(); len(text) > 0 {
				e.message, e.shaped = strings.ToLower(unquote(text)), true
			}
		case "message", "detail":
			if text := c.str(); len(text) > 0 {
				e.message, e.shaped = strings.ToLower(unquote(text)), true
			}
		case "type":
			if text := c.str(); len(text) > 0 {
				e.kind = strings.ToLower(unquote(text))
			}
		case "param":
			e.param = c.filled()
		case "code", "status":
			e.setCode(c.raw())
		case "resets_in_seconds":
			e.retry = seconds(number(c.raw()))
		case "details":
			e.details(c)
		case "metadata":
			e.metadata(c)
		default:
			c.skip()
		}
	}
	if inner.shaped || inner.kind != "" || inner.code != "" || inner.number != 0 {
		*e = inner
	}
	e.shaped = e.shaped || e.kind != "" || e.code != ""
}

// setCode takes a code or status: a number that is an HTTP status, or a word.
func (e *complaint) setCode(raw []byte) {
	if n := number(raw); n != 0 {
		if n >= 400 && n < 600 {
			e.number = int(n)
		}
		return
	}
	if len(raw) > 2 && raw[0] == '"' && e.code == "" {
		e.code = strings.ToLower(unquote(raw[1 : len(raw)-1]))
	}
}

// details looks for Google's RetryInfo: [{"@type":…,"retryDelay":"34s"}].
func (e *complaint) details(c *cursor) {
	if !c.open('[') {
		return
	}
	for c.element() {
		if !c.open('{') {
			continue
		}
		for {
			key, ok := c.key()
			if !ok {
				break
			}
			if string(key) == "retryDelay" {
				if d, err := time.ParseDuration(string(c.str())); err == nil {
					e.retry = bounded(d)
				}
				continue
			}
			c.skip()
		}
	}
}

// metadata reads OpenRouter's: {"limit_source":"…","headers":{"X-RateLimit-Reset":"…"}}. The
// code of its errors is the status, so that the source of a limit can stand for a word.
func (e *complaint) metadata(c *cursor) {
	if !c.open('{') {
		return
	}
	for {
		key, ok := c.key()
		if !ok {
			return
		}
		switch string(key) {
		case "limit_source":
			if text := c.str(); len(text) > 0 {
				e.kind = strings.ToLower(unquote(text))
			}
		case "headers":
			e.headers(c)
		default:
			c.skip()
		}
	}
}

func (e *complaint) headers(c *cursor) {
	if !c.open('{') {
		return
	}
	for {
		key, ok := c.key()
		if !ok {
			return
		}
		if strings.EqualFold(string(key), "X-RateLimit-Reset") {
			e.reset = string(bytes.Trim(c.raw(), `"`))
			continue
		}
		c.skip()
	}
}

// is tells whether the type or the code is one of words.
func (e *complaint) is(words ...string) bool {
	for _, w := range words {
		if e.kind == w || e.code == w {
			return true
		}
	}
	return false
}

// says tells whether the message contains one of texts.
func (e *complaint) says(texts ...string) bool {
	for _, t := range texts {
		if strings.Contains(e.message, t) {
			return true
		}
	}
	return false
}

// begins is the message up to its first quotation. What a client wrote comes back quoted
// in answers about the request, and must not pass for the provider's own words: anyone
// could switch our keys off with it.
func (e *complaint) begins() complaint {
	head := *e
	for i, ch := range []byte(head.message) {
		if ch == '"' || ch == '`' || ch == '\'' && (i == 0 || head.message[i-1] == ' ') {
			head.message = head.message[:i]
			break
		}
	}
	return head
}
