package carrier

import (
	"bytes"
	"encoding/binary"
	"errors"
	"unicode/utf16"
	"unicode/utf8"
)

var (
	errUnended   = errors.New("a string does not end")
	errBadEscape = errors.New("a string holds an invalid escape")
)

const (
	everyByte = 0x0101010101010101
	highBits  = 0x8080808080808080
)

// special marks, by their high bits, bytes of w that are a quote or a backslash. The lowest
// mark is always right; one above it may be false.
func special(w uint64) uint64 {
	quote := w ^ (everyByte * '"')
	slash := w ^ (everyByte * '\\')
	return ((quote - everyByte) & ^quote & highBits) | ((slash - everyByte) & ^slash & highBits)
}

// unescape turns the JSON string whose contents begin at buf[from] into its text, in place:
// the text is buf[from:to], and next is the offset behind the closing quote. It goes over
// the string once, a word at a time, because a request's body is one string of megabytes
// with an escape every few bytes. Bytes that are not escapes stay as they are.
func unescape(buf []byte, from int) (to, next int, err error) {
	end := bytes.IndexByte(buf[from:], '"')
	if end < 0 {
		return 0, 0, errUnended
	}
	first := bytes.IndexByte(buf[from:from+end], '\\')
	if first < 0 {
		return from + end, from + end + 1, nil
	}
	src := from + first
	dst := src
	for {
		// dst is never above src, so a word that is read before it is written loses nothing.
		for src+8 <= len(buf) {
			w := binary.LittleEndian.Uint64(buf[src:])
			if special(w) != 0 {
				break
			}
			binary.LittleEndian.PutUint64(buf[dst:], w)
			src, dst = src+8, dst+8
		}
		for src < len(buf) && buf[src] != '"' && buf[src] != '\\' {
			buf[dst] = buf[src]
			src, dst = src+1, dst+1
		}
		if src >= len(buf) {
			return 0, 0, errUnended
		}
		if buf[src] == '"' {
			return dst, src + 1, nil
		}
		if src, dst, err = unescapeOne(buf, src, dst); err != nil {
			return 0, 0, err
		}
	}
}

// unescapeOne writes to dst what the escape at src stands for. No escape is shorter than
// its text.
func unescapeOne(buf []byte, src, dst int) (int, int, error) {
	if src+1 >= len(buf) {
		return 0, 0, errUnended
	}
	c := buf[src+1]
	switch c {
	case '"', '\\', '/':
	case 'n':
		c = '\n'
	case 't':
		c = '\t'
	case 'r':
		c = '\r'
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'u':
		r, n := unescapeRune(buf[src:])
		if n == 0 {
			return 0, 0, errBadEscape
		}
		return src + n, dst + utf8.EncodeRune(buf[dst:dst+utf8.RuneLen(r)], r), nil
	default:
		return 0, 0, errBadEscape
	}
	buf[dst] = c
	return src + 2, dst + 1, nil
}

// unescapeRune reads the \u escape b begins with, and its second half when it is the first
// of a surrogate pair; a lone half becomes U+FFFD, as encoding/json has it. n is the length
// of what was read, 0 when it is no escape.
func unescapeRune(b []byte) (r rune, n int) {
	high := hex4(b)
	if high < 0 {
		return 0, 0
	}
	if !utf16.IsSurrogate(high) {
		return high, 6
	}
	if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		if pair := utf16.DecodeRune(high, hex4(b[6:])); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}

// hex4 returns the number of the escape \uXXXX that b begins with, or -1.
func hex4(b []byte) rune {
	if len(b) < 6 {
		return -1
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
