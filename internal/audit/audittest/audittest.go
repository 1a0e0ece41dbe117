package audittest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"switchboard/internal/audit"
	"switchboard/internal/record"
)

// Generated is how many deliveries the large test of Run asks about.
const Generated = 5000

// Run holds a reader to the contract of audit.Reader.
func Run(t *testing.T, open Open) {
	t.Helper()
	RunWith(t, Generated, open)
}

// RunWith is Run with another number of deliveries in the large test.
func RunWith(t *testing.T, deliveries int, open Open) {
	t.Helper()
	for _, tt := range []struct {
		name string
		test func(*testing.T, Open)
	}{
		{"NoEvents", noEvents},
		{"EveryField", everyField},
		{"SAUD01_EventsCountOnce", eventsCountOnce},
		{"SAUD02_CountIsTheWholeSession", countIsWhole},
		{"SAUD03_PagesOfEqualTimes", pagesOfEqualTimes},
		{"SAUD03_ArrivalsBetweenPages", arrivalsBetweenPages},
		{"SAUD04_TimeRanges", timeRanges},
		{"SAUD05_IdsAreOpaque", idsAreOpaque},
		{"TenantsAreApart", tenantsAreApart},
		{"UserPathsAreSubtrees", subtrees},
		{"UnknownIsNotZero", unknownIsNotZero},
		{"AnyOrderOfArrival", anyOrder},
		{"GeneratedEvents", func(t *testing.T, open Open) { generated(t, open, deliveries) }},
		{"ParallelQuestions", parallel},
		{"EndedContext", endedContext},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, open) })
	}
}

// request is an event of session id at minute, that was served.
func request(path, id string, minute int) record.Event {
	e := record.Event{
		EventID:   fmt.Sprintf("01K%04d%s%s", minute, path, id),
		CreatedAt: Start().Add(time.Duration(minute) * time.Minute).UnixMilli(),
		RequestID: "r", SessionID: id, UserPath: path, RequestedModel: "smart", ModelName: "m-oai", Provider: "openai-main",
		DecisionReason: "affinity", UsageQuality: record.UsageExact, ResponseStatus: 200, Outcome: record.OutcomeOK,
		InputTokens: number(100), OutputTokens: number(5), InputCostNanoUSD: number(200_001), OutputCostNanoUSD: number(7),
		CostNanoUSD: number(200_008),
	}
	if id != "" {
		e.SessionKey = Key(path, id)
	}
	return e
}

func number(n int64) *int64 { return &n }

func noEvents(t *testing.T, open Open) {
	r := newRig(t, open, nil)
	r.same(t, audit.Filter{})
	r.same(t, audit.Filter{SessionID: "s", UserPath: "/a", Status: 429, From: Start(), To: Start().Add(time.Hour)})
	r.same(t, audit.Filter{}, audit.Page{Limit: 1, Offset: 7})
}

// Latest and the log have the events whole.
func everyField(t *testing.T, open Open) {
	e := request("/team/alpha", "s", 1)
	e.RequestID, e.SessionSource, e.APISurface = "req-1", "header:x-session-id", "anthropic-messages"
	e.KeyID, e.BillingModel, e.Affinity, e.Stream, e.Switched = "second", "subscription", "pinned", true, true
	e.SwitchCount, e.SwitchCostNanoUSD = number(3), number(1<<53+1)
	e.CachedInputTokens, e.CacheWriteTokens, e.ReasoningTokens, e.TTFTMillis = number(1), number(2), number(3), number(4)
	e.LatencyMillis = 4321
	e.Attempts = []record.Attempt{
		{Provider: "anthropic-main", KeyID: "k1", Model: "m-ant", Status: 429, Error: "rate_limited", LatencyMillis: 12},
		{Provider: `p "q" \`, Model: "模型\n\x01'", LatencyMillis: 340},
	}
	e.DegradedProviders = []string{"anthropic-main", "it's \"down\"", "é\t"}
	bare := record.Event{EventID: "01A", CreatedAt: Start().UnixMilli(), UsageQuality: record.UsageUnknown}
	newRig(t, open, []record.Event{e, bare}).same(t, audit.Filter{})
}

// The reader's part of S-AUD-01: a delivery that comes again, in the same load or a later
// one, counts once. Cut and glued records are the loader's.
func eventsCountOnce(t *testing.T, open Open) {
	e1, e2, e3 := request("/a", "s", 1), request("/a", "s", 2), request("", "", 3)
	r := newRig(t, open, []record.Event{e1, e2, e2, e2, e3, e3, e1})
	r.same(t, audit.Filter{})
	if got := r.sameLog(t, audit.Filter{}, whole()).Total; got != 3 {
		t.Errorf("Log of 3 events, delivered 7 times, has %d", got)
	}
}

func countIsWhole(t *testing.T, open Open) {
	var events []record.Event
	for minute := range 6 {
		e := request("", "s1", 60*24*minute)
		if minute == 1 || minute == 4 {
			e.ResponseStatus, e.Outcome = 429, record.OutcomeRefused
		}
		events = append(events, e)
	}
	events = append(events, request("", "s2", 10))
	for minute := range 3 {
		events = append(events, request("", "s3", 20+minute))
	}
	r := newRig(t, open, events)
	got := r.sameThreads(t, audit.Filter{Status: 429}, whole())
	if len(got.Sessions) != 1 || got.Sessions[0].RequestCount != 6 || got.Sessions[0].Latest.EventID != events[4].EventID || got.Total != 1 {
		t.Errorf("Threads(status=429) = %+v, want s1 with 6 requests, the newer 429", got)
	}
	for _, f := range []audit.Filter{
		{},
		{Status: 429},
		{Status: 200},
		{Outcome: record.OutcomeRefused},
		{From: Start().Add(time.Hour)},
		{From: Start().Add(24 * time.Hour), To: Start().Add(25 * time.Hour)},
		{SessionID: "s1", Status: 200, To: Start().Add(24 * time.Hour)},
		{Status: 500},
	} {
		r.same(t, f, audit.Page{Limit: 2}, audit.Page{Limit: 2, Offset: 2}, audit.Page{Limit: 2, Offset: 4}, whole())
	}
	r.same(t, audit.Filter{SessionID: "s1"})
}

func pagesOfEqualTimes(t *testing.T, open Open) {
	r := newRig(t, open, sameTime(120))
	seen := map[string]int{}
	for offset := 0; offset < 120; offset += 50 {
		p := audit.Page{Limit: 50, Offset: offset}
		for _, e := range r.sameLog(t, audit.Filter{}, p).Entries {
			seen[e.EventID]++
		}
		r.same(t, audit.Filter{}, p)
		r.same(t, audit.Filter{Status: 200}, p)
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("event %s is on %d pages", id, times)
		}
	}
	if len(seen) != 120 {
		t.Errorf("%d events on three pages, want 120", len(seen))
	}
}

// sameTime are events of one instant, in an order that is not that of their ids: sessions
// of three events and some without.
func sameTime(n int) []record.Event {
	var events []record.Event
	for i := range n {
		id := ""
		if i%4 != 0 {
			id = fmt.Sprint("s", i%(n/3))
		}
		e := request("/a", id, 1)
		e.EventID = fmt.Sprintf("01J%05d", i*7919%100_003)
		events = append(events, e)
	}
	return events
}

// What arrives between two pages moves only what the order puts after it.
func arrivalsBetweenPages(t *testing.T, open Open) {
	events := sameTime(120)
	before := newRig(t, open, events)
	older, newer := request("/a", "late", 0), request("/a", "new", 2)
	after := newRig(t, open, append(slices.Clone(events), older, newer))
	page := func(r rig, f audit.Filter, offset int) []record.Event {
		return r.sameLog(t, f, audit.Page{Limit: 50, Offset: offset}).Entries
	}
	until := audit.Filter{To: time.UnixMilli(newer.CreatedAt)} // how a page is held against what is newer
	for offset := 0; offset < 100; offset += 50 {
		if first, second := page(before, audit.Filter{}, offset), page(after, until, offset); !slices.EqualFunc(first, second, sameID) {
			t.Errorf("Log from %d on changed by what comes after it", offset)
		}
	}
	if got := page(after, audit.Filter{}, 0); got[0].EventID != newer.EventID {
		t.Errorf("Log begins with %s, want the newest", got[0].EventID)
	}
	after.same(t, audit.Filter{}, audit.Page{Limit: 50}, audit.Page{Limit: 50, Offset: 50}, audit.Page{Limit: 50, Offset: 100})
}

func sameID(a, b record.Event) bool { return a.EventID == b.EventID }

func anyOrder(t *testing.T, open Open) {
	events := Generate(3, 400)
	slices.SortFunc(events, func(a, b record.Event) int { return int(b.CreatedAt - a.CreatedAt) })
	newRig(t, open, events).same(t, audit.Filter{})
	slices.Reverse(events)
	r := newRig(t, open, events)
	r.same(t, audit.Filter{})
	r.same(t, audit.Filter{Provider: "groq"})
}

func parallel(t *testing.T, open Open) {
	r := newRig(t, open, Generate(4, 300))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			got, err := r.Threads(t.Context(), audit.Filter{}, audit.Page{Limit: 5, Offset: i})
			if want := r.oracle.threads(audit.Filter{}, audit.Page{Limit: 5, Offset: i}); err != nil || got.Total != want.Total ||
				len(got.Sessions) != len(want.Sessions) {
				t.Errorf("Threads, asked in parallel = %d of %d, %v, want %d of %d", len(got.Sessions), got.Total, err, len(want.Sessions), want.Total)
			}
		})
	}
	wg.Wait()
}

func endedContext(t *testing.T, open Open) {
	r := newRig(t, open, []record.Event{request("", "s", 1)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := r.Threads(ctx, audit.Filter{}, whole()); err == nil {
		t.Errorf("Threads with an ended context = %+v, want an error", got)
	}
	if got, err := r.Summary(ctx, audit.Filter{}); err == nil {
		t.Errorf("Summary with an ended context = %+v, want an error", got)
	}
	r.same(t, audit.Filter{}) // and the reader goes on
}
