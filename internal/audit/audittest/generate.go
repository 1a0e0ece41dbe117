// Package audittest proves that a reader answers audit questions as the contract says.
package audittest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"switchboard/internal/record"
)

// Start is the time of the first generated event, shortly before midnight: hours and days
// are straddled by many sessions.
func Start() time.Time { return time.Date(2026, 2, 28, 22, 40, 0, 0, time.UTC) }

// Generate makes n deliveries of events in some order, the same for the same seed: sessions
// of every length and none, tenants that share session ids, equal times, days that are
// straddled, unknown and zero numbers, every outcome, names that are hostile to whoever
// writes them into a statement, a pattern or a path; one delivery in twenty repeats an
// earlier event.
func Generate(seed uint64, n int) []record.Event {
	g := &generator{rand: rand.New(rand.NewPCG(seed, 1)), at: Start().UnixMilli()}
	events := make([]record.Event, 0, n)
	for len(events) < n {
		if len(events) > 0 && g.one(20) {
			events = append(events, events[g.rand.IntN(len(events))])
			continue
		}
		events = append(events, g.event(len(events)))
	}
	// Deliveries come roughly in order; some are late.
	for i := range events {
		if g.one(10) {
			j := max(0, i-g.rand.IntN(200))
			events[i], events[j] = events[j], events[i]
		}
	}
	return events
}

type generator struct {
	rand *rand.Rand
	at   int64
	open []record.Event // sessions that go on
	made int
}

func (g *generator) one(in int) bool { return g.rand.IntN(in) == 0 }

func pick[T any](g *generator, list ...T) T { return list[g.rand.IntN(len(list))] }

// Hostile are session ids that somebody once took apart (S-AUD-05), or might.
func Hostile() []string {
	return []string{
		"host/BLAH|x", "a%2Fb", "a/b", "a+b c&d=e#f", "会话-1", "../admin", "'; DROP TABLE event; --", "100%", "under_score",
		"underXscore", `back\slash`, `"quoted"`, "?1", "$1", ":id", "a''b", "A", "a", "-- x", "/* x */", "😀", " é", "é", "0", "null",
		"%", "_", "{{.}}", "<script>", "=1+1",
	}
}

func (g *generator) session() record.Event {
	id := fmt.Sprintf("session-%d", g.made)
	switch g.rand.IntN(4) {
	case 0:
		id = pick(g, Hostile()...)
	case 1:
		id = pick(g, "shared-1", "shared-2", "shared-3") // by several tenants
	}
	path := pick(g, "", "/team", "/team/alpha", "/team/alpha/app", "/team/alphabet", "/team/al", "/other", "/o%", "/o_er", "/it's")
	return record.Event{SessionID: id, SessionKey: Key(path, id), SessionSource: pick(g, "header:x-session-id", "auto"), UserPath: path}
}

// Key is a store key as the data plane makes it, in its form: the tests need no hash.
func Key(userPath, id string) string {
	if userPath == "" {
		return id
	}
	return fmt.Sprintf("scoped-%x-%x", userPath, id)
}

func (g *generator) event(n int) record.Event {
	g.made++
	e := g.sessionOf()
	if !g.one(4) { // else the same time as the one before
		g.at += int64(g.rand.IntN(60_000))
	}
	// Ids are not in the order of time, so that only the stated order is one.
	e.EventID = fmt.Sprintf("01J%05d%018d", g.rand.IntN(100_000), n)
	e.CreatedAt, e.RequestID = g.at, fmt.Sprint("req-", n)
	if g.one(50) {
		e.CreatedAt -= int64(g.rand.IntN(5 * 3_600_000)) // its clock is late
	}
	e.APISurface = pick(g, "openai-chat-completions", "anthropic-messages")
	e.RequestedModel = pick(g, "smart", "m-oai", "m-ant")
	e.DecisionReason = pick(g, "affinity", "affinity", "affinity", "rank", "round_robin", "fallback", "unavailable")
	e.Affinity, e.Stream = pick(g, "pinned", "assigned", "none", "unknown"), g.one(2)
	e.UsageQuality, e.LatencyMillis = record.UsageUnknown, int64(g.rand.IntN(9000))
	if e.DecisionReason == "unavailable" {
		e.ResponseStatus, e.Outcome = pick(g, 429, 503), record.OutcomeRefused
		e.DegradedProviders = []string{"openai-main", `say "no"`}
		return e
	}
	g.serve(&e)
	return e
}

// sessionOf is the session of the next request, or none.
func (g *generator) sessionOf() record.Event {
	switch {
	case g.one(8):
		return record.Event{UserPath: pick(g, "", "/team/alpha", "/other")}
	case len(g.open) < 8 || g.one(6):
		e := g.session()
		g.open = append(g.open, e)
		if len(g.open) > 40 {
			g.open = g.open[1:]
		}
		return e
	}
	return pick(g, g.open...)
}

func (g *generator) serve(e *record.Event) {
	e.Provider = pick(g, "openai-main", "anthropic-main", "groq")
	e.ModelName, e.KeyID, e.BillingModel = pick(g, "m-oai", "m-ant", "real-big-1"), pick(g, "1", "second"), "pay_as_you_go"
	e.Outcome = pick(g, record.OutcomeOK, record.OutcomeOK, record.OutcomeOK, record.OutcomeCancelled, record.OutcomeUpstreamError, record.OutcomeTimeout)
	e.ResponseStatus = 200
	if e.Outcome == record.OutcomeUpstreamError {
		e.ResponseStatus = pick(g, 400, 429, 502)
	}
	e.Attempts = []record.Attempt{{Provider: e.Provider, KeyID: e.KeyID, Model: e.ModelName, Status: e.ResponseStatus, LatencyMillis: 12}}
	if g.one(6) {
		e.Attempts = append([]record.Attempt{{Provider: "groq", Model: `m "x" \ é`, Error: "rate_limited", Status: 429}}, e.Attempts...)
		e.Switched, e.SwitchCount = true, g.known(5)
		if !g.one(3) {
			e.SwitchCostNanoUSD = g.known(9_000_000)
		}
	}
	if g.one(5) {
		return // usage unknown
	}
	e.UsageQuality = pick(g, record.UsageExact, record.UsagePartial)
	e.InputTokens, e.OutputTokens, e.CachedInputTokens = g.known(200_000), g.known(4000), g.known(100_000)
	if g.one(2) {
		e.CacheWriteTokens, e.ReasoningTokens, e.TTFTMillis = g.known(1000), g.known(10), g.known(700)
	}
	if g.one(5) {
		return // price unknown
	}
	e.InputCostNanoUSD, e.OutputCostNanoUSD = g.known(900_000_000), g.known(70_000_000)
	cost := *e.InputCostNanoUSD + *e.OutputCostNanoUSD
	e.CostNanoUSD = &cost
}

// known is a number that is known, 0 often enough.
func (g *generator) known(below int) *int64 {
	n := int64(0)
	if !g.one(10) {
		n = int64(g.rand.IntN(below))
	}
	return &n
}
