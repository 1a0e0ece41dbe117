// Package session names the conversation a request belongs to, from an ordered list of sources.
package session

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

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
	Transform string // "" or SessionUUID
}

// SessionUUID is the transform for the user ids of coding agents, which carry a session: the
// session_id of a JSON document, or the UUID behind _session_. Other values are no match.
const SessionUUID = "session-uuid"

// Settings are the session rules of DESIGN 4.
type Settings struct {
	Enabled    bool
	AutoDetect bool
	// BuiltinRules turns on the built-in headers and body fields. Without them configured
	// headers, previous_response_id (which states what is continued) and AutoDetect remain.
	BuiltinRules bool
	Headers      []Rule
	MaxLength    int // bytes; 0 means 200
}

const (
	defaultMaxLength = 200
	// longestKey is what a store key may have at most: DynamoDB refuses hash keys above 2048
	// bytes, and an id without a user path is its own key.
	longestKey = 2048
	// longestResponseID bounds previous_response_id, which gateways fill with routing
	// data: far longer than session ids are.
	longestResponseID = 1024
)

// Identifier applies Settings. Safe for concurrent use.
type Identifier struct {
	settings Settings
	headers  []headerSource
	fields   []fieldSource
	pool     *sync.Pool // of *canonical
}

// New checks the settings: a rule that names a credential header, an invalid header name or
// an unknown transform is an error that names it. clientKeyHeaders are further headers that
// carry client keys.
func New(settings Settings, clientKeyHeaders ...string) (*Identifier, error) {
	if settings.MaxLength == 0 {
		settings.MaxLength = defaultMaxLength
	}
	if settings.MaxLength < 1 || settings.MaxLength > longestKey {
		return nil, fmt.Errorf("session ids of at most %d bytes: must be 1 to %d", settings.MaxLength, longestKey)
	}
	headers, err := headerSources(settings, clientKeyHeaders)
	if err != nil {
		return nil, err
	}
	i := &Identifier{settings: settings, headers: headers, pool: &sync.Pool{New: func() any { return new(canonical) }}}
	if settings.BuiltinRules {
		i.fields = fieldSources()
	}
	return i, nil
}

// Identify returns the request's session. resolve looks up the session in which a previous
// response was made (its id scoped by Scope); it is called at most once, only when no header
// or earlier body field named the session, and may be nil.
func (i *Identifier) Identify(r *wire.Request, userPath string, resolve func(responseKey string) (Identity, bool)) Identity {
	if !i.settings.Enabled {
		return Identity{}
	}
	for k := range i.headers {
		if id, ok := i.fromHeader(&i.headers[k], r.Header); ok {
			return Identity{id, Scope(userPath, id), i.headers[k].source}
		}
	}
	for k := range i.fields {
		if id, ok := i.pick(i.fields[k].value(&r.Fields), i.fields[k].transform); ok {
			return Identity{id, Scope(userPath, id), i.fields[k].source}
		}
	}
	if resolve != nil {
		if response, ok := valid(r.Fields.PreviousResponse, longestResponseID); ok {
			if identity, ok := resolve(Scope(userPath, response)); ok {
				return identity
			}
		}
	}
	if !i.settings.AutoDetect || !opens(r.Surface) {
		return Identity{}
	}
	id, ok := i.automatic(r, userPath)
	if !ok {
		return Identity{}
	}
	return Identity{id, Scope(userPath, id), "auto"}
}

// fromHeader takes the first valid value of a header. Carriers that join repeated headers
// with commas make "a, a" of a header sent twice with one value; any other comma is part
// of the id, which is opaque text.
func (i *Identifier) fromHeader(source *headerSource, header http.Header) (string, bool) {
	for _, value := range header[source.name] {
		if first, rest, joined := strings.Cut(value, ","); joined && repeats(first, rest) {
			value = first
		}
		if id, ok := i.pick(value, source.transform); ok {
			return id, true
		}
	}
	return "", false
}

func repeats(first, rest string) bool {
	first = strings.TrimSpace(first)
	for value := range strings.SplitSeq(rest, ",") {
		if strings.TrimSpace(value) != first {
			return false
		}
	}
	return true
}

// pick is the id in a source's value.
func (i *Identifier) pick(value string, transform func(string) (string, bool)) (string, bool) {
	if value == "" {
		return "", false
	}
	if transform != nil {
		var ok bool
		if value, ok = transform(value); !ok {
			return "", false
		}
	}
	return valid(value, i.settings.MaxLength)
}
