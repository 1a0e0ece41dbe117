package ui

import (
	"errors"
	"strconv"
	"time"

	"switchboard/internal/record"
)

// dict hands several values to a template.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, errors.New("ui: a name without a value")
	}
	all := map[string]any{"hint": "", "type": ""}
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, errors.New("ui: a name that is no text")
		}
		all[name] = pairs[i+1]
	}
	return all, nil
}

// isDay tells whether a date field can show the value; a time needs a field for text.
func isDay(value string) bool {
	_, err := time.Parse(time.DateOnly, value)
	return value == "" || err == nil
}

// tone is the colour of an outcome.
func tone(outcome string) string {
	switch outcome {
	case record.OutcomeOK:
		return "ok"
	case record.OutcomeUpstreamError, record.OutcomeTimeout:
		return "bad"
	case record.OutcomeRefused:
		return "warn"
	}
	return ""
}

// stateTone is the colour of how a provider or key stands.
func stateTone(state string) string {
	switch state {
	case "ok":
		return "ok"
	case "down":
		return "bad"
	}
	return "warn"
}

// tokens are all tokens of a request; unknown when nothing is known.
func tokens(e *record.Event) string {
	if e.InputTokens == nil && e.OutputTokens == nil {
		return Unknown
	}
	return Count(deref(e.InputTokens) + deref(e.OutputTokens))
}

func deref(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// cachedShare is which part of the input came from a cache; empty when it is not known.
func cachedShare(e *record.Event) string {
	if e.InputTokens == nil || e.CachedInputTokens == nil || *e.InputTokens <= 0 {
		return ""
	}
	return Percent(*e.CachedInputTokens, *e.InputTokens)
}

// shareOf is a share as a length of 100.
func shareOf(part, whole int64) string {
	if whole <= 0 || part <= 0 {
		return "0"
	}
	return strconv.FormatFloat(min(100, 100*float64(part)/float64(whole)), 'f', 1, 64)
}

// counted is a row that stands for several requests.
type counted interface{ Counted() int64 }

func hasCount(row any) bool {
	c, ok := row.(counted)
	return ok && c.Counted() > 1
}
