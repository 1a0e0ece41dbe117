// Package signal keeps what attempts have shown of targets: how soon they answer, how busy
// they are and how often they fail.
//
// Nothing here degrades a target: that is health's part. Signals only tell the adaptive
// strategy which of the healthy ones is likely to answer first (DESIGN 8).
package signal

import (
	"sync"
	"sync/atomic"
	"time"
)

// Target is a provider's model, on whatever key.
type Target struct {
	Provider string
	Model    string // the provider's name for it
}

// Load is what is known of a target at one instant.
type Load struct {
	// TTFB is the seconds to the first output of answers of the same kind (streamed or not):
	// their mean, or the latest peak as far as it has not faded, whichever is longer.
	TTFB float64
	// Confidence is how far TTFB is still true, from 1 (an answer just now, or several lately)
	// to 0 (unknown). It fades with time.
	Confidence float64
	// InFlight is how many calls are under way: of this process now, of others on average.
	InFlight float64
	// Failures is the share of attempts that failed lately, 0 to 1.
	Failures float64
}

// maxTargets bounds the table. Targets come from configurations, of which a process may see
// many in its life.
const maxTargets = 1024

// Table is what this process knows of targets, and through a cell what others know. Safe for
// concurrent use. Reading and observing take one short lock of the target alone.
type Table struct {
	cells   atomic.Pointer[map[Target]*cell]
	growing sync.Mutex
	sharing *sharing // nil: nobody to share with
}

// NewTable returns an empty table of this process alone.
func NewTable() *Table {
	t := &Table{}
	t.cells.Store(&map[Target]*cell{})
	return t
}

// cell is what is known of one target.
type cell struct {
	inFlight atomic.Int64

	mu    sync.Mutex
	at    time.Time // what follows is as of then
	known evidence  // everybody's
	news  evidence  // our own part of it that is not shared
	mine  float64   // our own part of known.busy
}

// cell finds or makes the place of a target; nil when the table is full.
func (t *Table) cell(target Target) *cell {
	if c := (*t.cells.Load())[target]; c != nil {
		return c
	}
	t.growing.Lock()
	defer t.growing.Unlock()
	old := *t.cells.Load()
	if c := old[target]; c != nil || len(old) >= maxTargets {
		return c
	}
	next := make(map[Target]*cell, len(old)+1)
	for known, c := range old {
		next[known] = c
	}
	made := &cell{}
	next[target] = made
	t.cells.Store(&next)
	return made
}

// add takes in what one attempt has shown just now.
func (t *Table) add(c *cell, now time.Time, shown evidence) {
	c.mu.Lock()
	c.fade(now)
	c.known.merge(shown)
	c.mine += shown.busy
	if t.sharing != nil {
		c.news.merge(shown)
	}
	c.mu.Unlock()
	if t.sharing != nil && !t.sharing.pending.Load() {
		t.sharing.pending.Store(true)
	}
}

// fade brings the cell to now. The caller holds its lock. A clock that goes back changes
// nothing.
func (c *cell) fade(now time.Time) {
	if age := now.Sub(c.at); age > 0 {
		left := remains(age)
		c.known.scale(left)
		c.news.scale(left)
		c.mine *= left
		c.at = now
	}
}

// Flight is an attempt under way. The zero Flight is of nobody, and tells nothing.
type Flight struct {
	table   *Table
	cell    *cell
	began   time.Time
	stream  bool
	counted bool
}

// Begin counts an attempt as under way, until End.
func (t *Table) Begin(target Target, stream bool, now time.Time) Flight {
	c := t.cell(target)
	if c == nil {
		return Flight{}
	}
	c.inFlight.Add(1)
	return Flight{table: t, cell: c, began: now, stream: stream}
}

// Answered takes the time to the first output, once.
func (f *Flight) Answered(now time.Time) {
	if f.cell == nil || f.counted {
		return
	}
	shown := evidence{attempts: f.count()}
	shown.mode(f.stream).add(max(0, now.Sub(f.began).Seconds()))
	f.table.add(f.cell, now, shown)
}

// Failed counts the attempt as failed, before its first output or after it.
func (f *Flight) Failed(now time.Time) {
	if f.cell == nil {
		return
	}
	f.table.add(f.cell, now, evidence{attempts: f.count(), failures: 1})
}

// count is 1 the first time.
func (f *Flight) count() float64 {
	if f.counted {
		return 0
	}
	f.counted = true
	return 1
}

// End ends the attempt, once: it is no longer under way.
func (f *Flight) End(now time.Time) {
	c := f.cell
	if c == nil {
		return
	}
	f.cell = nil
	c.inFlight.Add(-1)
	f.table.add(c, now, evidence{busy: 1 - remains(now.Sub(f.began))})
}

// View is the table at one instant. The zero View knows nothing.
type View struct {
	table *Table
	now   time.Time
}

// View returns what is known at now. It costs nothing until it is asked.
func (t *Table) View(now time.Time) View { return View{t, now} }

// Load is what is known of a target; the zero Load is nothing.
func (v View) Load(target Target, stream bool) Load {
	if v.table == nil {
		return Load{}
	}
	c := (*v.table.cells.Load())[target]
	if c == nil {
		return Load{}
	}
	c.mu.Lock()
	known, at, mine := c.known, c.at, c.mine
	c.mu.Unlock()
	left := 1.0
	if age := v.now.Sub(at); age > 0 {
		left = remains(age)
	}
	l := known.load(stream, left)
	l.InFlight = float64(c.inFlight.Load()) + max(0, (known.busy-mine)*left)
	return l
}
