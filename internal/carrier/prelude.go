package carrier

import (
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

// preludeEnd stands between the prelude and the first byte of the body, always.
const preludeEnd = "\x00\x00\x00\x00\x00\x00\x00\x00"

// appendPrelude appends the status and headers of a response as the Function URL takes
// them: JSON with one value for each header, and cookies apart.
func appendPrelude(dst []byte, status int, header http.Header) []byte {
	dst = append(dst, `{"statusCode":`...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = append(dst, `,"headers":{`...)
	first := true
	for name, values := range header {
		if len(values) == 0 || name == "Set-Cookie" || !isSent(name) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, '"') // a token needs no escapes
		dst = append(dst, name...)
		dst = append(dst, `":"`...)
		for i, value := range values {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendText(dst, oneLine(value))
		}
		dst = append(dst, '"')
	}
	dst = append(dst, '}')
	if cookies := header["Set-Cookie"]; len(cookies) > 0 {
		dst = append(dst, `,"cookies":[`...)
		for i, cookie := range cookies {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, '"')
			dst = appendText(dst, oneLine(cookie))
			dst = append(dst, '"')
		}
		dst = append(dst, ']')
	}
	dst = append(dst, '}')
	return append(dst, preludeEnd...)
}

// isSent reports whether a header is the client's to see: those of the connection are the
// front's own.
func isSent(name string) bool {
	switch name {
	case "", "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return false
	}
	for i := range len(name) {
		if !isToken(name[i]) {
			return false
		}
	}
	return true
}

// oneLine puts spaces where control characters would end a header, or have it refused
// together with all the others.
func oneLine(value string) string {
	for i := range len(value) {
		if isControl(rune(value[i])) {
			return strings.Map(func(r rune) rune {
				if isControl(r) {
					return ' '
				}
				return r
			}, value)
		}
	}
	return value
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// appendText appends s as the inside of a JSON string. What is not UTF-8 becomes U+FFFD.
func appendText(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ' || c == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r) // RuneError for what is none
			i += size
			continue
		}
		i++
	}
	return dst
}
