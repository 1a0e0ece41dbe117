package wire

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Members calls yield for each member of an object until yield returns false. A key keeps
// its quotes and escapes: compare it with Is. false: the span is no object, or is malformed
// at its own level; values are only checked for balance.
func Members(body []byte, object Span, yield func(key, value Span) bool) bool {
	if !object.Found() {
		return false
	}
	_, bad := scanObject(body[:object.End], object.Start, yield)
	return bad == nil
}

// Elements calls yield for each element of an array until yield returns false, and reads
// no further than that. false: as for Members.
func Elements(body []byte, array Span, yield func(value Span) bool) bool {
	if !array.Found() || body[array.Start] != '[' {
		return false
	}
	body = body[:array.End]
	i := skipSpace(body, array.Start+1)
	if i < len(body) && body[i] == ']' {
		return true
	}
	for {
		end, bad := skipValue(body, i)
		if bad != nil {
			return false
		}
		if !yield(Span{i, end}) {
			return true
		}
		i = skipSpace(body, end)
		if i >= len(body) || (body[i] != ',' && body[i] != ']') {
			return false
		}
		if body[i] == ']' {
			return true
		}
		i = skipSpace(body, i+1)
	}
}

// Value returns the span of the value that begins at or after offset at, behind white
// space. false: there is none, or it is malformed.
func Value(body []byte, at int) (Span, bool) {
	at = skipSpace(body, at)
	end, bad := skipValue(body, at)
	return Span{at, end}, bad == nil
}

// Space returns the offset of the first byte at or after i that is not white space.
func Space(body []byte, i int) int { return skipSpace(body, i) }

// String returns the decoded text of a string value. false: it is no string, or has an
// escape that JSON does not know. Bytes that are not UTF-8 are kept as they are, so that
// two different texts never become one.
func String(body []byte, value Span) (string, bool) {
	if !isString(body, value) {
		return "", false
	}
	inside := body[value.Start+1 : value.End-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return string(inside), true
	}
	decoded, ok := appendText(make([]byte, 0, len(inside)), inside)
	return string(decoded), ok
}

// AppendString appends the decoded text of a string value to dst. false: as for String.
func AppendString(dst, body []byte, value Span) ([]byte, bool) {
	if !isString(body, value) {
		return dst, false
	}
	return appendText(dst, body[value.Start+1:value.End-1])
}

// Is tells whether a key or string value decodes to text, without allocating when it has
// no escapes.
func Is(body []byte, value Span, text string) bool {
	if !isString(body, value) {
		return false
	}
	inside := body[value.Start+1 : value.End-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return string(inside) == text
	}
	if len(inside) > 6*len(text) { // an escape is at most six bytes for one
		return false
	}
	var few [128]byte
	decoded, ok := appendText(few[:0], inside)
	return ok && string(decoded) == text
}

func isString(body []byte, value Span) bool {
	return value.End-value.Start >= 2 && body[value.Start] == '"'
}

// appendText appends what stands between the quotes of a string, decoded.
func appendText(dst, inside []byte) ([]byte, bool) {
	for {
		k := bytes.IndexByte(inside, '\\')
		if k < 0 {
			return append(dst, inside...), true
		}
		dst = append(dst, inside[:k]...)
		inside = inside[k:]
		if len(inside) < 2 {
			return dst, false
		}
		c := inside[1]
		switch c {
		case '"', '\\', '/':
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, n := unicodeEscape(inside)
			if n == 0 {
				return dst, false
			}
			dst = utf8.AppendRune(dst, r)
			inside = inside[n:]
			continue
		default:
			return dst, false
		}
		dst = append(dst, c)
		inside = inside[2:]
	}
}

// unicodeEscape decodes the \uXXXX, or the surrogate pair of two, that s begins with. A lone
// surrogate is U+FFFD. A length of 0 means that it is malformed.
func unicodeEscape(s []byte) (r rune, length int) {
	r, ok := hex4(s)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if low, ok := hex4(s[6:]); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}

func hex4(s []byte) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range s[2:6] {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// AppendQuoted appends text as a JSON string. What is not UTF-8 becomes U+FFFD.
func AppendQuoted(dst []byte, text string) []byte {
	dst = append(dst, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ' || r == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0')
			if r < 0x10 {
				dst = append(dst, '0')
			}
			dst = strconv.AppendInt(dst, int64(r), 16)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
