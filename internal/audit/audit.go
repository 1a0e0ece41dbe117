// Package audit defines the questions that operators ask of routing events, and the contract
// of those who answer them.
package audit

import (
	"context"
	"time"

	"switchboard/internal/record"
)

// Limits of a page (DESIGN 9).
const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// Filter chooses routing events. Empty fields choose all. Values are compared exactly and
// are data: no reader puts them into a statement, a pattern or a path as they are.
type Filter struct {
	SessionID string // as the client gave it
	UserPath  string // the path itself and everything below it: "/a" is "/a" and "/a/…", not "/ab"
	// PathOnly leaves out what is below UserPath, so that SessionID and UserPath name one
	// session; with an empty UserPath it chooses the events that have none.
	PathOnly bool
	Model    string // the requested or the target's model
	Provider string // provider identity that served
	Status   int    // of the response; 0 is all
	Outcome  string
	Reason   string    // decision_reason
	From, To time.Time // created_at in [From, To); zero is open
}

// Page cuts a list. Limit is 1 to MaxLimit, Offset 0 or more.
type Page struct{ Limit, Offset int }

// Coverage says what an answer was built from.
type Coverage struct {
	// AsOf is the time up to which all events are in the answer; events that are newer may
	// be missing.
	AsOf time.Time `json:"as_of"`
	// Complete is false when something up to AsOf is known to be missing: the load of the
	// asked range was cut short.
	Complete bool `json:"complete"`
	// Unreadable counts records that were no events: cut or damaged lines. They are skipped.
	Unreadable int64 `json:"unreadable_records"`
	// Uncounted is true when the engine skips such records without telling: then Unreadable
	// is unknown, not 0.
	Uncounted bool `json:"unreadable_uncounted,omitempty"`
	// Since is set when older events exist that were not looked at, because the question
	// did not say from when: only events from then on are in the answer.
	Since time.Time `json:"since,omitzero"`
	// Pending counts the parts (objects) of the asked range that are not loaded yet. Asked
	// again, the question goes on with them.
	Pending int64 `json:"pending,omitempty"`
}

// Thread is a session with the newest of its requests that the filter chose. A request
// without a session is a thread of its own.
type Thread struct {
	SessionID    string       `json:"session_id"` // empty: no session
	UserPath     string       `json:"user_path"`
	RequestCount int64        `json:"request_count"` // of the whole session, whatever the filter
	Latest       record.Event `json:"latest"`
}

// Threads is a page of threads, newest representative first (created_at, then event_id).
type Threads struct {
	Sessions []Thread
	Total    int64 // threads that the filter chose
	Coverage
}

// Log is a page of events, newest first (created_at, then event_id).
type Log struct {
	Entries []record.Event
	Total   int64
	Coverage
}

// Usage adds up events. Sums are over those events whose figure is known.
type Usage struct {
	Requests          int64
	InputTokens       int64
	CachedInputTokens int64
	CacheWriteTokens  int64
	OutputTokens      int64
	InputCostNanoUSD  int64
	OutputCostNanoUSD int64
	CostNanoUSD       int64
	Unpriced          int64 // requests that were served and whose usage or price is unknown
	Switches          int64
	SwitchCostNanoUSD int64
}

// SessionUsage is one session's usage: of the requests that the filter chose.
type SessionUsage struct {
	SessionID  string
	UserPath   string
	LastUsedAt int64 // epoch milliseconds of the newest request that the filter chose
	Usage
}

// SessionUsages is a page of sessions, the most recently used first. Requests without a
// session are in none.
type SessionUsages struct {
	Entries []SessionUsage
	Total   int64
	Coverage
}

// Group is the usage of one model and provider, as served; both are empty for requests that
// nobody served.
type Group struct {
	Model, Provider string
	Usage
}

// Summary is the usage of all events that the filter chose.
type Summary struct {
	Usage
	Sessions int64   // distinct
	Groups   []Group // most expensive first, then by model and provider
	Coverage
}

// Day is the usage of one UTC day.
type Day struct {
	Date string // 2006-01-02
	Usage
}

// Days is the usage per UTC day, oldest first, days without events left out.
type Days struct {
	Days []Day
	Coverage
}

// Reader answers questions over routing events.
//
// Consistency: an answer is built from one state of the events, and two answers to the same
// question over the same events are equal. An event counts once, however often it was
// delivered (event_id). Sessions are told apart by user path and session id together: no
// answer about one tenant's session has rows of another's. Pages: with (created_at, event_id)
// as the order, an event or thread that arrives meanwhile moves nothing but what comes after it.
//
// A reader that cannot see every event says so in Coverage. An error means that the question
// has no answer; ctx bounds the time. All methods may be called from any goroutine.
type Reader interface {
	Threads(ctx context.Context, f Filter, p Page) (Threads, error)
	Log(ctx context.Context, f Filter, p Page) (Log, error)
	Sessions(ctx context.Context, f Filter, p Page) (SessionUsages, error)
	Summary(ctx context.Context, f Filter) (Summary, error)
	Daily(ctx context.Context, f Filter) (Days, error)
}
