package signal

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"
)

func start() time.Time { return time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC) }

func after(seconds float64) time.Time {
	return start().Add(time.Duration(seconds * float64(time.Second)))
}

var a, b = Target{"A", "m"}, Target{"B", "m"}

// answers plays an attempt that begins and is answered at these seconds, and ends at once.
func answers(t *Table, target Target, stream bool, began, answered float64) {
	f := t.Begin(target, stream, after(began))
	f.Answered(after(answered))
	f.End(after(answered))
}

func near(got, want float64) bool { return math.Abs(got-want) < 1e-6*max(1, math.Abs(want)) }

func TestLoad(t *testing.T) {
	left := func(seconds float64) float64 { return math.Exp(-seconds / memory.Seconds()) }
	for _, tt := range []struct {
		name string
		do   func(*Table)
		at   float64
		want Load
	}{
		{"nothing", func(*Table) {}, 0, Load{}},
		{"of another target", func(t *Table) { answers(t, b, true, 0, 1) }, 1, Load{}},
		{"an answer just now", func(t *Table) { answers(t, a, true, 0, 2) }, 2, Load{TTFB: 2, Confidence: 1}},
		{"of the other kind", func(t *Table) { answers(t, a, false, 0, 2) }, 2, Load{}},
		{"an answer a while ago", func(t *Table) { answers(t, a, true, 0, 2) }, 62, Load{TTFB: 2, Confidence: left(60)}},
		{"a peak", func(t *Table) {
			for range 9 {
				answers(t, a, true, 9, 10)
			}
			answers(t, a, true, 0, 10)
		}, 10, Load{TTFB: 10, Confidence: 1}},
		{"a peak that fades to the mean", func(t *Table) {
			for range 9 {
				answers(t, a, true, 9, 10)
			}
			answers(t, a, true, 0, 10)
		}, 10 + 300, Load{TTFB: 1.9, Confidence: 10 * left(300)}},
		{"a failure", func(t *Table) {
			f := t.Begin(a, true, after(0))
			f.Failed(after(1))
			f.End(after(1))
		}, 1, Load{Failures: 0.5}},
		{"a failure after output", func(t *Table) {
			f := t.Begin(a, true, after(0))
			f.Answered(after(1))
			f.Failed(after(1))
			f.Answered(after(9)) // it has answered already
			f.End(after(1))
		}, 1, Load{TTFB: 1, Confidence: 1, Failures: 0.5}},
		{"under way", func(t *Table) {
			t.Begin(a, true, after(0))
			t.Begin(a, false, after(0))
			ended := t.Begin(a, true, after(0))
			ended.End(after(0))
			ended.End(after(0))
		}, 0, Load{InFlight: 2}},
		{"a clock that goes back", func(t *Table) { answers(t, a, true, 10, 12); answers(t, a, true, 3, 5) }, 1, Load{TTFB: 2, Confidence: 1}},
		{"an answer before its beginning", func(t *Table) { answers(t, a, true, 5, 4) }, 4, Load{Confidence: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table := NewTable()
			tt.do(table)
			got := table.View(after(tt.at)).Load(a, true)
			if !near(got.TTFB, tt.want.TTFB) || !near(got.Confidence, tt.want.Confidence) || !near(got.Failures, tt.want.Failures) || !near(got.InFlight, tt.want.InFlight) {
				t.Errorf("Load = %+v, want %+v", got, tt.want)
			}
		})
	}
}

// What knows nothing says nothing, and nothing is counted for nobody.
func TestZeroValues(t *testing.T) {
	var v View
	var f Flight
	f.Answered(start())
	f.Failed(start())
	f.End(start())
	if got := v.Load(a, true); got != (Load{}) {
		t.Errorf("Load = %+v, want nothing", got)
	}
}

// Names of models may come from many configurations: the table does not grow without end.
func TestTableIsBounded(t *testing.T) {
	table := NewTable()
	for i := range maxTargets + 100 {
		answers(table, Target{"P", fmt.Sprint(i)}, true, 0, 1)
	}
	if got := len(*table.cells.Load()); got != maxTargets {
		t.Errorf("%d targets, want %d", got, maxTargets)
	}
}

func TestObservingIsSafeForConcurrentUse(t *testing.T) {
	table := NewTable()
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for i := range 200 {
				f := table.Begin(Target{"P", fmt.Sprint(i % 10)}, g%2 == 0, start())
				f.Answered(after(1))
				table.View(after(1)).Load(a, true)
				f.End(after(1))
			}
		})
	}
	group.Wait()
	for i := range 10 {
		l := table.View(after(1)).Load(Target{"P", fmt.Sprint(i)}, true)
		if l.InFlight != 0 || !near(l.TTFB, 1) {
			t.Errorf("target %d: %+v, want nobody in flight and 1 s", i, l)
		}
	}
}
