// Package record defines the routing event, the record of one request, and the contract
// of what keeps it.
package record

import "context"

// Event is the routing event of one request: decision, attempts, tokens, cost, outcome
// (DESIGN 9). It holds no prompt, no answer and no key. A nil number is unknown, which is
// not 0. Fields are added, never renamed.
type Event struct {
	EventID    string `json:"event_id"`   // ULID
	CreatedAt  int64  `json:"created_at"` // epoch milliseconds, UTC, when the request arrived
	RequestID  string `json:"request_id"`
	SessionID  string `json:"session_id,omitempty"` // as the client gave it
	SessionKey string `json:"session_key,omitempty"`
	// SessionSource is the signal that named the session: "header:x-session-id",
	// "body:prompt_cache_key", "auto", …
	SessionSource  string `json:"session_source,omitempty"`
	UserPath       string `json:"user_path,omitempty"`
	APISurface     string `json:"api_surface,omitempty"`
	RequestedModel string `json:"requested_model,omitempty"`
	ModelName      string `json:"model_name,omitempty"` // the target's model
	Provider       string `json:"provider_identity,omitempty"`
	KeyID          string `json:"key_id,omitempty"`
	BillingModel   string `json:"billing_model,omitempty"`
	DecisionReason string `json:"decision_reason,omitempty"`

	Switched          bool   `json:"switched"`
	SwitchCount       *int64 `json:"switch_count,omitempty"`
	SwitchCostNanoUSD *int64 `json:"switch_cost_nano_usd,omitempty"`

	Attempts          []Attempt `json:"attempts,omitempty"`
	DegradedProviders []string  `json:"degraded_providers,omitempty"`

	Stream            bool   `json:"stream"`
	InputTokens       *int64 `json:"input_tokens,omitempty"`
	CachedInputTokens *int64 `json:"cached_input_tokens,omitempty"`
	CacheWriteTokens  *int64 `json:"cache_write_tokens,omitempty"`
	OutputTokens      *int64 `json:"output_tokens,omitempty"`
	ReasoningTokens   *int64 `json:"reasoning_tokens,omitempty"`
	UsageQuality      string `json:"usage_quality"` // exact, partial, unknown

	InputCostNanoUSD  *int64 `json:"input_cost_nano_usd,omitempty"`
	OutputCostNanoUSD *int64 `json:"output_cost_nano_usd,omitempty"`
	CostNanoUSD       *int64 `json:"cost_nano_usd,omitempty"`

	ResponseStatus int    `json:"response_status"`
	Outcome        string `json:"outcome"`
	TTFTMillis     *int64 `json:"ttft_ms,omitempty"` // arrival to first output
	LatencyMillis  int64  `json:"latency_ms"`        // arrival to last byte
	// Affinity is "pinned" (a pin was followed), "assigned" (made), "none" (no session, or
	// pins are off for the model) or "unknown" (the store did not answer).
	Affinity string `json:"affinity"`
}

// Attempt is one call to a provider.
type Attempt struct {
	Provider      string `json:"provider"`
	KeyID         string `json:"key_id,omitempty"`
	Model         string `json:"model"`
	Status        int    `json:"status,omitempty"` // HTTP status; 0 when there was none
	Error         string `json:"error,omitempty"`  // class of the failure: "rate_limited", "server_error", …
	LatencyMillis int64  `json:"latency_ms"`       // call to first output, or to the failure
	// Surface is the provider's, where it is not the request's: the call was translated.
	Surface string `json:"surface,omitempty"`
}

// Outcomes of a request.
const (
	OutcomeOK            = "ok"
	OutcomeCancelled     = "client_cancelled"
	OutcomeUpstreamError = "upstream_error"
	OutcomeTimeout       = "timeout"
	OutcomeRefused       = "refused"
)

// Qualities of usage.
const (
	UsageExact   = "exact"
	UsagePartial = "partial"
	UsageUnknown = "unknown"
)

// Recorder keeps routing events.
//
// Record takes over the event: when it has returned nil, the event is delivered at least
// once, at the latest by the recorder's Close, and readers deduplicate by EventID. An error
// means that it may not be kept; the caller then logs the whole event. Calling it again
// with the same event is harmless. It may be called from any goroutine and must not wait
// for longer than ctx.
type Recorder interface {
	Record(ctx context.Context, event *Event) error
}
