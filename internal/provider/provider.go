// Package provider knows each vendor's addresses, credentials, error classes, end markers,
// usage fields and prices.
package provider

import (
	"crypto/sha256"
	"encoding/hex"

	"switchboard/internal/wire"
)

// Billing is how a provider is paid; it ranks before price (DESIGN 5).
type Billing string

// Billing models, in rank order.
const (
	Subscription Billing = "subscription"
	PayAsYouGo   Billing = "pay_as_you_go"
	Free         Billing = "free"
)

// Key is one API key of a provider. Text is a secret: it may be sent upstream and nowhere else.
type Key struct {
	ID    string // position ("1", "2", …) or configured name
	Text  string
	Print string // KeyPrint of Text; it tells keys apart when their positions change
}

// printLabel keeps a print from being the plain digest of the key, which other systems keep.
const printLabel = "switchboard key\x00"

// KeyPrint is the fingerprint of a key's text: 16 hex digits that name the key wherever it
// stands in a list, and say nothing of its text.
func KeyPrint(text string) string {
	sum := sha256.Sum256([]byte(printLabel + text))
	return hex.EncodeToString(sum[:8])
}

// Provider is one configured upstream account. Immutable after the start.
type Provider struct {
	Identity      string
	Type          string // of Vendors: "openai", "anthropic", …
	BaseURL       string // with the version segment, without a slash at its end
	Surfaces      []wire.Surface
	Keys          []Key // empty only with NoAuth
	NoAuth        bool  // api_keys: []: the upstream needs no credential
	StickyKeys    bool
	Billing       Billing
	StreamOptions bool // the upstream understands stream_options
	Translate     bool // requests of other surfaces are translated for it, where they can be
	CacheMarkers  bool // cache_control is added to translated requests that bring none
	// TranslatedMaxTokens is the max_tokens of a translated request without a limit, where the
	// provider wants one; 0: translate's default.
	TranslatedMaxTokens int
	SessionHint         bool   // a hint of the session is sent where the vendor takes one
	APIVersion          string // azure: the api-version of deployment URLs; empty: none
	Models              []Model
}

// Model is a model that a provider serves.
type Model struct {
	ID        string   // the name clients use
	Upstream  string   // the name sent upstream; equal to ID unless configured
	Pricing   *Pricing // nil: unknown
	ListPrice bool     // Pricing is the catalog's, not the operator's
}

// Speaks tells whether the provider has the surface.
func (p *Provider) Speaks(s wire.Surface) bool {
	for _, have := range p.Surfaces {
		if have == s {
			return true
		}
	}
	return false
}

// As is the surface in which requests of s reach the provider: s itself, or the one that they
// are translated to. false: they do not.
func (p *Provider) As(s wire.Surface) (wire.Surface, bool) {
	if p.Speaks(s) {
		return s, true
	}
	counterpart, ok := s.Counterpart()
	return counterpart, ok && p.Translate && p.Speaks(counterpart)
}

// Model finds a model by the name clients use.
func (p *Provider) Model(id string) (Model, bool) {
	for _, m := range p.Models {
		if m.ID == id {
			return m, true
		}
	}
	return Model{}, false
}
