package carrier

import (
	"bytes"
	"errors"
)

var errSyntax = errors.New("it is not JSON")

func skipSpace(buf []byte, i int) int {
	for i < len(buf) && (buf[i] == ' ' || buf[i] == '\n' || buf[i] == '\r' || buf[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the offset behind the string whose opening quote is at i.
func skipString(buf []byte, i int) (int, error) {
	for j := i + 1; ; j++ {
		k := bytes.IndexByte(buf[j:], '"')
		if k < 0 {
			return 0, errUnended
		}
		j += k
		b := j
		for b > i+1 && buf[b-1] == '\\' {
			b--
		}
		if (j-b)%2 == 0 {
			return j + 1, nil
		}
	}
}

// skipValue returns the offset behind the value that begins at i. It is a member nobody
// here reads, so only its end is looked for: brackets are counted, not matched.
func skipValue(buf []byte, i int) (int, error) {
	depth := 0
	for i < len(buf) {
		switch buf[i] {
		case '"':
			end, err := skipString(buf, i)
			if err != nil {
				return 0, err
			}
			i = end
			if depth == 0 {
				return i, nil
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return 0, errSyntax // no value here
			}
			if depth--; depth == 0 {
				return i + 1, nil
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return 0, errSyntax
			}
		default:
			if depth == 0 {
				return skipWord(buf, i)
			}
		}
		i++
	}
	return 0, errSyntax
}

// skipWord returns the offset behind the number or literal that begins at i.
func skipWord(buf []byte, i int) (int, error) {
	for i < len(buf) {
		switch c := buf[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '+', c == '.', c == 'E':
			i++
		case c == ',' || c == '}' || c == ']' || c <= ' ':
			return i, nil
		default:
			return 0, errSyntax
		}
	}
	return i, nil
}

// isNull reports whether a null stands at i.
func isNull(buf []byte, i int) bool { return bytes.HasPrefix(buf[i:], []byte("null")) }

// list calls item at the first byte of each element of the array at i, or for each member's
// name of the object at i; item returns the offset behind what it has read. A null is an
// empty list. It returns the offset behind the closing bracket.
func list(buf []byte, i int, open, closing byte, item func(i int) (int, error)) (int, error) {
	if isNull(buf, i) {
		return i + len("null"), nil
	}
	if i >= len(buf) || buf[i] != open {
		return 0, errSyntax
	}
	i = skipSpace(buf, i+1)
	if i < len(buf) && buf[i] == closing {
		return i + 1, nil
	}
	for {
		next, err := item(i)
		if err != nil {
			return 0, err
		}
		i = skipSpace(buf, next)
		switch {
		case i >= len(buf):
			return 0, errSyntax
		case buf[i] == closing:
			return i + 1, nil
		case buf[i] != ',':
			return 0, errSyntax
		}
		i = skipSpace(buf, i+1)
	}
}
