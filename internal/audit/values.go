package audit

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Statement is one SQL statement and the values of its parameters ?1, ?2, …: strings and
// int64. A dialect with literals has none.
type Statement struct {
	SQL  string
	Args []any
}

// Values takes the values of one statement and gives back what stands for them in its text.
type Values struct {
	Literals bool // written into the text instead of bound
	Args     []any
}

// Text stands for a string.
func (v *Values) Text(s string) string {
	if v.Literals {
		return Quote(s)
	}
	return v.bind(s)
}

// Int stands for a number.
func (v *Values) Int(n int64) string {
	if v.Literals {
		return strconv.FormatInt(n, 10)
	}
	return v.bind(n)
}

// bind gives equal values one parameter.
func (v *Values) bind(value any) string {
	for i, arg := range v.Args {
		if arg == value {
			return "?" + strconv.Itoa(i+1)
		}
	}
	v.Args = append(v.Args, value)
	return "?" + strconv.Itoa(len(v.Args))
}

// Quote writes a string as an SQL expression of Trino and DuckDB. Whatever could end a
// literal, be a parameter, a comment or an escape to some reader on the way stands as
// chr(code point), so that between the quotes there are only letters, digits and a few
// harmless signs. Bytes that are no UTF-8 become U+FFFD, as they did in the events.
func Quote(s string) string {
	var parts []string
	for len(s) > 0 {
		n := 0
		for n < len(s) && plain(s[n]) {
			n++
		}
		if n > 0 {
			parts = append(parts, "'"+s[:n]+"'")
			s = s[n:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		parts = append(parts, fmt.Sprintf("chr(%d)", r))
		s = s[size:]
	}
	switch len(parts) {
	case 0:
		return "''"
	case 1:
		return parts[0]
	}
	return "(" + strings.Join(parts, " || ") + ")"
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(" _./:@+=,", c) >= 0
}

// Millis is the first whole millisecond of a range that starts at t, or after one that ends
// there: events carry whole milliseconds.
func Millis(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.After(time.UnixMilli(ms)) {
		ms++
	}
	return ms
}

// Below is the range of paths below path: from <= p < to. Compared as bytes it is the
// paths that begin with path and a slash.
func Below(path string) (from, to string) {
	if !strings.HasSuffix(path, "/") {
		path += "/"
	}
	return path, path[:len(path)-1] + "0" // '0' follows '/'
}

// NewestKey orders events by created_at, then event_id: as text, for the greatest is the
// newest. EventOfKey and TimeOfKey take it apart.
func NewestKey(createdAt int64, eventID string) string {
	var key [keyDigits]byte
	n := max(createdAt, 0)
	for i := keyDigits - 1; i >= 0; i-- {
		key[i] = byte('0' + n%10)
		n /= 10
	}
	return string(key[:]) + eventID
}

const keyDigits = 19

// TimeOfKey is the created_at in a NewestKey, 0 if it is none.
func TimeOfKey(key string) int64 {
	if len(key) < keyDigits {
		return 0
	}
	n, _ := strconv.ParseInt(key[:keyDigits], 10, 64)
	return n
}
