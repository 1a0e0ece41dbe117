package firehose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"switchboard/internal/record"
)

const (
	// maxRecord is Firehose's limit of one record's data: 1,000 KiB, with the newline.
	maxRecord = 1000 << 10
	// Of an event that is too large:
	keepText     = 256 // bytes of a long text
	keepError    = 64  // bytes of an attempt's error, which is the name of a class
	keepAttempts = 4   // attempts from either end
	// eventSize is room for a usual event, so that its encoding does not grow in steps.
	eventSize = 1536
)

// encode returns the event as one line of JSON that Firehose takes, and the fields it had
// to cut for that, in order. The event itself stays as it is.
func encode(event *record.Event) (line []byte, cut []string, err error) {
	if line, err = marshal(event); err != nil || len(line) <= maxRecord {
		return line, nil, err
	}
	small := *event
	small.Attempts = slices.Clone(event.Attempts)
	for _, step := range steps() {
		if !step.cut(&small) {
			continue
		}
		cut = append(cut, step.field)
		if line, err = marshal(&small); err != nil || len(line) <= maxRecord {
			return line, cut, err
		}
	}
	return nil, nil, fmt.Errorf("the event has %d bytes without what may be cut, and a record may have %d", len(line), maxRecord)
}

// marshal is what the log line of an event is too: characters of HTML stay as they are. Its
// newline ends the record.
func marshal(event *record.Event) ([]byte, error) {
	buffer := bytes.NewBuffer(make([]byte, 0, eventSize))
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(event)
	return buffer.Bytes(), err
}

// step makes an event smaller by one field. It works on a copy whose attempts are copies.
type step struct {
	field string
	cut   func(e *record.Event) bool // false: there was nothing to cut
}

// steps are in the order in which they are taken, until the event fits: what reports need
// least goes first. Never cut are event_id, created_at, what names request, session and
// tenant, tokens, cost, switches and the outcome.
func steps() []step {
	texts := func(field string, of func(e *record.Event) *string) step {
		return step{field, func(e *record.Event) bool { return shorten(of(e), keepText) }}
	}
	return []step{
		{"attempts.error", func(e *record.Event) (did bool) {
			for i := range e.Attempts {
				did = shorten(&e.Attempts[i].Error, keepError) || did
			}
			return did
		}},
		{"attempts", func(e *record.Event) bool {
			n := len(e.Attempts)
			if n <= 2*keepAttempts {
				return false
			}
			e.Attempts = slices.Delete(e.Attempts, keepAttempts, n-keepAttempts)
			return true
		}},
		{"degraded_providers", func(e *record.Event) bool {
			had := len(e.DegradedProviders) > 0
			e.DegradedProviders = nil
			return had
		}},
		{"attempts.text", func(e *record.Event) (did bool) {
			for i := range e.Attempts {
				a := &e.Attempts[i]
				for _, text := range []*string{&a.Provider, &a.KeyID, &a.Model} {
					did = shorten(text, keepText) || did
				}
			}
			return did
		}},
		texts("requested_model", func(e *record.Event) *string { return &e.RequestedModel }),
		texts("model_name", func(e *record.Event) *string { return &e.ModelName }),
		texts("provider_identity", func(e *record.Event) *string { return &e.Provider }),
		texts("key_id", func(e *record.Event) *string { return &e.KeyID }),
		texts("session_source", func(e *record.Event) *string { return &e.SessionSource }),
		texts("decision_reason", func(e *record.Event) *string { return &e.DecisionReason }),
		texts("billing_model", func(e *record.Event) *string { return &e.BillingModel }),
		texts("api_surface", func(e *record.Event) *string { return &e.APISurface }),
		texts("usage_quality", func(e *record.Event) *string { return &e.UsageQuality }),
		texts("affinity", func(e *record.Event) *string { return &e.Affinity }),
	}
}

// shorten cuts text to at most limit bytes, at the border of a character.
func shorten(text *string, limit int) bool {
	if len(*text) <= limit {
		return false
	}
	end := limit
	for end > limit-utf8.UTFMax && !utf8.RuneStart((*text)[end]) {
		end--
	}
	*text = (*text)[:end]
	return true
}
