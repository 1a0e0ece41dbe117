// Package route orders the candidates of a request, with a reason for each.
package route

import (
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/signal"
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
	Strategy string // round_robin (also when empty), cost, failover, adaptive
	// Objective is what adaptive weighs: one of Objectives, or empty for the first of them. It
	// is empty for the other strategies.
	Objective string
	Affinity  bool // session_affinity; default true
	Targets   []VirtualTarget
	// UserPaths limits who may ask for it: those and everything below them; "/" is everybody,
	// and so is none. For others the name does not exist. As the target of another virtual
	// model it serves whoever may ask for that one.
	UserPaths []string
	// Disabled makes it checked like all, and then not exist. Its name may still stand among
	// targets, where it means the plain name that it would hide, if there is one.
	Disabled    bool
	Description string // for operators
}

// VirtualTarget names provider/model, a plain model or another virtual model.
type VirtualTarget struct {
	Model  string
	Weight int // 1 when not set
}

// Input is everything a decision depends on.
type Input struct {
	Model          string
	Surface        wire.Surface
	Native         bool             // only providers that speak the surface themselves will do
	SessionKey     string           // empty: no session
	Pin            *affinity.Pin    // nil: none, or pins are off
	Home           *affinity.Target // where previous_response_id lives; the request may go nowhere else
	Health         health.View
	EstimatedInput int64 // tokens
	Stream         bool  // the answer is to be streamed
	Signals        signal.View
	// Random returns a random number, for adaptive decisions about requests without a session.
	Random func() uint64
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
	As       wire.Surface // in which the provider is called: the request's, or what that is translated to
	Mixed    bool         // of the name's targets some are called in another surface: a session may come from there
	Pinned   bool         // it is where the pin points; with session_sticky_keys: false any key of the provider
	Trial    bool         // needs the lease of health.Board.Probe
}

// Why a candidate is left out.
const (
	OutSurface  = "surface"  // the provider does not speak the request's surface
	OutNoKey    = "no_key"   // the provider has no usable key
	OutDegraded = "degraded" // see Status
	OutHome     = "home"     // the request may only go where its previous response lives
	OutUnknown  = "unknown"  // where the previous response lives is not configured, or not for this model
)

// Exclusion is a candidate that cannot serve, and why.
type Exclusion struct {
	Provider string
	KeyID    string        // empty when no key of the provider can serve
	Model    string        // the provider's model
	Reason   string        // OutSurface, OutNoKey, OutDegraded, OutHome, OutUnknown
	Status   health.Status // for OutDegraded
}

// Decision is the ordered list of attempts. The caller takes Attempts first and, when they
// are used up, what More returns; it stops at max_attempts.
type Decision struct {
	Reason   string      // of the first attempt; ReasonUnavailable when there is none
	Attempts []Attempt   // only the pinned ones when the pin is viable, else all
	Excluded []Exclusion // every candidate that is not in Attempts or More; not to be changed
	Known    bool        // the model exists at all
	Served   bool        // at least one candidate speaks the surface

	// For More, when the pin is viable.
	offer *offer
	in    Input
}

// More returns the attempts that come after a viable pin, in the order of the strategy. It
// is apart from Attempts because nearly no request needs it: only here are keys hashed and
// rotations drawn. It is nil when Attempts holds all. Call it at most once: each call draws.
func (d Decision) More() []Attempt {
	if d.offer == nil {
		return nil
	}
	w := newWalk(d.offer, d.in)
	for i := range d.Attempts {
		w.skip(&d.Attempts[i])
	}
	return w.run()
}

// RetryAfter is the soonest moment at which an excluded candidate may work again; ok is
// false when none says.
func (d Decision) RetryAfter(now time.Time) (wait time.Duration, ok bool) {
	for i := range d.Excluded {
		out := &d.Excluded[i]
		if out.Reason != OutDegraded || out.Status.Until.IsZero() {
			continue
		}
		if until := max(0, out.Status.Until.Sub(now)); !ok || until < wait {
			wait, ok = until, true
		}
	}
	return wait, ok
}
