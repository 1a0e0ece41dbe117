package session

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"

	"switchboard/internal/wire"
)

const scoped = "scoped-"

// Scope is the store key of an id: the id itself when userPath is empty, else scoped- and
// 32 hex digits of SHA-256(user path, NUL, id). An id that looks like a store key is hashed
// without a user path too, or a client that has none could name another tenant's row.
func Scope(userPath, id string) string {
	if id == "" || (userPath == "" && !strings.HasPrefix(id, scoped)) {
		return id
	}
	var few [512]byte
	text := append(few[:0], userPath...)
	text = append(text, 0)
	text = append(text, id...)
	return digest(scoped, text)
}

// digest is prefix and 32 hex digits of the text's SHA-256.
func digest(prefix string, text []byte) string {
	sum := sha256.Sum256(text)
	var few [48]byte
	return string(hex.AppendEncode(append(few[:0], prefix...), sum[:16]))
}

// valid trims an id and tells whether it may be used: 1 to most bytes of UTF-8 without a
// control character, so that it can stand in a header, a log line and a key.
func valid(id string, most int) (string, bool) {
	id = strings.TrimSpace(id)
	if id == "" || len(id) > most || !utf8.ValidString(id) {
		return "", false
	}
	for _, r := range id {
		if unicode.IsControl(r) {
			return "", false
		}
	}
	return id, true
}

// sessionUUID is the session in a user id: the session_id of a JSON document, or the UUID
// behind the last _session_. A user id without one names a person, not a session.
func sessionUUID(userID string) (string, bool) {
	userID = strings.TrimSpace(userID)
	if strings.HasPrefix(userID, "{") {
		return sessionOf([]byte(userID))
	}
	const mark, length = "_session_", 36
	if at := len(userID) - length; at >= len(mark) && strings.HasSuffix(userID[:at], mark) && isUUID(userID[at:]) {
		return userID[at:], true
	}
	return "", false
}

// sessionOf is the session_id of a JSON object; none when it stands there twice.
func sessionOf(document []byte) (id string, ok bool) {
	object, whole := wire.Value(document, 0)
	if !whole || wire.Space(document, object.End) != len(document) {
		return "", false
	}
	found := 0
	whole = wire.Members(document, object, func(key, value wire.Span) bool {
		if wire.Is(document, key, "session_id") {
			id, ok = wire.String(document, value)
			found++
		}
		return true
	})
	return id, ok && whole && found == 1
}

// isUUID checks the form 8-4-4-4-12 of a text of 36 bytes.
func isUUID(s string) bool {
	for i, c := range []byte(s) {
		hexDigit := '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !hexDigit {
				return false
			}
		}
	}
	return true
}
