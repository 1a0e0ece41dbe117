package signal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/mem"
	"switchboard/internal/shared"
)

// fleet is some instances that share one cell.
type fleet struct {
	t     *testing.T
	cell  *mem.Cell
	calls map[string]int // by mem.OpLoad, mem.OpSwap
	fault error
	log   bytes.Buffer
	mu    sync.Mutex
	all   []*Table
}

func newFleet(t *testing.T, instances int) *fleet {
	f := &fleet{t: t, calls: map[string]int{}}
	f.cell = &mem.Cell{Fault: func(op string) (bool, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.calls[op]++
		return f.fault == nil, f.fault
	}}
	for range instances {
		f.all = append(f.all, NewShared(f.cell, slog.New(slog.NewJSONHandler(&f.log, nil))))
	}
	return f
}

// sees plays n answers of a target that take this long, at an instance.
func (f *fleet) sees(instance, n int, target Target, took time.Duration) {
	table := f.all[instance]
	var flights []Flight
	for range n {
		flights = append(flights, table.Begin(target, true, time.Now()))
	}
	time.Sleep(took)
	for i := range flights {
		flights[i].Answered(time.Now())
		flights[i].End(time.Now())
	}
}

func (f *fleet) share(instance int)   { f.all[instance].Share(f.t.Context(), time.Now()) }
func (f *fleet) refresh(instance int) { f.all[instance].Refresh(f.t.Context(), time.Now()) }
func (f *fleet) load(instance int, target Target) Load {
	return f.all[instance].View(time.Now()).Load(target, true)
}

// What one instance has seen, the others know after their next look.
func TestInstancesLearnFromEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		f.sees(0, 4, a, time.Second)
		f.sees(1, 4, a, 3*time.Second)
		f.sees(1, 2, b, 500*time.Millisecond)
		f.share(0)
		f.share(1)
		f.refresh(2)
		l := f.load(2, a)
		if l.TTFB < 2.5 || l.TTFB > 3.1 || l.Confidence != 1 { // the latest peak, of instance 1
			t.Errorf("A = %+v, want a peak of 3 s", l)
		}
		if l.InFlight <= 0 {
			t.Errorf("A = %+v, want the load of others on average", l)
		}
		if got := f.load(2, b); got.TTFB < 0.45 || got.TTFB > 0.55 {
			t.Errorf("B = %+v, want 0.5 s", got)
		}
		// Minutes later the peak has gone, and the mean of all of it is left: about two seconds.
		time.Sleep(4 * time.Minute)
		if got := f.load(2, a); got.TTFB < 1.9 || got.TTFB > 2.2 || got.Confidence > 0.2 {
			t.Errorf("A = %+v, want 2 s, and no more certain than that", got)
		}
	})
}

// Instances that tell everything know, all of them, what one would that had seen all; and
// nothing is told twice.
func TestSharedIsTheSum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4)
		one := NewTable()
		for round := range 30 {
			for i := range f.all {
				if (round+i)%3 == 0 {
					continue
				}
				took := time.Duration(100*(i+1)+10*round) * time.Millisecond
				flight := one.Begin(a, true, time.Now())
				f.sees(i, 1, a, took)
				flight.Answered(time.Now())
				flight.End(time.Now())
				if round%2 == 0 {
					f.share(i)
				}
				f.refresh((i + 1) % 4)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(every)
		for i := range f.all {
			f.share(i)
		}
		time.Sleep(fresh)
		now := time.Now()
		want := one.View(now).Load(a, true)
		for i := range f.all {
			f.refresh(i)
			got := f.load(i, a)
			got.InFlight = want.InFlight
			for _, pair := range [][2]float64{{got.TTFB, want.TTFB}, {got.Confidence, want.Confidence}, {got.Failures, want.Failures}} {
				if d := pair[0] - pair[1]; d > 0.002 || d < -0.002 {
					t.Errorf("instance %d knows %+v, want %+v", i, got, want)
					break
				}
			}
		}
	})
}

// Whoever has nothing to tell writes nothing, and nobody writes or reads more often than it
// may, however many ask.
func TestCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1)
		for range 60 {
			if table := f.all[0]; table.Pending(time.Now()) {
				f.share(0)
			}
			f.refresh(0)
			f.refresh(0)
			time.Sleep(time.Second)
		}
		if f.calls[mem.OpSwap] != 0 || f.calls[mem.OpLoad] != 30 {
			t.Errorf("%v in a minute with no news, want 30 loads and no swap", f.calls)
		}
		clear(f.calls)
		for range 60 {
			f.sees(0, 5, a, time.Second)
			if f.all[0].Pending(time.Now()) {
				f.share(0)
			}
		}
		if f.calls[mem.OpSwap] != 12 || f.calls[mem.OpLoad] != 0 {
			t.Errorf("%v in a minute of news, want 12 swaps and no load", f.calls)
		}
	})
}

// Instances that tell at the same time lose races, and nothing that was told.
func TestRacesLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		for i := range f.all {
			f.refresh(i)
			f.sees(i, 2, Target{"P", fmt.Sprint(i)}, time.Second)
		}
		var group sync.WaitGroup
		for i := range f.all {
			group.Go(func() { f.share(i) })
		}
		group.Wait()
		reader := NewShared(f.cell, slog.New(slog.DiscardHandler))
		reader.Refresh(t.Context(), time.Now())
		for i := range f.all {
			if l := reader.View(time.Now()).Load(Target{"P", fmt.Sprint(i)}, true); l.Confidence < 0.9 {
				t.Errorf("what instance %d told is lost: %+v", i, l)
			}
		}
		if f.log.Len() > 0 {
			t.Errorf("log: %s", &f.log)
		}
	})
}

// A cell that is down costs nothing but a line in the log; what was seen is told later, once.
func TestCellThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		f.fault = errors.New("throttled")
		f.sees(0, 3, a, time.Second)
		f.refresh(0)
		f.share(0)
		if l := f.load(0, a); l.TTFB != 1 || !strings.Contains(f.log.String(), "throttled") {
			t.Errorf("here: %+v, log %s", l, &f.log)
		}
		f.fault = nil
		if f.all[0].Pending(time.Now()) {
			t.Error("Pending at once, want that it waits for its turn")
		}
		time.Sleep(every)
		if !f.all[0].Pending(time.Now()) {
			t.Error("not Pending, want that it tells what it could not")
		}
		f.share(0)
		f.refresh(1)
		if l := f.load(1, a); l.TTFB < 0.99 || l.TTFB > 1.01 {
			t.Errorf("elsewhere: %+v, want 1 s", l)
		}
		left := f.all[1].sharing.base.of(a, time.Now()).attempts
		time.Sleep(every)
		f.share(0)
		time.Sleep(fresh)
		f.refresh(1)
		if now := f.all[1].sharing.base.of(a, time.Now()).attempts; now > left {
			t.Errorf("attempts grew from %v to %v without news", left, now)
		}
	})
}

// A document that nobody can read is logged, counts as none, and is written over.
func TestMalformedDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		if err := f.cell.Swap(t.Context(), []byte("{nonsense"), 0, time.Time{}); err != nil {
			t.Fatal(err)
		}
		f.refresh(0)
		if !strings.Contains(f.log.String(), "malformed shared signals") {
			t.Errorf("log: %s", &f.log)
		}
		f.sees(0, 1, a, time.Second)
		f.share(0)
		f.refresh(1)
		if l := f.load(1, a); l.TTFB == 0 {
			t.Error("nothing was learned over a malformed document")
		}
	})
}

// behindCell answers Loads with what was there before, as a read at half price may.
type behindCell struct {
	shared.Cell
	data    []byte
	version int64
}

func (c *behindCell) Load(context.Context) ([]byte, int64, error) { return c.data, c.version, nil }

// A read that is behind our own write does not undo it.
func TestReadBehindOwnWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := &behindCell{Cell: &mem.Cell{}}
		table := NewShared(old, slog.New(slog.DiscardHandler))
		flight := table.Begin(a, true, time.Now())
		time.Sleep(time.Second)
		flight.Answered(time.Now())
		table.Share(t.Context(), time.Now())
		table.Refresh(t.Context(), time.Now())
		if l := table.View(time.Now()).Load(a, true); l.TTFB != 1 {
			t.Errorf("after a late read: %+v, want 1 s", l)
		}
	})
}
