package functionurl

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// appendQuoted appends s as a JSON string. Bytes that are no UTF-8 become U+FFFD.
func appendQuoted(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return appendText(dst, s)
}

// appendText appends s, which is valid UTF-8, as a JSON string. Bodies are megabytes: it looks
// at eight bytes at a time and copies what needs no escape in runs.
func appendText[S string | []byte](dst []byte, s S) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		if len(s)-i >= 8 {
			var word [8]byte
			copy(word[:], s[i:i+8])
			special := needsEscape(binary.LittleEndian.Uint64(word[:]))
			if special == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(special) / 8
		}
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// needsEscape has the high bit set of the lowest byte of word that is below 0x20, a quote or a
// backslash; bits above that one may be wrong (the borrow of "Bit Twiddling Hacks", haszero).
func needsEscape(word uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, backslash := word^(ones*'"'), word^(ones*'\\')
	return ((word-ones*0x20)&^word | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs
}
