// Package session names the conversation a request belongs to, from an ordered list of sources.
package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"switchboard/internal/wire"
)

// Identity is the session of a request. The zero Identity means that it has none.
type Identity struct {
	ID     string // as the client gave it, or auto-…
	Key    string // store key: ID, or scoped-… when there is a user path
	Source string // "header:x-session-id", "body:prompt_cache_key", "previous_response_id", "auto"
}

// Rule is a configured header source.
type Rule struct {
	Header    string // canonical or not; matched without case
	Transform string // "" or "session-uuid"
}

// SessionUUID is the transform for Claude Code's metadata.user_id: the session_id of a JSON
// document, or the UUID behind the legacy "_session_"; any other value is no match.
const SessionUUID = "session-uuid"

// Settings are the session rules of DESIGN 4.
type Settings struct {
	Enabled      bool
	AutoDetect   bool
	BuiltinRules bool // the header registry and the body fields
	Headers      []Rule
	MaxLength    int // bytes; 200
}

// Identifier applies Settings. Immutable, safe for concurrent use.
type Identifier struct {
	settings Settings
	headers  []headerSource
}

// New checks the settings: a rule that names a credential header, an invalid header name or
// an unknown transform is an error that names it. clientKeyHeaders are further headers that
// carry client keys.
func New(settings Settings, clientKeyHeaders ...string) (*Identifier, error) {
	i := &Identifier{settings: settings}
	for _, rule := range settings.Headers {
		if err := check(rule, clientKeyHeaders); err != nil {
			return nil, err
		}
		i.headers = append(i.headers, source(rule.Header, rule.Transform))
	}
	if settings.BuiltinRules {
		for _, name := range builtinHeaders() {
			i.headers = append(i.headers, source(name, ""))
		}
	}
	return i, nil
}

func check(rule Rule, clientKeyHeaders []string) error {
	if !isHeaderName(rule.Header) {
		return fmt.Errorf("session header %q is not a header name", rule.Header)
	}
	if rule.Transform != "" && rule.Transform != SessionUUID {
		return fmt.Errorf("session header %s: unknown transform %q; use %q or none", rule.Header, rule.Transform, SessionUUID)
	}
	for _, name := range slices.Concat(credentialHeaders(), clientKeyHeaders) {
		if strings.EqualFold(name, rule.Header) {
			return fmt.Errorf("session header %s carries credentials and would write them into every routing event; use another header", rule.Header)
		}
	}
	return nil
}

// isHeaderName tells whether name is a token of RFC 9110, which a header's name must be.
func isHeaderName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune("()<>@,;:\\\"/[]?={}", c)
	})
}

// Identify returns the request's session. resolve looks up the session in which a previous
// response was made (its id scoped by Scope); it is called at most once, only when no header
// or earlier body field named the session, and may be nil.
func (i *Identifier) Identify(r *wire.Request, userPath string, resolve func(responseKey string) (Identity, bool)) Identity {
	if !i.settings.Enabled {
		return Identity{}
	}
	for _, h := range i.headers {
		for _, value := range r.Header[h.name] {
			if id, ok := i.accept(value, h.transform); ok {
				return Identity{ID: id, Key: Scope(userPath, id), Source: h.source}
			}
		}
	}
	if i.settings.BuiltinRules {
		for _, b := range bodySources() {
			if id, ok := i.accept(b.value(&r.Fields), b.transform); ok {
				return Identity{ID: id, Key: Scope(userPath, id), Source: b.source}
			}
		}
		if previous := r.Fields.PreviousResponse; previous != "" && resolve != nil {
			if identity, ok := resolve(Scope(userPath, previous)); ok {
				return identity
			}
		}
	}
	if i.settings.AutoDetect {
		if id, ok := automatic(r, userPath); ok {
			return Identity{ID: id, Key: Scope(userPath, id), Source: "auto"}
		}
	}
	return Identity{}
}

// accept returns the id in a value, if it is a valid one.
func (i *Identifier) accept(value, transform string) (string, bool) {
	if value == "" {
		return "", false
	}
	if transform == SessionUUID {
		value = sessionUUID(value)
	}
	value = strings.TrimSpace(value)
	if value == "" || len(value) > i.settings.MaxLength || !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		return "", false
	}
	return value, true
}

// Scope is the store key of an id: the id itself when userPath is empty, else scoped- and
// 32 hex digits of SHA-256(user path, NUL, id). A user path has no NUL, so that two pairs
// never meet in one key.
func Scope(userPath, id string) string {
	if userPath == "" {
		return id
	}
	text := make([]byte, 0, len(userPath)+1+len(id))
	text = append(append(append(text, userPath...), 0), id...)
	sum := sha256.Sum256(text)
	return "scoped-" + hex.EncodeToString(sum[:16])
}

// headerSource is a header that may name the session.
type headerSource struct {
	name      string // canonical
	transform string
	source    string
}

func source(header, transform string) headerSource {
	return headerSource{
		name: http.CanonicalHeaderKey(header), transform: transform,
		source: "header:" + strings.ToLower(header),
	}
}
