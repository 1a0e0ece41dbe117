package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// The scanner reads JSON that is already in memory. It checks what it must to find the
// members it is asked for (structure, strings' ends) and leaves the rest to the provider.
// Every function takes an offset and returns the one after what it read, or -1.

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString skips the string whose opening quote is at i.
func skipString(b []byte, i int) int {
	for i++; i < len(b); {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		i += n + 1
		back := 0
		for j := i - 2; b[j] == '\\'; j-- {
			back++
		}
		if back%2 == 0 {
			return i
		}
	}
	return -1
}

// skipValue skips the value that begins at i. Nested values are checked for balance only.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	end := i
	for end < len(b) && !delimiter(b[end]) {
		end++
	}
	if end == i || !scalar(b[i:end]) {
		return -1
	}
	return end
}

func delimiter(c byte) bool {
	switch c {
	case ',', ']', '}', ' ', '\n', '\r', '\t', '"', ':', '{', '[':
		return true
	}
	return false
}

// scalar tells whether b is a literal or looks like a number.
func scalar(b []byte) bool {
	switch string(b) {
	case "true", "false", "null":
		return true
	}
	if b[0] != '-' && (b[0] < '0' || b[0] > '9') {
		return false
	}
	for _, c := range b {
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			return false
		}
	}
	return true
}

// skipNested skips an object or array. It keeps its own stack, so that depth costs memory
// (a byte a level) and never the process.
func skipNested(b []byte, i int) int {
	var room [64]byte
	open := room[:0]
	for i < len(b) {
		switch c := b[i]; c {
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			open = append(open, c+2) // '}' is '{'+2, ']' is '['+2
		case '}', ']':
			if open[len(open)-1] != c {
				return -1
			}
			if open = open[:len(open)-1]; len(open) == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// Members calls yield with the raw key (with its quotes) and the value of each member of
// the object at span, in order, until yield returns false. It returns false when the
// object is malformed.
func Members(b []byte, object Span, yield func(key, value Span) bool) bool {
	i := skipSpace(b[:object.End], object.Start)
	if i >= object.End || b[i] != '{' {
		return false
	}
	_, ok := members(b[:object.End], i, yield)
	return ok
}

// members reads the object at i and returns the offset after it.
func members(b []byte, i int, yield func(key, value Span) bool) (int, bool) {
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, true
	}
	for i < len(b) && b[i] == '"' {
		key := Span{Start: i, End: skipString(b, i)}
		if key.End < 0 {
			return i, false
		}
		if i = skipSpace(b, key.End); i >= len(b) || b[i] != ':' {
			return i, false
		}
		value := Span{Start: skipSpace(b, i+1)}
		if value.End = skipValue(b, value.Start); value.End < 0 {
			return value.Start, false
		}
		if !yield(key, value) {
			return value.End, true
		}
		if i = skipSpace(b, value.End); i >= len(b) {
			return i, false
		}
		if b[i] == '}' {
			return i + 1, true
		}
		if b[i] != ',' {
			return i, false
		}
		i = skipSpace(b, i+1)
	}
	return i, false
}

// Elements calls yield with each element of the array at span, as Members does.
func Elements(b []byte, array Span, yield func(value Span) bool) bool {
	b = b[:array.End]
	i := skipSpace(b, array.Start)
	if i >= len(b) || b[i] != '[' {
		return false
	}
	if i = skipSpace(b, i+1); i < len(b) && b[i] == ']' {
		return true
	}
	for i < len(b) {
		value := Span{Start: i, End: skipValue(b, i)}
		if value.End < 0 {
			return false
		}
		if !yield(value) {
			return true
		}
		if i = skipSpace(b, value.End); i >= len(b) {
			return false
		}
		if b[i] == ']' {
			return true
		}
		if b[i] != ',' {
			return false
		}
		i = skipSpace(b, i+1)
	}
	return false
}

// String decodes the JSON string at span; ok is false for another kind of value or a bad
// escape. Lone surrogates and invalid UTF-8 become U+FFFD.
func String(b []byte, span Span) (string, bool) {
	raw := span.Of(b)
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 && plain(inner) {
		return string(inner), true
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", false
	}
	return s, true
}

// plain tells whether a string's inside can stand as it is.
func plain(inner []byte) bool {
	for _, c := range inner {
		if c < ' ' {
			return false
		}
	}
	return utf8.Valid(inner)
}
