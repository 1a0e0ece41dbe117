package auth

import (
	"errors"
	"strings"
	"unicode"
)

// ParseUserPath normalises a tenant: "/team/" is "/team", "/" is none. Its errors complete
// "it is …" and do not show the text.
func ParseUserPath(s string) (string, error) {
	const right = "write for example /team/app"
	switch {
	case s == "":
		return "", nil
	case !strings.HasPrefix(s, "/"):
		return "", errors.New("a user path that does not begin with /; " + right)
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }):
		return "", errors.New("a user path with a control character; " + right)
	case strings.Contains(s, "//"):
		return "", errors.New("a user path with an empty part; " + right)
	case len(s) > 200:
		return "", errors.New("a user path longer than 200 bytes; " + right)
	}
	return strings.TrimSuffix(s, "/"), nil
}
