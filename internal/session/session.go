// Package session names the conversation a request belongs to, from an ordered list of sources.
package session

import "switchboard/internal/wire"

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

// Settings are the session rules of DESIGN 4.
type Settings struct {
	Enabled      bool
	AutoDetect   bool
	BuiltinRules bool
	Headers      []Rule
	MaxLength    int // bytes; 200
}

// Identifier applies Settings. Immutable, safe for concurrent use.
type Identifier struct{ settings Settings }

// New checks the settings: a rule that names a credential header, an invalid header name or
// an unknown transform is an error that names it. clientKeyHeaders are further headers that
// carry client keys.
func New(settings Settings, clientKeyHeaders ...string) (*Identifier, error) { panic("todo") }

// Identify returns the request's session. resolve looks up the session in which a previous
// response was made (its id scoped by Scope); it is called at most once, only when no header
// or earlier body field named the session, and may be nil.
func (i *Identifier) Identify(r *wire.Request, userPath string, resolve func(responseKey string) (Identity, bool)) Identity {
	panic("todo")
}

// Scope is the store key of an id: the id itself when userPath is empty, else scoped- and
// 32 hex digits of SHA-256(user path, NUL, id).
func Scope(userPath, id string) string { panic("todo") }
