// Package auth knows client keys and the admin key.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

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

// Authenticator checks client keys. Immutable, safe for concurrent use.
type Authenticator struct {
	open bool
	keys []Key
}

// New returns an authenticator; open true lets every request in with an empty user path
// (auth.mode none on loopback, iam behind a Function URL that has checked the caller: the
// configuration has checked that). No keys and not
// open: everything is refused.
func New(open bool, keys []Key) *Authenticator {
	return &Authenticator{open: open, keys: slices.Clone(keys)}
}

// Authenticate reads Authorization: Bearer, x-api-key and api-key. All digests are compared
// in constant time. false: refused, for whatever reason.
//
// When several of the headers carry a key, any valid one is enough, because SDKs send a
// dummy in the header their user did not set; of several valid ones the first in that order
// decides. Another scheme than Bearer is not for us (AWS signs requests in Authorization).
func (a *Authenticator) Authenticate(h http.Header) (Principal, bool) {
	if a.open {
		return Principal{}, true
	}
	for _, text := range presented(h) {
		if i, ok := a.find(text); ok {
			return Principal{Name: a.keys[i].Name, UserPath: a.keys[i].UserPath}, true
		}
	}
	return Principal{}, false
}

// find compares with every key, whether or not one has matched: how long it takes says
// nothing about which.
func (a *Authenticator) find(text string) (at int, ok bool) {
	if text == "" {
		return 0, false
	}
	sum := digest(text)
	found := 0
	for i := range a.keys {
		same := subtle.ConstantTimeCompare(sum[:], a.keys[i].SHA256[:])
		at = subtle.ConstantTimeSelect(same&^found, i, at)
		found |= same
	}
	return at, found == 1
}

// Admin checks the admin key. The zero Admin refuses everybody. Client keys mean nothing
// to it.
type Admin struct {
	sum *[32]byte
}

// NewAdmin returns a check against the digest of the admin key; nil refuses everybody.
func NewAdmin(sum *[32]byte) Admin {
	if sum == nil {
		return Admin{}
	}
	own := *sum
	return Admin{&own}
}

// Enabled tells whether there is an admin key at all.
func (a Admin) Enabled() bool { return a.sum != nil }

// Authenticate reads the same headers as an Authenticator does.
func (a Admin) Authenticate(h http.Header) bool {
	for _, text := range presented(h) {
		if a.Check(text) {
			return true
		}
	}
	return false
}

// Check compares a key that was presented in another way, such as a login form.
func (a Admin) Check(text string) bool {
	if a.sum == nil || text == "" {
		return false
	}
	sum := digest(text)
	return subtle.ConstantTimeCompare(sum[:], a.sum[:]) == 1
}

// Headers lists the headers that carry client keys.
func Headers() []string { return []string{"Authorization", "X-Api-Key", "Api-Key"} }

// NewKey makes a random client key ("sb-…") and its digest.
func NewKey() (text string, digest [32]byte, err error) {
	var random [32]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", digest, err
	}
	text = "sb-" + base64.RawURLEncoding.EncodeToString(random[:])
	return text, sha256.Sum256([]byte(text)), nil
}

// presented are the keys of a request, in the order of Headers; empty where there is none.
func presented(h http.Header) [3]string {
	return [3]string{
		bearer(h.Get("Authorization")),
		strings.TrimSpace(h.Get("X-Api-Key")),
		strings.TrimSpace(h.Get("Api-Key")),
	}
}

func bearer(value string) string {
	scheme, text, _ := strings.Cut(strings.TrimSpace(value), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(text)
}

// digest hashes without an allocation for keys of usual length.
func digest(text string) [32]byte {
	var room [128]byte
	return sha256.Sum256(append(room[:0], text...))
}
