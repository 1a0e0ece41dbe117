// Package health turns what providers did into degradations, and defines the board on
// which they stand.
package health

import (
	"context"
	"time"
)

// Scope is what a degradation covers. Empty fields cover all: {Provider} is the whole
// provider, {Provider, KeyID} a key, {Provider, Model} a model on every key,
// {Provider, KeyID, Model} a model on one key.
type Scope struct {
	Provider string
	KeyID    string
	Model    string // the provider's model
}

// Class is what a failure means, from the provider's answer (DESIGN 5, degradation table).
type Class string

// Classes of outcome. OK and ClientGone degrade nothing; Request is the request's own
// fault and degrades nothing.
const (
	OK            Class = "ok"
	RateLimited   Class = "rate_limited"     // 429: key + model
	NoCredit      Class = "no_credit"        // 402, 429 or 4xx that means no credit: key, long
	Unauthorized  Class = "unauthorized"     // 401, 403: key, until its text changes
	Overloaded    Class = "overloaded"       // 529, overloaded error: provider + model
	ServerError   Class = "server_error"     // 5xx, 408: provider, third in a row
	Connection    Class = "connection_error" // refused, reset, TLS, cut before output: provider, third in a row
	Timeout       Class = "timeout"          // no first byte in time: provider, third in a row
	ModelNotFound Class = "model_not_found"  // 404: provider + model
	Request       Class = "request_error"    // relayed unchanged
	ClientGone    Class = "client_cancelled"
)

// Outcome is the report of one attempt.
type Outcome struct {
	Provider, KeyID, Model string
	Class                  Class
	Subscription           bool          // the provider's billing model is subscription
	RetryAfter             time.Duration // what the provider asked for; 0 if nothing
}

// Status is how one (provider, key, model) stands at a moment.
type Status struct {
	State State
	Class Class     // why, when not Healthy
	Until time.Time // when Degraded or Probing ends; zero: not until the key's text changes
	Scope Scope     // of the degradation that decides
}

// State is one of Healthy, Degraded, Trial.
type State int

// States. Trial: the degradation has expired and nothing has proved it over; exactly one
// request may call, after it has got the lease from Board.Probe.
const (
	Healthy State = iota
	Degraded
	Trial
)

// View answers how targets stand at one instant. It is immutable, safe for concurrent use,
// and does no I/O.
type View interface {
	Status(provider, keyID, model string) Status
	// Quiet is true when nothing at all is degraded: the caller may skip asking.
	Quiet() bool
}

// Board is what is known of the providers' health, shared by all requests.
//
// View and Report never fail and never wait for longer than a memory access. What a board
// shares with other processes it carries in Refresh, Share and Probe, which wait for at most
// their ctx and fall back on what is known here: routing never fails because a board did.
type Board interface {
	// View returns the state at now.
	View(now time.Time) View
	// Report takes the outcome of an attempt. A success clears what it disproves.
	Report(outcome Outcome, now time.Time)
	// Probe takes the lease for the trial of a target in state Trial; false means that
	// another request has it. The lease ends with Report or after lease.
	Probe(ctx context.Context, provider, keyID, model string, now time.Time, lease time.Duration) bool
	// Refresh makes what other processes have shared visible here. It is called once per
	// request before View, and costs nothing while what is known is fresh.
	Refresh(ctx context.Context, now time.Time)
	// Pending tells whether Share has anything to carry.
	Pending() bool
	// Share carries what has been reported here to the other processes, and returns when
	// that is done. It may be called from any goroutine.
	Share(ctx context.Context, now time.Time)
}

// Settings are the durations of the degradation table.
type Settings struct {
	RateLimit             time.Duration // 60s: 429 without Retry-After
	SubscriptionRateLimit time.Duration // 5h: the same on a subscription
	NoCredit              time.Duration // 1h, doubling to NoCreditMax
	NoCreditMax           time.Duration // 24h
	Overload              time.Duration // 30s, doubling to OverloadMax
	OverloadMax           time.Duration // 300s
	ServerError           time.Duration // 30s, doubling to ServerErrorMax
	ServerErrorMax        time.Duration // 300s
	ServerErrorAfter      int           // 3: failures in a row before the provider is degraded
	Timeout               time.Duration // 10s, doubling to TimeoutMax
	TimeoutMax            time.Duration // 120s
	ModelNotFound         time.Duration // 5min
}

// Defaults are the settings of DESIGN 5.
func Defaults() Settings {
	return Settings{
		RateLimit: time.Minute, SubscriptionRateLimit: 5 * time.Hour,
		NoCredit: time.Hour, NoCreditMax: 24 * time.Hour,
		Overload: 30 * time.Second, OverloadMax: 5 * time.Minute,
		ServerError: 30 * time.Second, ServerErrorMax: 5 * time.Minute, ServerErrorAfter: 3,
		Timeout: 10 * time.Second, TimeoutMax: 2 * time.Minute,
		ModelNotFound: 5 * time.Minute,
	}
}
