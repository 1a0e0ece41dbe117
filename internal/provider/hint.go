package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"switchboard/internal/wire"
)

// Hint is a place in a request where a provider looks for the name of the conversation, to
// bring its turns to where their prompt cache is. One of Header and Member is set.
type Hint struct {
	Surface wire.Surface
	Header  string // canonical
	Member  string // of the body's top level; a client's own is kept
}

// hintLabel keeps hints apart from other values that are keyed by the key.
const hintLabel = "switchboard session\x00"

// HintFor is where the vendor takes a hint on the surface; false: nowhere.
func (v *Vendor) HintFor(surface wire.Surface) (Hint, bool) {
	for _, h := range v.Hints {
		if h.Surface == surface {
			return h, true
		}
	}
	return Hint{}, false
}

// SessionHint names a session to the provider that k belongs to: 32 hex digits, the same in
// every instance and at every turn, that say nothing of the session's id to those who do
// not have the key. Empty without a key or session.
//
// It is salted by the key, as there is a cache for each account: another key's hint is
// another one, which loses nothing.
func (k Key) SessionHint(sessionKey string) string {
	if k.Text == "" || sessionKey == "" {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(k.Text))
	mac.Write([]byte(hintLabel))
	mac.Write([]byte(sessionKey))
	var sum [sha256.Size]byte
	return hex.EncodeToString(mac.Sum(sum[:0])[:16])
}

// memberHints takes the hint in the same member on the given surfaces.
func memberHints(member string, surfaces ...wire.Surface) []Hint {
	var hints []Hint
	for _, s := range surfaces {
		hints = append(hints, Hint{Surface: s, Member: member})
	}
	return hints
}

// headerHints takes the hint in the same header on the given surfaces.
func headerHints(header string, surfaces ...wire.Surface) []Hint {
	var hints []Hint
	for _, s := range surfaces {
		hints = append(hints, Hint{Surface: s, Header: header})
	}
	return hints
}
