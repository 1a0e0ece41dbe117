package admin

import (
	"encoding/json"
	"time"

	"switchboard/internal/audit"
	"switchboard/internal/record"
)

// coverageView says what an answer was built from. as_of is null when nothing was read.
type coverageView struct {
	AsOf       *time.Time `json:"as_of"`
	Complete   bool       `json:"complete"`
	Unreadable int64      `json:"unreadable_records"`
	Since      *time.Time `json:"since,omitempty"`   // older events exist that were not looked at
	Pending    int64      `json:"pending,omitempty"` // parts of the range still to be loaded: ask again
}

func (c coverageView) coverage() coverageView { return c }

func viewCoverage(c audit.Coverage) coverageView {
	v := coverageView{Complete: c.Complete, Unreadable: c.Unreadable, Pending: c.Pending}
	if !c.AsOf.IsZero() {
		asOf := c.AsOf.UTC()
		v.AsOf = &asOf
	}
	if !c.Since.IsZero() {
		since := c.Since.UTC()
		v.Since = &since
	}
	return v
}

// pageView says which part of a list this is.
type pageView struct {
	Total  int64 `json:"total"`
	Limit  int   `json:"limit"`
	Offset int   `json:"offset"`
	// Until keeps further pages from moving when requests arrive: a parameter of them.
	Until int64 `json:"until"`
}

func viewPage(total int64, q *query) pageView {
	return pageView{total, q.Limit, q.Offset, q.freeze(time.Now())}
}

type threadsView struct {
	Sessions []audit.Thread `json:"sessions"`
	pageView
	coverageView
}

type logView struct {
	Entries []record.Event `json:"entries"`
	pageView
	coverageView
}

type sessionsView struct {
	Entries []sessionView `json:"entries"`
	pageView
	coverageView
}

type summaryView struct {
	usageView
	Sessions int64       `json:"sessions"`
	Groups   []groupView `json:"groups"`
	coverageView
}

type daysView struct {
	Days []dayView `json:"days"`
	coverageView
}

type sessionView struct {
	SessionID string `json:"session_id"`
	UserPath  string `json:"user_path"`
	usageView
	LastUsedAt time.Time `json:"last_used_at"`
}

type groupView struct {
	Model    string `json:"model"`
	Provider string `json:"provider"`
	usageView
}

type dayView struct {
	Date string `json:"date"`
	usageView
}

// usageView adds up events. Money is USD, written exactly; null is unknown.
type usageView struct {
	Requests          int64           `json:"requests"`
	InputTokens       int64           `json:"input_tokens"`
	CachedInputTokens int64           `json:"cached_input_tokens"`
	CacheWriteTokens  int64           `json:"cache_write_tokens"`
	OutputTokens      int64           `json:"output_tokens"`
	TotalTokens       int64           `json:"total_tokens"`
	InputCost         json.RawMessage `json:"input_cost"`
	OutputCost        json.RawMessage `json:"output_cost"`
	TotalCost         json.RawMessage `json:"total_cost"`
	UnpricedRequests  int64           `json:"unpriced_requests"`
	Switches          int64           `json:"switches"`
	SwitchCost        json.RawMessage `json:"switch_cost"`
	CacheHitRate      *float64        `json:"cache_hit_rate"` // of the input tokens; null: there were none
}

func viewUsage(u audit.Usage) usageView {
	v := usageView{
		Requests: u.Requests, InputTokens: u.InputTokens, CachedInputTokens: u.CachedInputTokens,
		CacheWriteTokens: u.CacheWriteTokens, OutputTokens: u.OutputTokens, TotalTokens: u.InputTokens + u.OutputTokens,
		InputCost: cost(u, u.InputCostNanoUSD), OutputCost: cost(u, u.OutputCostNanoUSD), TotalCost: cost(u, u.CostNanoUSD),
		UnpricedRequests: u.Unpriced, Switches: u.Switches, SwitchCost: json.RawMessage(audit.USD(u.SwitchCostNanoUSD)),
	}
	if rate, ok := hitRate(u); ok {
		v.CacheHitRate = &rate
	}
	return v
}

// costKnown tells whether a sum says anything: when some requests are unpriced and the others
// come to nothing, what it cost is unknown (DESIGN 11.8).
func costKnown(u audit.Usage, nano int64) bool { return u.Unpriced == 0 || nano != 0 }

func cost(u audit.Usage, nano int64) json.RawMessage {
	if !costKnown(u, nano) {
		return json.RawMessage("null")
	}
	return json.RawMessage(audit.USD(nano))
}

func hitRate(u audit.Usage) (rate float64, ok bool) {
	if u.InputTokens <= 0 {
		return 0, false
	}
	return float64(u.CachedInputTokens) / float64(u.InputTokens), true
}

func viewThreads(found audit.Threads, q *query) *threadsView {
	v := &threadsView{Sessions: found.Sessions, pageView: viewPage(found.Total, q), coverageView: viewCoverage(found.Coverage)}
	if v.Sessions == nil {
		v.Sessions = []audit.Thread{}
	}
	return v
}

func viewLog(found audit.Log, q *query) *logView {
	v := &logView{Entries: found.Entries, pageView: viewPage(found.Total, q), coverageView: viewCoverage(found.Coverage)}
	if v.Entries == nil {
		v.Entries = []record.Event{}
	}
	return v
}

func viewSessions(found audit.SessionUsages, q *query) *sessionsView {
	v := &sessionsView{
		Entries:  make([]sessionView, 0, len(found.Entries)),
		pageView: viewPage(found.Total, q), coverageView: viewCoverage(found.Coverage),
	}
	for _, s := range found.Entries {
		v.Entries = append(v.Entries, sessionView{s.SessionID, s.UserPath, viewUsage(s.Usage), time.UnixMilli(s.LastUsedAt).UTC()})
	}
	return v
}

func viewSummary(found audit.Summary) *summaryView {
	v := &summaryView{
		usageView: viewUsage(found.Usage), Sessions: found.Sessions,
		Groups: make([]groupView, 0, len(found.Groups)), coverageView: viewCoverage(found.Coverage),
	}
	for _, g := range found.Groups {
		v.Groups = append(v.Groups, groupView{g.Model, g.Provider, viewUsage(g.Usage)})
	}
	return v
}

func viewDays(found audit.Days) *daysView {
	v := &daysView{Days: make([]dayView, 0, len(found.Days)), coverageView: viewCoverage(found.Coverage)}
	for _, d := range found.Days {
		v.Days = append(v.Days, dayView{d.Date, viewUsage(d.Usage)})
	}
	return v
}
