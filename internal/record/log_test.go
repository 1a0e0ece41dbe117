package record_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/record"
	"switchboard/internal/record/recordtest"
)

// The log is where an event survives that could not be delivered, so its line must hold
// what the event's JSON holds: byte for byte, with HTML's characters as they are.
func TestLogValueIsTheJSONOfTheEvent(t *testing.T) {
	full := recordtest.Full(1)
	odd := recordtest.Full(2)
	odd.SessionID = "'\"\\;-- \x00\x01\x1f\x7f\n\r\t 日本語🙂 \u2028\u2029 </script>&amp; \xff\xfe"
	odd.UserPath, odd.RequestedModel, odd.Attempts[0].Error = odd.SessionID, odd.SessionID, odd.SessionID
	odd.DegradedProviders = []string{odd.SessionID, ""}
	zero := int64(0)
	for name, event := range map[string]record.Event{
		"full": full, "zero": {}, "odd text": odd,
		"zero numbers":   {EventID: "e", InputTokens: &zero, CostNanoUSD: &zero, TTFTMillis: &zero, SwitchCount: &zero},
		"empty lists":    {EventID: "e", Attempts: []record.Attempt{}, DegradedProviders: []string{}},
		"an empty call":  {EventID: "e", Attempts: []record.Attempt{{}}},
		"a large number": {EventID: "e", CreatedAt: 1<<62 + 1, LatencyMillis: -1},
	} {
		var want bytes.Buffer
		encoder := json.NewEncoder(&want)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(event); err != nil {
			t.Fatal(err)
		}
		got := logged(t, &event)
		if diff := cmp.Diff(strings.TrimSpace(want.String()), string(got)); diff != "" {
			t.Errorf("%s: log and JSON differ (-JSON +log):\n%s", name, diff)
		}
	}
}

// \b and \f are the two characters that the log spells in another way.
func TestLogValueOfAnyTextComesBack(t *testing.T) {
	for r := range rune(0x250) {
		want := record.Event{EventID: "e", SessionID: "a" + string(r) + "b"}
		var got record.Event
		if err := json.Unmarshal(logged(t, &want), &got); err != nil || !cmp.Equal(got, want) {
			t.Errorf("text with %U comes back as %q, %v", r, got.SessionID, err)
		}
	}
}

// logged returns the event as the gateway's log line holds it.
func logged(t *testing.T, event *record.Event) json.RawMessage {
	t.Helper()
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).ErrorContext(t.Context(), "undelivered routing event", slog.Any("undelivered_event", event))
	var line struct {
		Event json.RawMessage `json:"undelivered_event"`
	}
	if err := json.Unmarshal(log.Bytes(), &line); err != nil {
		t.Fatalf("log line %s: %v", log.Bytes(), err)
	}
	return line.Event
}
