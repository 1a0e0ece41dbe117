package admin

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"switchboard/internal/record"
)

// table is an answer as CSV: a head and rows of cells that are safe to open.
type table struct {
	head []string
	rows [][]string
}

// writeCSV writes the rows of an answer; what it was built from is in the headers.
func writeCSV(w http.ResponseWriter, found answer) {
	h, c := w.Header(), found.coverage()
	h["Content-Type"] = []string{"text/csv; charset=utf-8; header=present"}
	if c.AsOf != nil {
		h["X-Switchboard-As-Of"] = []string{c.AsOf.Format(time.RFC3339Nano)}
	}
	h["X-Switchboard-Complete"] = []string{strconv.FormatBool(c.Complete)}
	t := found.table()
	out := csv.NewWriter(w)
	out.Write(t.head)    //nolint:errcheck // the client may be gone
	out.WriteAll(t.rows) //nolint:errcheck // the client may be gone
}

// text is a cell that no spreadsheet takes for a formula.
func text(s string) string {
	if s == "" {
		return s
	}
	switch s[0] {
	case '=', '+', '-', '@', '\t', '\r', '\n':
		return "'" + s
	}
	return s
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// optional is an empty cell when the number is unknown.
func optional(n *int64) string {
	if n == nil {
		return ""
	}
	return number(*n)
}

func moment(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

func usageHead(first ...string) []string {
	return append(first, "requests", "input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "total_tokens",
		"input_cost", "output_cost", "total_cost", "unpriced_requests", "switches", "switch_cost", "cache_hit_rate")
}

func (u usageView) cells(first ...string) []string {
	rate := ""
	if u.CacheHitRate != nil {
		rate = strconv.FormatFloat(*u.CacheHitRate, 'f', -1, 64)
	}
	return append(first, number(u.Requests), number(u.InputTokens), number(u.CachedInputTokens), number(u.CacheWriteTokens),
		number(u.OutputTokens), number(u.TotalTokens), priceCell(u.InputCost), priceCell(u.OutputCost), priceCell(u.TotalCost),
		number(u.UnpricedRequests), number(u.Switches), priceCell(u.SwitchCost), rate)
}

func priceCell(usd json.RawMessage) string {
	if string(usd) == "null" {
		return ""
	}
	return string(usd)
}

func (v *sessionsView) table() table {
	t := table{head: append(usageHead("session_id", "user_path"), "last_used_at")}
	for _, s := range v.Entries {
		t.rows = append(t.rows, append(s.cells(text(s.SessionID), text(s.UserPath)), moment(s.LastUsedAt)))
	}
	return t
}

// table of a summary is its groups: their sum is the summary.
func (v *summaryView) table() table {
	t := table{head: usageHead("model", "provider")}
	for _, g := range v.Groups {
		t.rows = append(t.rows, g.cells(text(g.Model), text(g.Provider)))
	}
	return t
}

func (v *daysView) table() table {
	t := table{head: usageHead("date")}
	for _, d := range v.Days {
		t.rows = append(t.rows, d.cells(text(d.Date)))
	}
	return t
}

func (v *threadsView) table() table {
	t := table{head: append([]string{"request_count"}, eventHead()...)}
	for i := range v.Sessions {
		t.rows = append(t.rows, append([]string{number(v.Sessions[i].RequestCount)}, eventCells(&v.Sessions[i].Latest)...))
	}
	return t
}

func (v *logView) table() table {
	t := table{head: eventHead()}
	for i := range v.Entries {
		t.rows = append(t.rows, eventCells(&v.Entries[i]))
	}
	return t
}

// eventHead are an event's fields, by their names in JSON.
func eventHead() []string {
	return []string{
		"event_id", "created_at", "request_id", "session_id", "session_key", "session_source", "user_path", "api_surface",
		"requested_model", "model_name", "provider_identity", "key_id", "billing_model", "decision_reason",
		"switched", "switch_count", "switch_cost_nano_usd", "attempts", "degraded_providers",
		"stream", "input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens", "usage_quality",
		"input_cost_nano_usd", "output_cost_nano_usd", "cost_nano_usd",
		"response_status", "outcome", "ttft_ms", "latency_ms", "affinity",
	}
}

func eventCells(e *record.Event) []string {
	return []string{
		text(e.EventID), moment(time.UnixMilli(e.CreatedAt)), text(e.RequestID), text(e.SessionID), text(e.SessionKey), text(e.SessionSource),
		text(e.UserPath), text(e.APISurface), text(e.RequestedModel), text(e.ModelName), text(e.Provider), text(e.KeyID), text(e.BillingModel),
		text(e.DecisionReason), strconv.FormatBool(e.Switched), optional(e.SwitchCount), optional(e.SwitchCostNanoUSD),
		list(e.Attempts), list(e.DegradedProviders),
		strconv.FormatBool(e.Stream), optional(e.InputTokens), optional(e.CachedInputTokens), optional(e.CacheWriteTokens),
		optional(e.OutputTokens), optional(e.ReasoningTokens), text(e.UsageQuality),
		optional(e.InputCostNanoUSD), optional(e.OutputCostNanoUSD), optional(e.CostNanoUSD),
		number(int64(e.ResponseStatus)), text(e.Outcome), optional(e.TTFTMillis), number(e.LatencyMillis), text(e.Affinity),
	}
}

// list is a list as JSON in one cell, which starts with a bracket; empty when it is empty.
func list[T any](all []T) string {
	if len(all) == 0 {
		return ""
	}
	out, err := json.Marshal(all)
	if err != nil {
		return "" // cannot happen: texts and numbers
	}
	return string(out)
}
