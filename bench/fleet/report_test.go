package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"switchboard/internal/record"
)

// result is what came of one way of routing.
type result struct {
	routing
	requests, failed int
	input, cached    int64
	nano             int64 // US dollars
	switches         int
	unfounded        int            // switches away from a provider that had not failed
	moved            int            // sessions that were ever served by a second provider
	left             map[string]int // switches, by the provider that lost the session
	first            []time.Duration
	newFirst         []time.Duration // of first turns alone
	served           map[string]int
	newDuring        map[string]int // first turns while B was slow, by provider
}

func summarise(r routing, events []record.Event) *result {
	sum := &result{routing: r, served: map[string]int{}, left: map[string]int{}, newDuring: map[string]int{}}
	failed := map[string]int64{} // by provider: when an attempt failed there the last time, epoch ms
	last := map[string]string{}  // by session
	moved := map[string]bool{}
	for i := range events {
		e := &events[i]
		sum.requests++
		for _, a := range e.Attempts {
			if a.Error != "" {
				failed[a.Provider] = e.CreatedAt
			}
		}
		if e.Outcome != record.OutcomeOK {
			sum.failed++
			continue
		}
		sum.input += *e.InputTokens
		sum.cached += *e.CachedInputTokens
		sum.nano += *e.CostNanoUSD
		sum.served[e.Provider]++
		first := time.Duration(*e.TTFTMillis) * time.Millisecond
		sum.first = append(sum.first, first)
		before, known := last[e.SessionID]
		if !known {
			sum.newFirst = append(sum.newFirst, first)
			if minutes := float64(e.CreatedAt-events[0].CreatedAt) / 60_000; minutes > 22 && minutes < 35 {
				sum.newDuring[e.Provider]++
			}
		}
		if known && before != e.Provider {
			moved[e.SessionID] = true
		}
		if e.Switched {
			sum.switches++
			sum.left[before]++
			if at, ever := failed[before]; !ever || e.CreatedAt-at > longest.Milliseconds() {
				sum.unfounded++
			}
		}
		last[e.SessionID] = e.Provider
	}
	sum.moved = len(moved)
	slices.Sort(sum.first)
	slices.Sort(sum.newFirst)
	return sum
}

// longest is how long a provider that has failed is left alone at most, with the trial after it.
const longest = 6 * time.Minute

func (r *result) hits() float64 { return float64(r.cached) / float64(r.input) }
func (r *result) usd() float64  { return float64(r.nano) / 1e9 }

// at is the part-th of sorted times: 0.5 is the median.
func at(sorted []time.Duration, part float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))]
}

func table(results []*result) string {
	var b strings.Builder
	b.WriteString("| configuration | input from the cache | cost | sessions moved | switches | of those, from a provider that had not failed | first output, new sessions: median, 95 % | all turns: median, 95 % | answers by A, B, C, D |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		var shares []string
		for _, v := range vendors() {
			shares = append(shares, fmt.Sprintf("%.0f", 100*float64(r.served[v.name])/float64(r.requests)))
		}
		fmt.Fprintf(&b, "| %s | %.1f %% | $%.2f (%.0f %%) | %d | %d | %d | %s, %s | %s, %s | %s %% |\n",
			r.name, 100*r.hits(), r.usd(), 100*r.usd()/results[0].usd(), r.moved, r.switches, r.unfounded,
			seconds(at(r.newFirst, 0.5)), seconds(at(r.newFirst, 0.95)), seconds(at(r.first, 0.5)), seconds(at(r.first, 0.95)),
			strings.Join(shares, ", "))
	}
	fmt.Fprintf(&b, "\n%d requests of %d sessions each time; %d of them were not answered.\n", results[0].requests, len(results[0].newFirst), results[0].failed)
	return b.String()
}

// script says what the providers are like.
func script() string {
	var b strings.Builder
	b.WriteString("| provider | input, cached input, output, per million tokens | first output of a short prompt | what happens |\n|---|---|---|---|\n")
	for _, v := range vendors() {
		var what []string
		for _, p := range v.phases {
			what = append(what, fmt.Sprintf("minutes %.0f to %.0f: %s", p.from, p.to, says(p.what)))
		}
		if v.errorsPer1k > 0 {
			what = append(what, fmt.Sprintf("%.0f of 1,000 calls: 503", v.errorsPer1k))
		}
		if what == nil {
			what = []string{"nothing"}
		}
		fmt.Fprintf(&b, "| %s | $%.2f, $%.2f, $%.2f | %s | %s |\n", v.name, v.input, v.input/10, 4*v.input, v.first, strings.Join(what, "; "))
	}
	return b.String()
}

func says(what string) string {
	switch what {
	case limited:
		return "429 to every call"
	case down:
		return "it cannot be reached"
	}
	return "five times slower, and works"
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
