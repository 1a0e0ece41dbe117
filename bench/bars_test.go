package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func sample() measurement {
	m := measurement{cold: map[string]float64{"floor": 10, "switchboard": 15}, rssIdle: 15e6, binary: 20e6, sent: 100, kept: 100}
	for rep, noise := range []float64{0, 1000, 50} {
		for _, r := range []result{
			{Name: "direct", Total50: 100, PerSec: 4000},
			{Name: "floor", Total50: 200, CPU: 100},
			{Name: "switchboard", Total50: 250, CPU: 150, PerSec: 2000, RSSPeak: 40e6},
		} {
			r.Scenario, r.Rep = "plain-2k-c1", rep
			r.Total50 += noise // what the machine does falls on all alike
			m.results = append(m.results, r)
			r.Scenario = "plain-2k-c32"
			m.results = append(m.results, r)
		}
	}
	return m
}

func find(t *testing.T, bars []bar, name string) bar {
	t.Helper()
	for _, b := range bars {
		if b.name == name {
			return b
		}
	}
	t.Fatalf("no bar %q", name)
	return bar{}
}

func TestBars(t *testing.T) {
	bars := sample().bars()
	for name, want := range map[string]float64{
		"added p50, plain-2k-c1": 1.5, "CPU a request, plain-2k-c1": 1.5,
		"requests a second to direct's, plain-2k-c32": 0.5, "start to first answer": 1.5,
		"RSS idle": 15, "RSS peak": 40, "binary": 20, "events kept, of requests sent": 100,
	} {
		if got := find(t, bars, name); got.got != want || !got.ok() {
			t.Errorf("%s = %v (ok %v), want %v (ok)", name, got.got, got.ok(), want)
		}
	}

	lost := sample()
	lost.kept, lost.binary, lost.results[4].Errors = 99, 26e6, 1
	for _, name := range []string{"events kept, of requests sent", "binary", "failed requests"} {
		if find(t, lost.bars(), name).ok() {
			t.Errorf("%s passes, want a failure", name)
		}
	}
	if !strings.Contains(barTable(lost.bars()), "**FAIL**") {
		t.Error("the table hides the failures")
	}
}

func TestScenarios(t *testing.T) {
	script := "  each plain-2k-c1 plain-2k 400 1 50\n  each paced stream 300 100 100\n# each no no 1 1 1\n"
	sum := func(list []scenario) (n int) {
		for _, s := range list {
			n += s.sent
		}
		return n
	}
	if got := sum(scenarios(script, "")); got != 850 {
		t.Errorf("all scenarios send %d, want 850", got)
	}
	if got := sum(scenarios(script, "plain")); got != 450 {
		t.Errorf("scenarios(plain) send %d, want 450", got)
	}
}

func TestWritePage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	os.WriteFile(path, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o600)
	for range 2 { // twice gives the same
		if err := writePage(path, begin+"new\n"+end); err != nil {
			t.Fatal(err)
		}
	}
	text, _ := os.ReadFile(path)
	if want := "before\n" + begin + "new\n" + end + "after\n"; string(text) != want {
		t.Errorf("page = %q, want %q", text, want)
	}
}
