// Package affinity defines the pin, the contract of the stores that keep it, and the one
// loop that binds a session to a target over any of them.
package affinity

import (
	"context"
	"errors"
	"time"
)

// Ref is the key of a pin: one session and one requested model (DESIGN 11.2).
type Ref struct {
	SessionKey string // store key, already scoped by user path; any bytes, 1 to 256
	Model      string // requested model, as the client named it
}

// Target is where a pin points: the provider, key and model that hold the prompt cache.
// With neither key id nor print it is the provider whatever the key: one that needs none,
// or whose keys take turns within a session (session_sticky_keys: false).
type Target struct {
	Provider string // provider identity
	KeyID    string // position or name of the key when this was written; positions change
	KeyPrint string // fingerprint of the key; empty when it is not known, or there is no key
	Model    string // the provider's model, DESIGN's target_model
	Surface  string // API surface that served
}

// Same tells whether both targets share a prompt cache: same provider, key and model. The
// surface makes no difference, nor does the key when one of them is for any.
func (t Target) Same(other Target) bool {
	return t.Provider == other.Provider && t.Model == other.Model &&
		(t.anyKey() || other.anyKey() || t.HasKey(other.KeyID, other.KeyPrint))
}

func (t Target) anyKey() bool { return t.KeyID == "" && t.KeyPrint == "" }

// HasKey tells whether the target's key is the one with that id and print. Prints decide
// where both are known: a key keeps its print when keys are added, removed or put in
// another order, and then an id may name another key.
func (t Target) HasKey(id, keyPrint string) bool {
	if t.KeyPrint != "" && keyPrint != "" {
		return t.KeyPrint == keyPrint
	}
	return t.KeyID == id
}

// Pin is the stored assignment of a session and requested model to a target.
type Pin struct {
	Ref
	Target
	UserPath        string
	ClientSessionID string // the id as the client gave it

	AssignedAt time.Time // seconds precision, UTC
	LastUsedAt time.Time // seconds precision, UTC
	ExpiresAt  time.Time // seconds precision, UTC; at this instant the pin reads as none

	// Served is false while the pin is a tentative claim: written before the upstream call
	// by a session seen for the first time, and not yet answered (is_active).
	Served bool
	// Epoch counts the moves of the pin, counted or not. It is the compare-and-swap token.
	Epoch int64

	InputTokens, OutputTokens, CachedTokens int64
	CostNanoUSD                             int64
	Requests                                int64
	SwitchCount                             int64
	SwitchCostNanoUSD                       int64
	LastInputTokens                         int64 // prompt tokens of the newest request: what a switch resends
	// LastSwitchRequestID is the request that made the newest counted switch, or, before the
	// first one, the claim. It makes that write recognisable when it is repeated.
	LastSwitchRequestID string
}

// ClaimedBy tells whether the row was written by claim: the same request's, for the same
// target.
func (p *Pin) ClaimedBy(claim *Pin) bool {
	return claim.LastSwitchRequestID != "" && p.LastSwitchRequestID == claim.LastSwitchRequestID && p.Same(claim.Target)
}

// Usage is what one finished request adds to its pin.
type Usage struct {
	InputTokens, OutputTokens, CachedTokens int64
	CostNanoUSD                             int64
}

// Move describes a counted switch.
type Move struct {
	To          Target
	RequestID   string // makes the write recognisable when it is retried
	CostNanoUSD int64  // what the cold cache costs
}

// Alias says where a response lives, for previous_response_id (DESIGN 6).
type Alias struct {
	ResponseID      string // scoped by user path like a session id
	SessionKey      string
	ClientSessionID string
	SessionSource   string
	Target
	ExpiresAt time.Time
}

// What a store answers. Anything else is a fault of the store: the request is then served
// by ranking (affinity unknown) and the fault is logged by the caller.
var (
	// ErrNotFound: no live pin or alias. Route as for a new session.
	ErrNotFound = errors.New("affinity: not found")
	// ErrConflict: the condition failed. The Pin returned with it is the row as it is now;
	// adopt it or decide again, never repeat the same call.
	ErrConflict = errors.New("affinity: conflict")
)

// Store keeps pins. All instances share it and it is the authority on where a session lives.
//
// Consistency: every method is atomic on its one row, and a method that returned nil is
// seen by every later call of every process. Durability: a claim, move or switch that
// returned nil survives the process; AddUsage may be delayed by the store until Close, and
// is then applied in the order given. Concurrency: all methods may be called from any
// goroutine of any number of processes.
//
// Time: the store has no clock. now decides about expiry: a row with ExpiresAt <= now is
// no row, whether or not it is still there. Times never move back: a write with an older
// now leaves last_used_at and expires_at as they are. A write moves expires_at to
// now + idle, or leaves it when it is later already.
//
// As read: a row is as it was read when provider, key id, key print and epoch are equal.
//
// Malformed rows (a column of the wrong type) read as none, are logged whole, once per
// row and process, and are overwritten by Assign.
//
// A context that ends makes a method return its error; the write may or may not have been
// applied, and a repeat of the same write with the same arguments must then be recognised
// as its own and succeed.
type Store interface {
	// Lookup returns the live pin, or ErrNotFound.
	Lookup(ctx context.Context, ref Ref, now time.Time) (Pin, error)

	// Assign writes a tentative claim (Served false, counters 0, Epoch 1) if there is no
	// live row, and returns the pin as written. If there is one it returns that with
	// ErrConflict: the winner to adopt. When stale is not nil a live row that is as
	// stale was read counts as no row: it names a provider or key that
	// is no longer configured. p.Served true writes a served pin at once.
	// p.LastSwitchRequestID is the claiming request, and is kept. A live row of that request
	// which points to p's target is success: it is a repeat of an applied write. Without a
	// request there is no telling, and a repeat loses to itself.
	Assign(ctx context.Context, p Pin, stale *Pin, now time.Time, idle time.Duration) (Pin, error)

	// Confirm marks the pin as served when it is as read; repeating
	// it is success. ErrNotFound when there is no live row, ErrConflict with the row when
	// it has moved.
	Confirm(ctx context.Context, read Pin, now time.Time, idle time.Duration) (Pin, error)

	// Reassign moves a claim that never served to another target without counting, and
	// marks it served. It needs the row as read and not served.
	// A row that already points to the target is success.
	// ErrNotFound and ErrConflict as for Confirm.
	Reassign(ctx context.Context, read Pin, to Target, now time.Time, idle time.Duration) (Pin, error)

	// Withdraw deletes a claim that never served, if it is as read. A row that is gone or
	// has changed is success.
	Withdraw(ctx context.Context, read Pin) error

	// IncrementSwitch moves a served pin to move.To and adds 1 to its switch count, if
	// the row is as read. A row that has been
	// switched, whose LastSwitchRequestID is move.RequestID and which points to move.To is
	// success: it is a repeat of an applied write. ErrNotFound and ErrConflict as for Confirm.
	IncrementSwitch(ctx context.Context, read Pin, move Move, now time.Time, idle time.Duration) (Pin, error)

	// AddUsage (update_tokens) adds a finished request's usage and one request, sets
	// LastInputTokens when usage has input, and moves last_used_at and the expiry forward.
	// No live row is no error.
	AddUsage(ctx context.Context, ref Ref, usage Usage, now time.Time, idle time.Duration) error
}

// Aliases remembers where responses live. Duties as for Store: a client may continue a
// response through any process as soon as it has seen its id.
type Aliases interface {
	// PutAlias writes or replaces an alias.
	PutAlias(ctx context.Context, a Alias) error
	// LookupAlias returns the live alias, or ErrNotFound.
	LookupAlias(ctx context.Context, responseID string, now time.Time) (Alias, error)
}
