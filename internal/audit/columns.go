package audit

import (
	"encoding/json"
	"fmt"
	"strings"

	"switchboard/internal/record"
)

// Row is one row of an answer, as an engine gives it.
type Row interface {
	Text(col int) string
	Int(col int) (n int64, known bool) // unknown is NULL
}

// EventColumns are the event's fields in the order in which statements yield them and
// ScanEvent reads them.
func EventColumns() []string {
	return append(append(append(textColumns(), "attempts", "degraded_providers"), intColumns()...), knownColumns()...)
}

func textColumns() []string {
	return []string{
		"event_id", "request_id", "session_id", "session_key", "session_source", "user_path", "api_surface",
		"requested_model", "model_name", "provider_identity", "key_id", "billing_model", "decision_reason",
		"usage_quality", "outcome", "affinity",
	}
}

func intColumns() []string {
	return []string{"created_at", "switched", "stream", "response_status", "latency_ms"}
}

// knownColumns may be NULL: unknown.
func knownColumns() []string {
	return []string{
		"switch_count", "switch_cost_nano_usd", "input_tokens", "cached_input_tokens", "cache_write_tokens",
		"output_tokens", "reasoning_tokens", "input_cost_nano_usd", "output_cost_nano_usd", "cost_nano_usd", "ttft_ms",
	}
}

// ScanEvent reads the columns from first on as an event.
func ScanEvent(row Row, first int) (record.Event, error) {
	var e record.Event
	col := first
	for _, text := range [...]*string{
		&e.EventID, &e.RequestID, &e.SessionID, &e.SessionKey, &e.SessionSource, &e.UserPath, &e.APISurface,
		&e.RequestedModel, &e.ModelName, &e.Provider, &e.KeyID, &e.BillingModel, &e.DecisionReason,
		&e.UsageQuality, &e.Outcome, &e.Affinity,
	} {
		*text = row.Text(col)
		col++
	}
	for _, list := range [...]any{&e.Attempts, &e.DegradedProviders} {
		if text := row.Text(col); text != "" {
			if err := json.Unmarshal([]byte(text), list); err != nil {
				return e, fmt.Errorf("audit: event %s: %w", e.EventID, err)
			}
		}
		col++
	}
	number := func() int64 {
		n, _ := row.Int(col)
		col++
		return n
	}
	e.CreatedAt = number()
	e.Switched, e.Stream = number() != 0, number() != 0
	e.ResponseStatus, e.LatencyMillis = int(number()), number()
	for _, known := range [...]**int64{
		&e.SwitchCount, &e.SwitchCostNanoUSD, &e.InputTokens, &e.CachedInputTokens, &e.CacheWriteTokens,
		&e.OutputTokens, &e.ReasoningTokens, &e.InputCostNanoUSD, &e.OutputCostNanoUSD, &e.CostNanoUSD, &e.TTFTMillis,
	} {
		if n, ok := row.Int(col); ok {
			*known = &n
		}
		col++
	}
	return e, nil
}

// UsageColumns are the sums in the order in which statements yield them and ScanUsage reads
// them. A cell has columns of these names.
func UsageColumns() []string {
	return []string{
		"requests", "input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens",
		"input_cost_nano_usd", "output_cost_nano_usd", "cost_nano_usd", "unpriced", "switches", "switch_cost_nano_usd",
	}
}

// ScanUsage reads the columns from first on.
func ScanUsage(row Row, first int) Usage {
	var u Usage
	for i, sum := range u.fields() {
		*sum, _ = row.Int(first + i)
	}
	return u
}

func (u *Usage) fields() [11]*int64 {
	return [...]*int64{
		&u.Requests, &u.InputTokens, &u.CachedInputTokens, &u.CacheWriteTokens, &u.OutputTokens,
		&u.InputCostNanoUSD, &u.OutputCostNanoUSD, &u.CostNanoUSD, &u.Unpriced, &u.Switches, &u.SwitchCostNanoUSD,
	}
}

// Fields are the sums in the order of UsageColumns.
func (u *Usage) Fields() [11]int64 {
	var sums [11]int64
	for i, sum := range u.fields() {
		sums[i] = *sum
	}
	return sums
}

// Add adds other to u.
func (u *Usage) Add(other Usage) {
	from := other.fields()
	for i, sum := range u.fields() {
		*sum += *from[i]
	}
}

// UsageOf is the usage of one event.
func UsageOf(e *record.Event) Usage {
	u := Usage{Requests: 1}
	for _, known := range [...]struct {
		to   *int64
		from *int64
	}{
		{&u.InputTokens, e.InputTokens},
		{&u.CachedInputTokens, e.CachedInputTokens},
		{&u.CacheWriteTokens, e.CacheWriteTokens},
		{&u.OutputTokens, e.OutputTokens},
		{&u.InputCostNanoUSD, e.InputCostNanoUSD},
		{&u.OutputCostNanoUSD, e.OutputCostNanoUSD},
		{&u.CostNanoUSD, e.CostNanoUSD},
		{&u.SwitchCostNanoUSD, e.SwitchCostNanoUSD},
	} {
		if known.from != nil {
			*known.to = *known.from
		}
	}
	if e.Provider != "" && e.CostNanoUSD == nil {
		u.Unpriced = 1
	}
	if e.Switched {
		u.Switches = 1
	}
	return u
}

// sums is the list of the summed usage columns of alias c, without NULLs.
func sums() string {
	list := make([]string, 0, 11)
	for _, column := range UsageColumns() {
		list = append(list, "COALESCE(SUM(c."+column+"), 0) AS "+column)
	}
	return strings.Join(list, ", ")
}

func prefixed(alias string, columns []string) string {
	return alias + "." + strings.Join(columns, ", "+alias+".")
}
