package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"switchboard/internal/record"
)

var update = flag.Bool("update", false, "write the result into docs/routing.md")

const page = "../../docs/routing.md"

// The figures of docs/routing.md may change with the code; what the page says of them may not.
func TestFleet(t *testing.T) {
	sessions := 1000
	if testing.Short() && !*update {
		sessions = 300
	}
	var results []*result
	for _, r := range routings() {
		results = append(results, summarise(r, play(t, r, sessions)))
	}
	spread, sticky, latency, balanced, cost := results[0], results[1], results[2], results[3], results[4]
	t.Logf("\n%s\n%s", script(), table(results))
	holds := func(claim string, ok bool) {
		t.Helper()
		if !ok {
			t.Errorf("does not hold: %s", claim)
		}
	}
	for _, r := range results {
		holds(r.name+": every request is answered", r.failed == 0 && r.requests == spread.requests && len(r.newFirst) == sessions)
	}
	for _, r := range results[1:] {
		holds(r.name+": a session moves only from a provider that has failed", r.unfounded == 0 && r.left["A"] == 0 && r.left["B"] == 0 && r.switches > 0)
		holds(r.name+": few sessions move, each about once", r.moved < sessions/5 && r.switches < r.moved*3/2)
		holds(r.name+": nine tenths of the input come from caches", r.hits() > 0.9 && r.hits() > spread.hits()+0.1)
		holds(r.name+": a third of the cost is saved and more", r.usd() < spread.usd()*2/3)
	}
	for _, r := range results[2:] {
		holds(r.name+": as many cache hits as any other way that pins", r.hits() > sticky.hits()-0.01)
	}
	holds("the objectives differ in cost", cost.usd() < balanced.usd() && balanced.usd() < latency.usd())
	holds("affinity shortens the first output", at(sticky.first, 0.5) < at(spread.first, 0.5)*9/10)
	holds("balanced costs about what round_robin does", balanced.usd() < sticky.usd()*1.1)
	holds("cost is the cheapest", cost.usd() < sticky.usd()*9/10)
	holds("latency and balanced spare new sessions the slowest answers", at(latency.newFirst, 0.95) < at(sticky.newFirst, 0.95)*8/10 && at(balanced.newFirst, 0.95) < at(sticky.newFirst, 0.95)*9/10)
	for _, r := range []*result{latency, balanced} {
		holds(r.name+": new sessions avoid who is slow", 2*r.newDuring["B"] < sticky.newDuring["B"])
	}
	if *update && !t.Failed() {
		publish(t, "script", script())
		publish(t, "result", table(results))
	}
}

// The same seed gives the same events: what differs between two ways of routing is the routing.
func TestFleetIsDeterministic(t *testing.T) {
	trace := func() (list []string) {
		for _, e := range play(t, routings()[3], 100) {
			list = append(list, fmt.Sprint(e.CreatedAt, e.SessionID, e.Provider, e.DecisionReason, *e.TTFTMillis, *e.CostNanoUSD, e.Switched, attempts(&e)))
		}
		return list
	}
	one, two := trace(), trace()
	if !slices.Equal(one, two) {
		for i := range one {
			if i >= len(two) || one[i] != two[i] {
				t.Fatalf("event %d of two runs: %s and %s", i, one[i], two[i])
			}
		}
	}
}

func attempts(e *record.Event) (list []string) {
	for _, a := range e.Attempts {
		list = append(list, a.Provider+a.Error)
	}
	return list
}

// publish puts text between the two marks of that name on the page.
func publish(t *testing.T, name, text string) {
	t.Helper()
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := fmt.Appendf(nil, "<!-- fleet %s -->\n", name), fmt.Appendf(nil, "<!-- end of fleet %s -->", name)
	before, rest, ok := bytes.Cut(old, begin)
	_, after, ended := bytes.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s lacks the marks %s and %s", page, begin, end)
	}
	next := slices.Concat(before, begin, []byte(text), end, after)
	if err := os.WriteFile(page, next, 0o644); err != nil {
		t.Fatal(err)
	}
}
