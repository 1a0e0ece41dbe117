package wire

import "bytes"

// fault is where and why a text is not JSON.
type fault struct {
	at   int // byte offset
	what string
}

// skipSpace returns the offset of the first byte at or after i that is not white space.
func skipSpace(body []byte, i int) int {
	for i < len(body) && isSpace(body[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// skipString returns the offset behind the string whose opening quote is at i, or -1 when
// it does not end. The contents are not looked at: a quote ends the string unless an odd
// number of backslashes stands before it, so that long texts pass at the speed of IndexByte.
func skipString(body []byte, i int) int {
	for j := i + 1; ; j++ {
		k := bytes.IndexByte(body[j:], '"')
		if k < 0 {
			return -1
		}
		j += k
		b := j
		for b > i+1 && body[b-1] == '\\' {
			b--
		}
		if (j-b)%2 == 0 {
			return j + 1
		}
	}
}

// skipValue returns the offset behind the value that begins at i. Objects and arrays are
// checked for balance only: what they hold is the provider's business.
func skipValue(body []byte, i int) (int, *fault) {
	if i >= len(body) {
		return i, &fault{i, "the body ends where a value belongs"}
	}
	switch c := body[i]; {
	case c == '"':
		end := skipString(body, i)
		if end < 0 {
			return i, &fault{i, "a string does not end"}
		}
		return end, nil
	case c == '{' || c == '[':
		return skipNested(body, i)
	case c == 't':
		return skipLiteral(body, i, "true")
	case c == 'f':
		return skipLiteral(body, i, "false")
	case c == 'n':
		return skipLiteral(body, i, "null")
	case c == '-' || isDigit(c):
		return skipNumber(body, i)
	}
	return i, &fault{i, "a value cannot begin here"}
}

// skipNested keeps the open brackets on an explicit stack: a body of a million of them
// must cost memory in proportion, not a goroutine stack.
func skipNested(body []byte, i int) (int, *fault) {
	var few [64]byte
	open := few[:0]
	for i < len(body) {
		switch c := body[i]; c {
		case '"':
			end := skipString(body, i)
			if end < 0 {
				return i, &fault{i, "a string does not end"}
			}
			i = end
			continue
		case '{', '[':
			open = append(open, c)
		case '}', ']':
			// '{' and '}', '[' and ']' are each two apart in ASCII.
			if open[len(open)-1] != c-2 {
				return i, &fault{i, "a bracket closes another kind"}
			}
			open = open[:len(open)-1]
			if len(open) == 0 {
				return i + 1, nil
			}
		}
		i++
	}
	return i, &fault{i, "the body ends inside a value"}
}

func skipLiteral(body []byte, i int, literal string) (int, *fault) {
	end := i + len(literal)
	if end > len(body) || string(body[i:end]) != literal {
		return i, &fault{i, "a value is none of true, false and null"}
	}
	return end, nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func skipDigits(body []byte, i int) int {
	for i < len(body) && isDigit(body[i]) {
		i++
	}
	return i
}

func skipNumber(body []byte, start int) (int, *fault) {
	i := start
	if body[i] == '-' {
		i++
	}
	whole := i
	i = skipDigits(body, i)
	ok := i > whole && (body[whole] != '0' || i == whole+1)
	if i < len(body) && body[i] == '.' {
		fraction := i + 1
		i = skipDigits(body, fraction)
		ok = ok && i > fraction
	}
	if i < len(body) && (body[i] == 'e' || body[i] == 'E') {
		i++
		if i < len(body) && (body[i] == '+' || body[i] == '-') {
			i++
		}
		exponent := i
		i = skipDigits(body, exponent)
		ok = ok && i > exponent
	}
	if !ok {
		return start, &fault{start, "a number is malformed"}
	}
	return i, nil
}

// scanObject calls member for each member of the object whose brace is at i, until member
// returns false, and returns the offset behind the object. Commas, colons and keys of this
// object are checked strictly, values as skipValue does.
func scanObject(body []byte, i int, member func(key, value Span) bool) (int, *fault) {
	if i >= len(body) || body[i] != '{' {
		return i, &fault{i, "an object belongs here"}
	}
	i = skipSpace(body, i+1)
	if i < len(body) && body[i] == '}' {
		return i + 1, nil
	}
	for {
		if i >= len(body) || body[i] != '"' {
			return i, &fault{i, "the name of a member belongs here"}
		}
		end := skipString(body, i)
		if end < 0 {
			return i, &fault{i, "a string does not end"}
		}
		key := Span{i, end}
		i = skipSpace(body, end)
		if i >= len(body) || body[i] != ':' {
			return i, &fault{i, "a colon belongs here"}
		}
		i = skipSpace(body, i+1)
		end, bad := skipValue(body, i)
		if bad != nil {
			return end, bad
		}
		if !member(key, Span{i, end}) {
			return end, nil
		}
		i = skipSpace(body, end)
		switch {
		case i >= len(body):
			return i, &fault{i, "the body ends inside an object"}
		case body[i] == '}':
			return i + 1, nil
		case body[i] != ',':
			return i, &fault{i, "a comma or a closing brace belongs here"}
		}
		i = skipSpace(body, i+1)
	}
}
