package emulator

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
)

// expandPrefix evaluates a custom prefix as Firehose does: !{timestamp:PATTERN} with Java
// patterns, all of the one instant at, in UTC; !{firehose:random-string}, a fresh one each;
// !{firehose:error-output-type}. Where no timestamp is named, yyyy/MM/dd/HH/ is appended.
func expandPrefix(prefix string, at time.Time, errorType string) (string, error) {
	at = at.UTC()
	var out strings.Builder
	stamped := false
	rest := prefix
	for {
		text, tail, found := strings.Cut(rest, "!{")
		out.WriteString(text)
		if !found {
			break
		}
		expression, after, closed := strings.Cut(tail, "}")
		namespace, value, colon := strings.Cut(expression, ":")
		if !closed || !colon {
			return "", fmt.Errorf("%q: !{ without namespace:value}", prefix)
		}
		switch {
		case namespace == "timestamp":
			stamp, err := javaFormat(value, at)
			if err != nil {
				return "", fmt.Errorf("%q: %w", prefix, err)
			}
			out.WriteString(stamp)
			stamped = true
		case expression == "firehose:random-string":
			out.WriteString(rand.Text()[:11])
		case expression == "firehose:error-output-type" && errorType != "":
			out.WriteString(errorType)
		default:
			return "", fmt.Errorf("%q: !{%s} is not known here", prefix, expression)
		}
		rest = after
	}
	if !stamped {
		out.WriteString(at.Format("2006/01/02/15/"))
	}
	return out.String(), nil
}

// javaFormat formats at as java.time's DateTimeFormatter would, as far as calendars and
// clocks go. Text in single quotes stands for itself, two quotes for one.
func javaFormat(pattern string, at time.Time) (string, error) {
	var out strings.Builder
	for i := 0; i < len(pattern); {
		c := pattern[i]
		if c == '\'' {
			literal, n := quoted(pattern[i:])
			out.WriteString(literal)
			i += n
			continue
		}
		if !isLetter(c) {
			out.WriteByte(c)
			i++
			continue
		}
		n := 1
		for i+n < len(pattern) && pattern[i+n] == c {
			n++
		}
		field, err := javaField(c, n, at)
		if err != nil {
			return "", err
		}
		out.WriteString(field)
		i += n
	}
	return out.String(), nil
}

// quoted reads a quoted literal at the start of text; n is what it took.
func quoted(text string) (literal string, n int) {
	if strings.HasPrefix(text, "''") {
		return "'", 2
	}
	inner, _, closed := strings.Cut(text[1:], "'")
	if !closed {
		return inner, len(text)
	}
	return inner, len(inner) + 2
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func javaField(c byte, n int, at time.Time) (string, error) {
	number := func(v int) (string, error) { return fmt.Sprintf("%0*d", n, v), nil }
	switch c {
	case 'Y':
		return "", errors.New("the pattern letter Y is the week's year, wrong around New Year: write yyyy")
	case 'y', 'u':
		if n == 2 {
			return fmt.Sprintf("%02d", at.Year()%100), nil
		}
		return number(at.Year())
	case 'M', 'L':
		switch n {
		case 3:
			return at.Format("Jan"), nil
		case 4:
			return at.Format("January"), nil
		}
		return number(int(at.Month()))
	case 'd':
		return number(at.Day())
	case 'D':
		return number(at.YearDay())
	case 'H':
		return number(at.Hour())
	case 'h':
		return number((at.Hour()+11)%12 + 1)
	case 'm':
		return number(at.Minute())
	case 's':
		return number(at.Second())
	case 'S':
		return fmt.Sprintf("%09d", at.Nanosecond())[:min(n, 9)], nil
	case 'a':
		return at.Format("PM"), nil
	case 'E':
		if n == 4 {
			return at.Format("Monday"), nil
		}
		return at.Format("Mon"), nil
	case 'Z':
		return "+0000", nil
	case 'X', 'z':
		return "Z", nil
	}
	return "", fmt.Errorf("the pattern letter %q is not known here", string(c))
}

// checkPrefixes applies the rules by which Firehose refuses prefixes.
func checkPrefixes(prefix, errorPrefix string) error {
	const errorType = "!{firehose:error-output-type}"
	switch {
	case strings.Contains(prefix, errorType):
		return invalid("Prefix may not contain " + errorType)
	case strings.Contains(prefix, "!{") && errorPrefix == "":
		return invalid("ErrorOutputPrefix is needed when Prefix contains expressions")
	case strings.Contains(errorPrefix, "!{") && !strings.Contains(errorPrefix, errorType):
		return invalid("ErrorOutputPrefix with expressions must contain " + errorType)
	}
	if _, err := expandPrefix(prefix, time.Unix(0, 0), ""); err != nil {
		return invalid("Prefix %v", err)
	}
	if _, err := expandPrefix(errorPrefix, time.Unix(0, 0), "processing-failed"); err != nil {
		return invalid("ErrorOutputPrefix %v", err)
	}
	return nil
}

// newUUID is a random UUID, version 4.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
