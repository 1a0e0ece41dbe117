package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
)

// bar is one promise: a figure and its limit.
type bar struct {
	name       string
	got        float64
	most       float64 // NaN: no upper limit
	least      float64 // NaN: no lower limit
	unit       string
	floor, own string // the two figures behind a ratio, for the reader
}

func (b bar) ok() bool {
	return !math.IsNaN(b.got) && (math.IsNaN(b.most) || b.got <= b.most) && (math.IsNaN(b.least) || b.got >= b.least)
}

func (b bar) format(figure float64) string {
	if b.unit == "events" {
		return fmt.Sprintf("%.0f %s", figure, b.unit)
	}
	return strings.TrimSpace(fmt.Sprintf("%.2f %s", figure, b.unit))
}

func (b bar) limit() string {
	switch {
	case math.IsNaN(b.most):
		return "at least " + b.format(b.least)
	case math.IsNaN(b.least):
		return "at most " + b.format(b.most)
	}
	return b.format(b.most)
}

// pick is the figure of each repetition of one scenario and target.
func (m measurement) pick(scenario, name string, figure func(result) float64) map[int]float64 {
	list := map[int]float64{}
	for _, r := range m.results {
		if r.Scenario == scenario && r.Name == name {
			list[r.Rep] = figure(r)
		}
	}
	return list
}

// median over the repetitions; NaN when there are none.
func median(byRep map[int]float64) float64 {
	list := []float64{}
	for _, v := range byRep {
		list = append(list, v)
	}
	if len(list) == 0 {
		return math.NaN()
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// added is the median of what a target adds to the direct run of the same repetition.
func (m measurement) added(scenario, name string) float64 {
	total := func(r result) float64 { return r.Total50 }
	direct := m.pick(scenario, "direct", total)
	list := m.pick(scenario, name, total)
	for rep := range list {
		list[rep] -= direct[rep]
	}
	return median(list)
}

func (m measurement) has(scenario string) bool {
	return slices.ContainsFunc(m.results, func(r result) bool { return r.Scenario == scenario })
}

// bars are the promises, with what was measured.
func (m measurement) bars() (list []bar) {
	none := math.NaN()
	ratio := func(name, unit string, own, floor, most float64) {
		list = append(list, bar{name, own / floor, most, none, "x", fmt.Sprintf("%.1f %s", floor, unit), fmt.Sprintf("%.1f %s", own, unit)})
	}
	for _, s := range []struct {
		scenario string
		most     float64
	}{{"plain-2k-c1", 2}, {"stream-2k-c1", 2}, {"plain-100k-c1", 1.5}, {"stream-100k-c1", 1.5}, {"plain-1m-c1", 1.5}} {
		if m.has(s.scenario) {
			ratio("added p50, "+s.scenario, "µs", m.added(s.scenario, "switchboard"), m.added(s.scenario, "floor"), s.most)
		}
	}
	cpu := func(r result) float64 { return r.CPU }
	perSec := func(r result) float64 { return r.PerSec }
	lag := func(r result) float64 { return r.Lag99 }
	seen := map[string]bool{}
	errors := 0
	peak := int64(0)
	for _, r := range m.results {
		if r.Name == "switchboard" {
			errors += r.Errors
			peak = max(peak, r.RSSPeak)
		}
		if !seen[r.Scenario] {
			seen[r.Scenario] = true
			ratio("CPU a request, "+r.Scenario, "µs", median(m.pick(r.Scenario, "switchboard", cpu)), median(m.pick(r.Scenario, "floor", cpu)), 2)
		}
	}
	for _, s := range []struct {
		scenario string
		least    float64
	}{{"plain-2k-c32", 0.25}, {"stream-2k-c32", 0.25}, {"plain-100k-c32", 0.45}} {
		if m.has(s.scenario) {
			own, direct := median(m.pick(s.scenario, "switchboard", perSec)), median(m.pick(s.scenario, "direct", perSec))
			list = append(list, bar{
				"requests a second to direct's, " + s.scenario, own / direct, none, s.least, "x",
				fmt.Sprintf("%.0f/s direct", direct), fmt.Sprintf("%.0f/s", own),
			})
		}
	}
	if s := "paced-100k-c100"; m.has(s) {
		ratio("chunk lag p99, "+s, "µs", median(m.pick(s, "switchboard", lag)), median(m.pick(s, "floor", lag)), 2)
	}
	ratio("start to first answer", "ms", m.cold["switchboard"], m.cold["floor"], 2)
	return append(list,
		bar{name: "RSS idle", got: float64(m.rssIdle) / 1e6, most: 20, least: none, unit: "MB"},
		bar{name: "RSS peak", got: float64(peak) / 1e6, most: 60, least: none, unit: "MB"},
		bar{name: "binary", got: float64(m.binary) / 1e6, most: 25, least: none, unit: "MB"},
		bar{name: "failed requests", got: float64(errors), most: 0, least: none},
		bar{name: "events kept, of requests sent", got: float64(m.kept), most: float64(m.sent), least: float64(m.sent), unit: "events"},
	)
}

func barTable(bars []bar) string {
	var b strings.Builder
	b.WriteString("| figure | floor | switchboard | result | bar | |\n|---|---|---|---|---|---|\n")
	for _, one := range bars {
		verdict := "pass"
		if !one.ok() {
			verdict = "**FAIL**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", one.name, one.floor, one.own, one.format(one.got), one.limit(), verdict)
	}
	return b.String()
}

const begin, end = "<!-- measured: `make bench` writes from here -->\n", "<!-- to here -->\n"

// page is the generated part of the performance page.
func (m measurement) page(table string) string {
	cut := ""
	if m.partial {
		cut = " Only a part of the matrix was run."
	}
	return fmt.Sprintf("%s\nMeasured on %d cores, %s/%s, %s, %d repetitions, medians.%s \"Floor\" is the least gateway that\nGo's standard library allows; \"added\" is on top of asking the provider directly.\n\n%s\n## Every scenario\n%s\n%s",
		begin, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), m.reps, cut, table, m.report, end)
}

// writePage replaces what is between the two marks, and leaves the rest alone.
func writePage(path, generated string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s has no %q … %q", path, begin, end)
	}
	return os.WriteFile(path, []byte(before+generated+after), 0o644)
}
