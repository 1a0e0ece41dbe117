package audittest

import (
	"testing"
	"time"

	"switchboard/internal/audit"
	"switchboard/internal/record"
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return t
}

// Ranges are half open, whatever zone they are written in and whether or not they are
// whole days, and go by the event's time.
func timeRanges(t *testing.T, open Open) {
	var events []record.Event
	for _, text := range []string{
		"2026-02-27T23:59:59.999Z", "2026-02-28T00:00:00Z", "2026-02-28T12:00:00Z", "2026-02-28T12:00:00.001Z",
		"2026-02-28T23:59:58Z", "2026-02-28T23:59:59.999Z", "2026-03-01T00:00:00Z", "2026-03-01T00:59:59.999Z",
		"2026-03-01T01:00:00Z", "2026-03-02T08:00:00Z",
	} {
		for _, id := range []string{"s", "", text} {
			e := request("/a", id, 0)
			e.CreatedAt, e.EventID = at(text).UnixMilli(), "01J"+text+id
			if id == "" {
				e.ResponseStatus = 429
			}
			events = append(events, e)
		}
	}
	r := newRig(t, open, events)
	bounds := []time.Time{
		{},
		at("2026-02-28T00:00:00Z"),
		at("2026-02-28T12:00:00Z"),
		at("2026-02-28T12:00:00.0005Z"), // between two milliseconds
		at("2026-02-28T23:59:58Z"),
		at("2026-03-01T00:00:00Z"),
		at("2026-03-01T01:00:00+01:00"), // the same
		at("2026-03-01T02:00:00+01:00"),
		at("2026-03-02T00:00:00Z"),
		at("2026-03-03T00:00:00-11:30"),
	}
	for _, from := range bounds {
		for _, to := range bounds {
			f := audit.Filter{From: from, To: to}
			r.sameLog(t, f, whole())
			r.sameThreads(t, f, whole())
			if from.Equal(bounds[3]) || to.Equal(bounds[5]) || to.Equal(bounds[7]) {
				r.same(t, f)
				f.Status, f.SessionID = 200, "s"
				r.same(t, f)
			}
		}
	}
}

func idsAreOpaque(t *testing.T, open Open) {
	var events []record.Event
	for i, id := range Hostile() {
		for n := range 2 {
			events = append(events, request("", id, i+n), request("/team", id, i+n))
		}
	}
	r := newRig(t, open, events)
	for _, id := range Hostile() {
		f := audit.Filter{SessionID: id}
		if got := r.sameLog(t, f, whole()); got.Total != 4 {
			t.Errorf("Log(session_id=%q) has %d events, want 4", id, got.Total)
		}
		f.UserPath = "/team"
		r.sameThreads(t, f, whole())
		r.same(t, audit.Filter{SessionID: id, PathOnly: true})
	}
	for _, text := range append(Hostile(), "' OR '1'='1", "x' --") {
		for _, f := range []audit.Filter{
			{Model: text}, {Provider: text}, {Outcome: text}, {Reason: text}, {UserPath: text}, {UserPath: "/team" + text},
		} {
			if got := r.sameLog(t, f, whole()); got.Total != 0 {
				t.Errorf("Log(%s) has %d events, want none", describe(f, nil), got.Total)
			}
		}
	}
	r.same(t, audit.Filter{})
}

// One id of several tenants is several sessions; also when one tenant's id has the form of
// another's key.
func tenantsAreApart(t *testing.T, open Open) {
	paths := []string{"", "/a", "/a/b", "/ab", "/b"}
	var events []record.Event
	for n := range 3 {
		for i, path := range paths {
			events = append(events, request(path, "shared", n*7+i), request(path, "own"+path, n*7+i))
		}
	}
	events = append(events, request("", Key("/a", "shared"), 5), request("", Key("/a", "shared"), 6))
	r := newRig(t, open, events)
	r.same(t, audit.Filter{})
	for _, path := range paths {
		for _, only := range []bool{false, true} {
			f := audit.Filter{UserPath: path, PathOnly: only}
			r.same(t, f)
			f.SessionID = "shared"
			r.same(t, f)
			for _, e := range r.sameLog(t, f, whole()).Entries {
				if only && e.UserPath != path {
					t.Errorf("Log(%s) has a row of %q", describe(f, nil), e.UserPath)
				}
			}
		}
	}
	r.same(t, audit.Filter{SessionID: "shared"})
	r.same(t, audit.Filter{SessionID: Key("/a", "shared")})
}

func subtrees(t *testing.T, open Open) {
	paths := []string{
		"", "/", "/a", "/a/", "/a/b", "/a/b/c", "/a/bc", "/a0", "/a.", "/a-", "/ab", "/A", "/a%", "/a_", "/a/%", "/ä", "/ä/b", "/a/'", "/a//b",
		"/a/\U0010FFFF", "a",
	}
	var events []record.Event
	for i, path := range paths {
		refused := request(path, "", i+1)
		refused.ResponseStatus = 429
		events = append(events, request(path, "s", i), refused)
	}
	r := newRig(t, open, events)
	for _, path := range append(paths, "/none", "/a%/", "/a/b/", "%", "_") {
		for _, only := range []bool{false, true} {
			r.same(t, audit.Filter{UserPath: path, PathOnly: only})
			r.same(t, audit.Filter{UserPath: path, PathOnly: only, Status: 429})
		}
	}
}

func unknownIsNotZero(t *testing.T, open Open) {
	zero, unknown, unpriced, refused := request("", "s", 1), request("", "s", 2), request("", "s", 3), request("", "s", 4)
	for _, n := range []**int64{
		&zero.InputTokens, &zero.CachedInputTokens, &zero.CacheWriteTokens, &zero.OutputTokens, &zero.ReasoningTokens,
		&zero.InputCostNanoUSD, &zero.OutputCostNanoUSD, &zero.CostNanoUSD, &zero.SwitchCount, &zero.SwitchCostNanoUSD, &zero.TTFTMillis,
	} {
		*n = number(0)
	}
	unknown.InputTokens, unknown.OutputTokens, unknown.UsageQuality = nil, nil, record.UsageUnknown
	unknown.InputCostNanoUSD, unknown.OutputCostNanoUSD, unknown.CostNanoUSD = nil, nil, nil
	unpriced.InputCostNanoUSD, unpriced.OutputCostNanoUSD, unpriced.CostNanoUSD = nil, nil, nil
	unpriced.InputTokens = number(1<<53 + 1)
	refused = record.Event{
		EventID: refused.EventID, CreatedAt: refused.CreatedAt, SessionID: "s", SessionKey: "s", UsageQuality: record.UsageUnknown,
		ResponseStatus: 503, Outcome: record.OutcomeRefused,
	}
	r := newRig(t, open, []record.Event{zero, unknown, unpriced, refused})
	r.same(t, audit.Filter{})
	if got := r.sameSessions(t, audit.Filter{}, whole()).Entries[0].Unpriced; got != 2 {
		t.Errorf("%d unpriced requests, want 2: one of unknown usage, one of unknown price", got)
	}
}

// generated asks about many events, by every part of a filter and by pairs of them.
func generated(t *testing.T, open Open, deliveries int) {
	r := newRig(t, open, Generate(1, deliveries))
	midnight := Start().Truncate(24 * time.Hour).Add(24 * time.Hour)
	r.same(t, audit.Filter{}, audit.Page{Limit: 50}, audit.Page{Limit: 200, Offset: 333}, audit.Page{Limit: 1, Offset: 100_000})
	for _, f := range []audit.Filter{
		{SessionID: "shared-1"},
		{SessionID: "a%2Fb"},
		{SessionID: "shared-2", UserPath: "/team"},
		{SessionID: "shared-2", Status: 200},
		{SessionID: "shared-3", PathOnly: true},
		{UserPath: "/team"},
		{UserPath: "/team/alpha"},
		{UserPath: "/team/alpha", PathOnly: true},
		{PathOnly: true},
		{UserPath: "/o%"},
		{UserPath: "/team", Model: "m-ant", Provider: "groq"},
		{Model: "smart"},
		{Model: "real-big-1"},
		{Provider: "anthropic-main"},
		{Status: 429},
		{Status: 200},
		{Outcome: record.OutcomeTimeout},
		{Reason: "unavailable"},
		{Reason: "fallback", Outcome: record.OutcomeOK, Status: 200},
		{From: midnight},
		{To: midnight},
		{From: midnight, To: midnight.Add(24 * time.Hour)},
		{From: midnight.Add(-time.Hour), To: midnight.Add(7*time.Hour + 13*time.Millisecond)},
		{From: midnight.Add(50 * time.Minute), To: midnight.Add(80 * time.Minute)},
		{From: midnight.Add(90 * time.Minute), Provider: "groq"},
		{From: midnight, UserPath: "/team", Status: 429},
		{To: midnight.Add(-30 * time.Minute), Model: "m-oai"},
		{From: midnight.Add(time.Hour), To: midnight.Add(-time.Hour)},
		{From: midnight.Add(24*time.Hour + 1), To: midnight.Add(48*time.Hour + 1), SessionID: "shared-1"},
		{Status: 418},
		{UserPath: "/nobody"},
	} {
		r.same(t, f, audit.Page{Limit: 37, Offset: 11})
	}
}
