package virtual_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/mem"
	"switchboard/internal/virtual"
)

// Others see a change within ten seconds, and look at most every nine.
func TestInstancesSeeAChangeWithinTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loads atomic.Int64
		cell := &mem.Cell{Fault: func(op string) (bool, error) {
			if op == mem.OpLoad {
				loads.Add(1)
			}
			return true, nil
		}}
		one, two := newInstance(t, cell), newInstance(t, cell)
		two.Refresh(t.Context(), time.Now())
		one.saves(`{"source":"smart","target_model":"B/b"}`)
		one.want("smart", "B/b") // here at once
		before := loads.Load()
		for range 80 {
			time.Sleep(100 * time.Millisecond)
			two.Refresh(t.Context(), time.Now())
		}
		if n := loads.Load() - before; n != 0 {
			t.Errorf("%d looks in 8 s, want none", n)
		}
		two.want("smart", "-")
		time.Sleep(2 * time.Second)
		two.Refresh(t.Context(), time.Now())
		two.want("smart", "B/b")
		if n := loads.Load() - before; n != 1 {
			t.Errorf("%d looks in 10 s, want 1", n)
		}
	})
}

// After a rest everybody who asks waits for the one who reads: nobody routes by what was
// true an hour ago.
func TestParallelCallersWaitForTheOneWhoReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		cell := &mem.Cell{Fault: func(op string) (bool, error) {
			if op == mem.OpLoad && slow.Load() {
				time.Sleep(100 * time.Millisecond)
			}
			return true, nil
		}}
		one, two := newInstance(t, cell), newInstance(t, cell)
		two.Refresh(t.Context(), time.Now())
		one.saves(`{"source":"smart","target_model":"B/b"}`)
		time.Sleep(time.Hour)
		slow.Store(true)
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				two.Refresh(t.Context(), time.Now())
				two.want("smart", "B/b")
			})
		}
		group.Wait()
	})
}

// A cell that is down keeps nobody waiting but the one who asks, once a second.
func TestCellIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		cell := &mem.Cell{Fault: func(string) (bool, error) {
			if down.Load() {
				time.Sleep(time.Second / 2)
				return false, errors.New("down")
			}
			return true, nil
		}}
		i := newInstance(t, cell)
		i.saves(`{"source":"smart","target_model":"B/b"}`)
		down.Store(true)
		i.Refresh(t.Context(), time.Now())
		for range 20 {
			time.Sleep(300 * time.Millisecond)
			i.want("smart", "B/b")
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			var group sync.WaitGroup
			group.Go(func() { i.Refresh(t.Context(), time.Now()) })
			group.Go(func() { i.Refresh(ctx, time.Now()) })
			group.Wait()
			cancel()
			if took := time.Since(began); took > time.Second/2 {
				t.Fatalf("waited %v", took)
			}
		}
		if _, err := i.List(t.Context()); err == nil {
			t.Error("List = nil, want the cell's error")
		}
		down.Store(false)
		time.Sleep(time.Second)
		i.Refresh(t.Context(), time.Now())
		i.want("smart", "B/b")
	})
}

// Two editors of one listing: the second gets the first one's.
func TestSecondEditorIsTold(t *testing.T) {
	cell := &mem.Cell{}
	one, two := newInstance(t, cell), newInstance(t, cell)
	l := one.saves(`{"source":"smart","target_model":"B/b"}`)
	edit := func(i *instance, target string) (virtual.Listing, error) {
		return i.Save(t.Context(), change(t, fmt.Sprintf(`{"source":"smart","target_model":%q,"version":%d}`, target, l.Version)))
	}
	if _, err := edit(one, "C/c"); err != nil {
		t.Fatal(err)
	}
	got, err := edit(two, "A/a")
	if smart, _ := got.Find("smart"); !errors.Is(err, virtual.ErrStale) || got.Version != 2 || smart.Targets[0].Model != "C/c" {
		t.Errorf("second = %+v, %v, want ErrStale with the first one's", got, err)
	}
	two.want("smart", "C/c")
}

// Of many editors of one version one wins; of any version, all are kept.
func TestParallelEditors(t *testing.T) {
	cell := &mem.Cell{}
	const editors = 12
	var won atomic.Int64
	var group sync.WaitGroup
	for n := range editors {
		i := newInstance(t, cell)
		group.Go(func() {
			_, err := i.Save(t.Context(), change(t, fmt.Sprintf(`{"source":"v%d","target_model":"m","version":0}`, n)))
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, virtual.ErrStale):
				t.Errorf("editor %d: %v", n, err)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 {
		t.Errorf("%d editors won, want 1", won.Load())
	}
	i := newInstance(t, cell)
	for n := range editors {
		group.Go(func() {
			if _, err := i.Save(t.Context(), change(t, fmt.Sprintf(`{"source":"w%d","target_model":"m"}`, n))); err != nil {
				t.Errorf("editor %d: %v", n, err)
			}
		})
	}
	group.Wait()
	if l, err := i.List(t.Context()); err != nil || len(l.Models) != editors+2 {
		t.Errorf("List = %d models, %v, want %d", len(l.Models), err, editors+2)
	}
}

// A Swap whose answer got lost was made, or is made again: never an error, never twice.
func TestLostAnswerOfASave(t *testing.T) {
	for _, applied := range []bool{true, false} {
		failed := false
		i := newInstance(t, &mem.Cell{Fault: func(op string) (bool, error) {
			if op == mem.OpSwap && !failed {
				failed = true
				return applied, errors.New("lost")
			}
			return true, nil
		}})
		if l := i.saves(`{"source":"smart","target_model":"B/b"}`); l.Version != 1 {
			t.Errorf("applied %v: version %d, want 1", applied, l.Version)
		}
	}
}
