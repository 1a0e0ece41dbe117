package provider

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestRetry bounds what a provider may ask for: a wrong date must not switch a key off
// for good.
const longestRetry = 24 * time.Hour

func bounded(d time.Duration) time.Duration { return min(max(d, 0), longestRetry) }

// seconds converts a number from outside; what is no number or too large is bounded.
func seconds(s float64) time.Duration {
	if math.IsNaN(s) || s <= 0 {
		return 0
	}
	if s >= longestRetry.Seconds() {
		return longestRetry
	}
	return time.Duration(s * float64(time.Second))
}

// retryAfter is the time the headers ask to wait in so many words: retry-after-ms, or
// Retry-After in seconds or as an HTTP date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil {
		if d := seconds(ms / 1000); d > 0 {
			return d
		}
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return seconds(s)
	}
	if at, err := http.ParseTime(v); err == nil {
		return bounded(at.Sub(now))
	}
	return 0
}

// limitReset is when the limit that is used up fills again, by the vendors' rate limit
// headers: of the limits with nothing remaining the latest; if none says so, of all.
func limitReset(h http.Header, now time.Time) time.Duration {
	limits := [...]struct{ remaining, reset string }{
		{"X-Ratelimit-Remaining-Requests-Minute", "X-Ratelimit-Reset-Requests-Minute"},
		{"X-Ratelimit-Remaining-Tokens-Minute", "X-Ratelimit-Reset-Tokens-Minute"},
		{"X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
		{"X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
		{"X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
		{"Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"},
		{"Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset"},
		{"Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Reset"},
		{"Anthropic-Ratelimit-Output-Tokens-Remaining", "Anthropic-Ratelimit-Output-Tokens-Reset"},
		{"", "Anthropic-Ratelimit-Unified-Reset"},
	}
	// Of a limit per day the reset is far away, and only says something when it is used up.
	days := [...]struct{ remaining, reset string }{
		{"X-Ratelimit-Remaining-Requests-Hour", "X-Ratelimit-Reset-Requests-Hour"},
		{"X-Ratelimit-Remaining-Requests-Day", "X-Ratelimit-Reset-Requests-Day"},
		{"X-Ratelimit-Remaining-Tokens-Hour", "X-Ratelimit-Reset-Tokens-Hour"},
		{"X-Ratelimit-Remaining-Tokens-Day", "X-Ratelimit-Reset-Tokens-Day"},
	}
	var exhausted, any time.Duration
	for _, l := range days {
		if strings.TrimSpace(h.Get(l.remaining)) == "0" {
			exhausted = max(exhausted, resetIn(h.Get(l.reset), now))
		}
	}
	for _, l := range limits {
		d := resetIn(h.Get(l.reset), now)
		any = max(any, d)
		if l.remaining != "" && strings.TrimSpace(h.Get(l.remaining)) == "0" {
			exhausted = max(exhausted, d)
		}
	}
	if exhausted > 0 {
		return exhausted
	}
	return any
}

// resetIn reads a reset header: a duration ("6m0s", "120ms"), a time (RFC 3339), seconds,
// or an epoch in seconds or milliseconds.
func resetIn(v string, now time.Time) time.Duration {
	v = strings.TrimSpace(v)
	if v == "" {
		return 0
	}
	if n, err := strconv.ParseFloat(v, 64); err == nil {
		switch {
		case n > 1e11:
			return bounded(time.UnixMilli(int64(min(n, 1e15))).Sub(now))
		case n > 1e9:
			return bounded(time.Unix(int64(n), 0).Sub(now))
		}
		return seconds(n)
	}
	if d, err := time.ParseDuration(v); err == nil {
		return bounded(d)
	}
	if at, err := time.Parse(time.RFC3339, v); err == nil {
		return bounded(at.Sub(now))
	}
	return 0
}
