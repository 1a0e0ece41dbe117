package firehose_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"switchboard/internal/firehose"
	"switchboard/internal/record"
	"switchboard/internal/record/recordtest"
)

const limit = 1_024_000 // bytes of a record, with its newline

// put records one event and returns the data that Firehose got, and what was logged.
func put(t *testing.T, event *record.Event) (data []byte, log string, err error) {
	t.Helper()
	var f fake
	var text bytes.Buffer
	client := firehose.NewClient(config(inProcess{&f}))
	err = firehose.New(client, streamName, slog.New(slog.NewJSONHandler(&text, nil))).Record(t.Context(), event)
	if len(f.records) > 0 {
		data = f.records[0]
	}
	if err != nil && len(f.calls) > 0 {
		t.Errorf("Firehose was called %d times for an event that cannot fit", len(f.calls))
	}
	return data, text.String(), err
}

// mayBeCut leaves out the fields that may be cut; all others must come through.
func mayBeCut() cmp.Option {
	return cmpopts.IgnoreFields(record.Event{}, "Attempts", "DegradedProviders", "RequestedModel", "ModelName",
		"Provider", "KeyID", "SessionSource", "DecisionReason", "BillingModel", "APISurface", "UsageQuality", "Affinity")
}

func TestRecordOfOversizeEvents(t *testing.T) {
	long := func(text string) string { return strings.Repeat(text, 1+2<<20/len(text)) }
	attempts := func(n int, text string) (list []record.Attempt) {
		for i := range n {
			list = append(list, record.Attempt{Provider: fmt.Sprint("p", i), Model: "m", Status: 500, Error: text})
		}
		return list
	}
	for _, tt := range []struct {
		name string
		grow func(e *record.Event)
		cut  string                // the fields, in the log
		left func(e *record.Event) // the event as it must arrive, from what was put
	}{
		{"errors", func(e *record.Event) { e.Attempts = attempts(3, long("é")) }, `["attempts.error"]`, func(e *record.Event) {
			for i := range e.Attempts {
				e.Attempts[i].Error = strings.Repeat("é", 32)
			}
		}},
		{"many attempts", func(e *record.Event) { e.Attempts = attempts(40_000, "timeout") }, `["attempts"]`, func(e *record.Event) {
			e.Attempts = append(e.Attempts[:4:4], e.Attempts[len(e.Attempts)-4:]...)
		}},
		{"degraded", func(e *record.Event) { e.DegradedProviders = strings.Split(long("provider "), " ") }, `["degraded_providers"]`, func(e *record.Event) {
			e.DegradedProviders = nil
		}},
		{"model", func(e *record.Event) { e.RequestedModel = "ab" + long("日") }, `["degraded_providers","requested_model"]`, func(e *record.Event) {
			e.DegradedProviders, e.RequestedModel = nil, "ab"+strings.Repeat("日", 84)
		}},
		{"characters that grow", func(e *record.Event) { e.RequestedModel = strings.Repeat("\x01", 200_000) }, `["degraded_providers","requested_model"]`, func(e *record.Event) {
			e.DegradedProviders, e.RequestedModel = nil, strings.Repeat("\x01", 256)
		}},
		{"not UTF-8", func(e *record.Event) { e.RequestedModel = long("\x80") }, `["degraded_providers","requested_model"]`, func(e *record.Event) {
			e.DegradedProviders, e.RequestedModel = nil, strings.Repeat("\ufffd", 252)
		}},
		{"everything", func(e *record.Event) {
			text := long("x")
			e.Attempts = attempts(3, text)
			e.Attempts[1].Provider, e.Attempts[1].Model, e.Attempts[2].KeyID = text, text, text
			for _, field := range []*string{&e.RequestedModel, &e.ModelName, &e.Provider, &e.KeyID, &e.SessionSource, &e.DecisionReason, &e.BillingModel, &e.APISurface, &e.UsageQuality, &e.Affinity} {
				*field = text
			}
		}, `["attempts.error","degraded_providers","attempts.text","requested_model","model_name","provider_identity","key_id","session_source","decision_reason","billing_model","api_surface","usage_quality","affinity"]`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			event := recordtest.Full(1)
			tt.grow(&event)
			before, err := json.Marshal(event)
			if err != nil {
				t.Fatal(err)
			}
			data, log, err := put(t, &event)
			if err != nil || len(data) > limit || !utf8.Valid(data) {
				t.Fatalf("Record = %v with %d bytes", err, len(data))
			}
			var got record.Event
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(recordtest.Full(1), got, mayBeCut()); diff != "" {
				t.Errorf("a field that must not be cut was (-want +got):\n%s", diff)
			}
			if !strings.Contains(log, `"level":"WARN"`) || !strings.Contains(log, `"fields":`+tt.cut) || !strings.Contains(log, event.EventID) {
				t.Errorf("log = %s, want a warning about %s", log, tt.cut)
			}
			if after, _ := json.Marshal(event); !bytes.Equal(before, after) {
				t.Error("Record changed the caller's event")
			}
			if tt.left == nil {
				return
			}
			want := event
			tt.left(&want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("event differs (-want +got):\n%.2000s", diff)
			}
		})
	}
}

// The limit counts the newline: an event that just fits stays whole.
func TestRecordAtTheLimit(t *testing.T) {
	empty, err := json.Marshal(record.Event{EventID: "e", RequestedModel: "."})
	if err != nil {
		t.Fatal(err)
	}
	room := limit - len(empty) - 1
	for _, more := range []int{-1, 0, 1} {
		event := record.Event{EventID: "e", RequestedModel: "." + strings.Repeat("m", room+more)}
		data, log, err := put(t, &event)
		whole := len(data) == limit+more
		if err != nil || whole != (more <= 0) || (log == "") != (more <= 0) {
			t.Errorf("Record of %d bytes: %d in the stream, %v, log %s", limit+more, len(data), err, log)
		}
	}
}

// What is left when everything may be too much, too. Then the caller is told, and logs it.
func TestRecordOfAnEventThatCannotFit(t *testing.T) {
	event := recordtest.Full(1)
	event.SessionID = strings.Repeat("s", limit)
	if _, _, err := put(t, &event); err == nil || !strings.Contains(err.Error(), event.EventID) {
		t.Errorf("Record = %v, want an error that names the event", err)
	}
}
