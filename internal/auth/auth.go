// Package auth knows client keys and the admin key.
package auth

import "net/http"

// Key is a client key: its digest, never its text.
type Key struct {
	Name     string
	SHA256   [32]byte
	UserPath string
}

// Principal is who a request comes from.
type Principal struct {
	Name     string // of the client key; empty when keys are off
	UserPath string
}

// Authenticator checks client keys.
type Authenticator struct{}

// New returns an authenticator; open true lets every request in with an empty user path
// (auth.mode none, loopback only: the configuration has checked that). No keys and not
// open: everything is refused.
func New(open bool, keys []Key) *Authenticator { panic("todo") }

// Authenticate reads Authorization: Bearer, x-api-key and api-key. All digests are compared
// in constant time. false: refused, for whatever reason.
func (a *Authenticator) Authenticate(h http.Header) (Principal, bool) { panic("todo") }

// Headers lists the headers that carry client keys.
func Headers() []string { return []string{"Authorization", "X-Api-Key", "Api-Key"} }

// NewKey makes a random client key ("sb-…") and its digest.
func NewKey() (text string, digest [32]byte, err error) { panic("todo") }
