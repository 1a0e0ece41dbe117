// Package route orders the candidates of a request, with a reason for each.
package route

import (
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// Reasons of a decision (DESIGN 5, decision_reason).
const (
	ReasonAffinity    = "affinity"
	ReasonRank        = "rank"
	ReasonRoundRobin  = "round_robin"
	ReasonCost        = "cost"
	ReasonFailover    = "failover"
	ReasonAdaptive    = "adaptive"
	ReasonExplicit    = "explicit"
	ReasonFallback    = "fallback"
	ReasonUnavailable = "unavailable"
)

// Virtual is a model name of ours.
type Virtual struct {
	Source   string // the name clients use
	Strategy string // round_robin (default), cost, failover
	Affinity bool   // session_affinity; default true
	Targets  []VirtualTarget
}

// VirtualTarget names provider/model, a plain model or another virtual model.
type VirtualTarget struct {
	Model  string
	Weight int // 1 when not set
}

// Catalog is what can be asked for: providers, their models and virtual models. Immutable.
type Catalog struct{}

// NewCatalog checks and indexes: targets exist, chains are acyclic (the error spells the
// cycle out) and at most 8 deep, names are unique. Providers' order does not matter.
func NewCatalog(providers []*provider.Provider, virtuals []Virtual) (*Catalog, error) { panic("todo") }

// Entry is one name that clients can ask for, for /v1/models.
type Entry struct {
	ID       string
	OwnedBy  string // provider identity, or "switchboard" for virtual models and names of several providers
	Surfaces []wire.Surface
}

// Entries lists plain and virtual names, sorted.
func (c *Catalog) Entries() []Entry { panic("todo") }

// Providers returns the providers sorted by identity.
func (c *Catalog) Providers() []*provider.Provider { panic("todo") }

// Configured tells whether a provider with that key id exists and is usable, for pins.
func (c *Catalog) Configured(provider, keyID string) bool { panic("todo") }

// Pins tells whether requests for the model may be pinned. ok is false for an unknown model.
// No pins: session_affinity false, or strategy failover.
func (c *Catalog) Pins(model string) (pins, ok bool) { panic("todo") }

// Input is everything a decision depends on.
type Input struct {
	Model          string
	Surface        wire.Surface
	SessionKey     string           // empty: no session
	Pin            *affinity.Pin    // nil: none, or pins are off
	Home           *affinity.Target // where previous_response_id lives; the request may go nowhere else
	Health         health.View
	EstimatedInput int64 // tokens
	// Draw returns the next number of a rotation (round robin of a virtual model or of a
	// provider's keys). Called only when the rotation decides, so that a pinned request
	// does not advance it.
	Draw func(rotation string) uint64
}

// Attempt is one call to be tried.
type Attempt struct {
	Provider *provider.Provider
	Key      provider.Key // zero for a provider without auth
	Model    provider.Model
	Pinned   bool // it is where the pin points
	Trial    bool // needs the lease of health.Board.Probe
}

// Exclusion is a candidate that cannot serve, and why.
type Exclusion struct {
	Provider string
	KeyID    string
	Model    string
	Reason   string        // "surface", "no_key", "degraded"
	Status   health.Status // for degraded
}

// Decision is the ordered list of attempts. It lists all; the caller stops at max_attempts.
type Decision struct {
	Reason   string // of the first attempt
	Attempts []Attempt
	Excluded []Exclusion
	Known    bool // the model exists at all
	Served   bool // at least one candidate speaks the surface
}

// Plan decides. It is pure: no I/O, no clock, no randomness but Draw.
func (c *Catalog) Plan(in Input) Decision { panic("todo") }

// RetryAfter is the soonest moment at which an excluded candidate may work again; ok is
// false when none says.
func (d Decision) RetryAfter(now time.Time) (time.Duration, bool) { panic("todo") }
