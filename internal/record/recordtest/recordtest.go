// Package recordtest proves that a recorder keeps the contract of record.Recorder.
package recordtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"switchboard/internal/record"
)

// Backend is a recorder under test with a way to read back what it has delivered.
type Backend struct {
	Recorder record.Recorder
	// Close delivers everything; nil when Record does.
	Close func(ctx context.Context) error
	// Read returns all events delivered, in any order, each event_id once, as a reader of
	// the backend would see them. It is called once, after Close.
	Read func(t *testing.T) []record.Event
}

// Run tests the backend that open returns; open is called once per test, for an empty one.
func Run(t *testing.T, open func(t *testing.T) Backend) {
	tests := []struct {
		name string
		test func(t *testing.T, b Backend)
	}{
		{"EveryFieldComesBack", everyField},
		{"SUSE06UnknownIsNotZero", unknownIsNotZero},
		{"AnyTextComesBack", anyText},
		{"SAUD01DuplicatesAreOne", duplicates},
		{"DeliveredByClose", deliveredByClose},
		{"ParallelEventsAreAllKept", parallel},
		{"EndedContext", endedContext},
		{"EventWithoutIDIsRefused", withoutID},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, open(t)) })
	}
}

// Full is an event in which every field differs from its zero value and from the others.
func Full(n int) record.Event {
	next := int64(n) * 1000
	num := func() *int64 { next++; v := next; return &v }
	return record.Event{
		EventID: fmt.Sprintf("01JQ%022d", n), CreatedAt: 1_772_000_000_000 + int64(n), RequestID: fmt.Sprint("req-", n),
		SessionID: "client session", SessionKey: fmt.Sprint("scoped-", n), SessionSource: "header:x-session-id",
		UserPath: "/team/alpha", APISurface: "anthropic-messages", RequestedModel: "smart", ModelName: "real-big-1",
		Provider: "openai-main", KeyID: "second", BillingModel: "pay_as_you_go", DecisionReason: "fallback",
		Switched: true, SwitchCount: num(), SwitchCostNanoUSD: num(),
		Attempts: []record.Attempt{
			{Provider: "anthropic-main", KeyID: "k1", Model: "m-ant", Status: 429, Error: "rate_limited", LatencyMillis: 12},
			{Provider: "openai-main", KeyID: "second", Model: "real-big-1", Status: 200, LatencyMillis: 340, Surface: "openai-chat-completions"},
		},
		DegradedProviders: []string{"anthropic-main", "groq"},
		Stream:            true, InputTokens: num(), CachedInputTokens: num(), CacheWriteTokens: num(),
		OutputTokens: num(), ReasoningTokens: num(), UsageQuality: record.UsagePartial,
		InputCostNanoUSD: num(), OutputCostNanoUSD: num(), CostNanoUSD: num(),
		ResponseStatus: 200, Outcome: record.OutcomeCancelled, TTFTMillis: num(), LatencyMillis: 4321, Affinity: "pinned",
	}
}

// delivered closes the backend and wants exactly these events.
func (b Backend) delivered(t *testing.T, want ...record.Event) {
	t.Helper()
	if b.Close != nil {
		if err := b.Close(t.Context()); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	got := b.Read(t)
	byID := func(events []record.Event) {
		sort.Slice(events, func(i, j int) bool { return events[i].EventID < events[j].EventID })
	}
	byID(got)
	byID(want)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("events differ (-want +got):\n%s", diff)
	}
}

func (b Backend) records(t *testing.T, event record.Event) {
	t.Helper()
	if err := b.Recorder.Record(t.Context(), &event); err != nil {
		t.Fatalf("Record: %v", err)
	}
}

// everyField also fails when a field has been added to the event and Full, or the
// backend, does not know it yet.
func everyField(t *testing.T, b Backend) {
	event := Full(1)
	text, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for name, value := range fields {
		if value == "" || value == 0.0 || value == false {
			t.Errorf("recordtest.Full leaves %s at its zero value", name)
		}
	}
	b.records(t, event)
	b.delivered(t, Full(1))
}

func unknownIsNotZero(t *testing.T, b Backend) {
	unknown := record.Event{EventID: "01A", UsageQuality: record.UsageUnknown}
	zero := func() *int64 { return new(int64) }
	zeroes := record.Event{
		EventID: "01B", SwitchCount: zero(), SwitchCostNanoUSD: zero(), InputTokens: zero(), CachedInputTokens: zero(),
		CacheWriteTokens: zero(), OutputTokens: zero(), ReasoningTokens: zero(), InputCostNanoUSD: zero(),
		OutputCostNanoUSD: zero(), CostNanoUSD: zero(), TTFTMillis: zero(),
	}
	large := record.Event{EventID: "01C", CostNanoUSD: zero(), InputTokens: zero()}
	*large.CostNanoUSD, *large.InputTokens = 1<<62+1, 1<<53+1
	for _, event := range []record.Event{unknown, zeroes, large} {
		b.records(t, event)
	}
	b.delivered(t, unknown, zeroes, large)
}

func anyText(t *testing.T, b Backend) {
	var want []record.Event
	for i, text := range []string{
		`'"\;--`, "a\x00b", "\x01\x1f\x7f", "line\nbreak\r\n", "日本語🙂", "</script>&amp;", strings.Repeat("x", 5000),
	} {
		event := record.Event{
			EventID: fmt.Sprintf("01T%02d", i), SessionID: text, UserPath: text, Provider: text,
			Attempts: []record.Attempt{{Provider: text, Error: text}}, DegradedProviders: []string{text},
		}
		b.records(t, event)
		want = append(want, event)
	}
	b.delivered(t, want...)
}

func duplicates(t *testing.T, b Backend) {
	for range 3 {
		b.records(t, Full(1))
		b.records(t, Full(2))
	}
	b.delivered(t, Full(1), Full(2))
}

func deliveredByClose(t *testing.T, b Backend) {
	var want []record.Event
	for n := range 1500 {
		b.records(t, Full(n))
		want = append(want, Full(n))
	}
	b.delivered(t, want...)
}

func parallel(t *testing.T, b Backend) {
	const workers, each = 20, 25
	errs := make([]error, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for n := range each {
				event := Full(w*each + n)
				errs[w] = errors.Join(errs[w], b.Recorder.Record(t.Context(), &event))
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("Record: %v", err)
	}
	var want []record.Event
	for n := range workers * each {
		want = append(want, Full(n))
	}
	b.delivered(t, want...)
}

// endedContext: the caller has run out of time. It learns that, so that it can log the
// event, and the recorder goes on.
func endedContext(t *testing.T, b Backend) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	event := Full(1)
	if err := b.Recorder.Record(ctx, &event); !errors.Is(err, context.Canceled) {
		t.Errorf("Record with an ended context: %v, want %v", err, context.Canceled)
	}
	b.records(t, Full(1))
	b.delivered(t, Full(1))
}

// withoutID: readers could not tell such events apart.
func withoutID(t *testing.T, b Backend) {
	event := Full(1)
	event.EventID = ""
	if err := b.Recorder.Record(t.Context(), &event); err == nil {
		t.Error("Record of an event without event_id succeeded, want an error")
	}
	b.delivered(t)
}
