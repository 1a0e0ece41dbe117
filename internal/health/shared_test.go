package health_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchboard/internal/health"
	"switchboard/internal/mem"
	"switchboard/internal/shared"
)

const lease = time.Minute

func start() time.Time { return time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC) }

// instance is a board of one process over the shared cell.
type instance struct{ *health.Shared }

func newInstance(cell shared.Cell, keys health.Keys) instance {
	return instance{health.NewShared(health.Defaults(), cell, keys, slog.New(slog.DiscardHandler))}
}

func prints() health.Keys {
	return health.Keys{"A": {"k1": "print-1", "k2": "print-2"}, "B": {"k1": "print-3"}}
}

func (i instance) reports(o health.Outcome, now time.Time) {
	i.Report(o, now)
	i.Share(context.Background(), now)
}

// sees is the status after a refresh that is due.
func (i instance) sees(o health.Outcome, now time.Time) health.Status {
	i.Refresh(context.Background(), now)
	return i.View(now).Status(o.Provider, o.KeyID, o.Model)
}

func outcome(class health.Class) health.Outcome {
	return health.Outcome{Provider: "A", KeyID: "k1", Model: "m1", Class: class}
}

func TestOthersSeeADegradationWithinASecond(t *testing.T) {
	cell := &mem.Cell{}
	one, two := newInstance(cell, prints()), newInstance(cell, prints())
	now := start()
	two.Refresh(t.Context(), now)
	one.reports(outcome(health.RateLimited), now)
	if got := two.sees(outcome(""), now.Add(999*time.Millisecond)); got.State != health.Healthy {
		t.Errorf("before it was due: %+v, want the cached look", got)
	}
	want := health.Status{State: health.Degraded, Class: health.RateLimited, Until: now.Add(time.Minute), Scope: health.Scope{Provider: "A", KeyID: "k1", Model: "m1"}}
	if got := two.sees(outcome(""), now.Add(time.Second)); got != want {
		t.Errorf("a second later: %+v, want %+v", got, want)
	}
	later := newInstance(cell, prints())
	if got := later.sees(outcome(""), now); got != want {
		t.Errorf("a new instance: %+v, want %+v", got, want)
	}
}

func TestFailuresInARowAreCountedOverAllInstances(t *testing.T) {
	cell := &mem.Cell{}
	now := start()
	var last instance
	for n := range 3 {
		last = newInstance(cell, prints())
		last.sees(outcome(""), now)
		if n < 2 {
			last.reports(outcome(health.ServerError), now)
		}
	}
	last.Report(outcome(health.ServerError), now)
	if got := last.View(now).Status("A", "k1", "m1").State; got != health.Degraded {
		t.Errorf("after the third of three instances: %v, want Degraded", got)
	}
	last.Share(t.Context(), now)
	ok := newInstance(cell, prints())
	if ok.sees(outcome(""), now); ok.View(now).Quiet() {
		t.Error("a new instance sees nothing")
	}
	ok.reports(outcome(health.OK), now)
	if got := last.sees(outcome(""), now.Add(time.Second)); got.State != health.Healthy {
		t.Errorf("after another's success: %+v, want healthy", got)
	}
}

// What two instances learn at the same time is kept of both.
func TestParallelReportsAreAllKept(t *testing.T) {
	cell := &mem.Cell{}
	now := start()
	var group sync.WaitGroup
	for n := range 4 {
		board := newInstance(cell, prints())
		board.Refresh(t.Context(), now)
		group.Go(func() {
			board.Report(health.Outcome{Provider: "A", KeyID: "k1", Model: fmt.Sprint("m", n), Class: health.RateLimited}, now)
			board.Share(context.Background(), now)
		})
	}
	group.Wait()
	board := newInstance(cell, prints())
	board.Refresh(t.Context(), now)
	if got := board.List(now); len(got) != 4 {
		t.Errorf("List = %v, want all four", got)
	}
}

func TestOneInstanceProbes(t *testing.T) {
	cell := &mem.Cell{}
	now := start()
	newInstance(cell, prints()).reports(outcome(health.Overloaded), now)
	now = now.Add(30 * time.Second)
	boards := make([]instance, 4)
	for n := range boards {
		boards[n] = newInstance(cell, prints())
		if got := boards[n].sees(outcome(""), now).State; got != health.Trial {
			t.Fatalf("State = %v, want Trial", got)
		}
	}
	var won atomic.Int32
	var group sync.WaitGroup
	for n := range 200 {
		group.Go(func() {
			if boards[n%4].Probe(context.Background(), "A", "k1", "m1", now, lease) {
				won.Add(1)
			}
		})
	}
	group.Wait()
	if got := won.Load(); got != 1 {
		t.Errorf("%d of 200 trials were granted, want 1", got)
	}
	for n, board := range boards {
		if got := board.sees(outcome(""), now.Add(time.Second)).State; got != health.Degraded {
			t.Errorf("instance %d sees %v during the trial, want Degraded", n, got)
		}
	}
	if !boards[3].Probe(t.Context(), "A", "k1", "m1", now.Add(lease), lease) {
		t.Error("no trial after the lease ran out")
	}
}

// A trial that another instance has won already leaves the target healthy.
func TestProbeOfWhatHasRecovered(t *testing.T) {
	cell := &mem.Cell{}
	now := start()
	one, two := newInstance(cell, prints()), newInstance(cell, prints())
	one.reports(outcome(health.Overloaded), now)
	two.sees(outcome(""), now)
	now = now.Add(30 * time.Second)
	one.Probe(t.Context(), "A", "k1", "m1", now, lease)
	one.reports(outcome(health.OK), now)
	if !two.Probe(t.Context(), "A", "k1", "m1", now, lease) || !two.View(now).Quiet() {
		t.Error("Probe after another's successful trial: want true, and nothing on the board")
	}
}

// A degradation follows its key through deployments, and ends when the key's text changes.
func TestDegradationsFollowTheirKeys(t *testing.T) {
	cell := &mem.Cell{}
	now := start()
	newInstance(cell, prints()).reports(outcome(health.Unauthorized), now)
	tests := []struct {
		name string
		keys map[string]string
		want string // the id that is degraded
	}{
		{"same", map[string]string{"k1": "print-1", "k2": "print-2"}, "k1"},
		{"reordered", map[string]string{"k1": "print-2", "k2": "print-1"}, "k2"},
		{"replaced", map[string]string{"k1": "print-9", "k2": "print-2"}, ""},
		{"removed", map[string]string{"k1": "print-2"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			board := newInstance(cell, health.Keys{"A": tt.keys})
			board.Refresh(t.Context(), now)
			for id := range tt.keys {
				want := health.Healthy
				if id == tt.want {
					want = health.Degraded
				}
				if got := board.View(now.Add(10000*time.Hour)).Status("A", id, "m1").State; got != want {
					t.Errorf("%s is %v, want %v", id, got, want)
				}
			}
		})
	}
}

func TestCellDown(t *testing.T) {
	down := errors.New("down")
	fault := true
	cell := &mem.Cell{Fault: func(string) (bool, error) {
		if fault {
			return false, down
		}
		return true, nil
	}}
	now := start()
	one, two := newInstance(cell, prints()), newInstance(cell, prints())
	for range 1000 {
		one.reports(outcome(health.Overloaded), now)
	}
	if got := one.sees(outcome(""), now).State; got != health.Degraded {
		t.Errorf("what is known here = %v, want Degraded", got)
	}
	now = now.Add(30 * time.Second)
	if !one.Probe(t.Context(), "A", "k1", "m1", now, lease) || one.Probe(t.Context(), "A", "k1", "m1", now, lease) {
		t.Error("without the cell an instance gives its own lease, once")
	}
	fault = false
	one.Report(outcome(health.NoCredit), now)
	one.Share(t.Context(), now)
	if got := two.sees(outcome(""), now); got.Class != health.NoCredit {
		t.Errorf("after the cell came back the other sees %+v, want no credit", got)
	}
	if one.Pending() {
		t.Error("news are left after Share")
	}
}

// A lost answer to an applied write does no harm, and a document that is none is replaced.
func TestLostAndMalformed(t *testing.T) {
	lose := true
	cell := &mem.Cell{Fault: func(op string) (bool, error) {
		if op == mem.OpSwap && lose {
			lose = false
			return true, errors.New("lost")
		}
		return true, nil
	}}
	now := start()
	one, two := newInstance(cell, prints()), newInstance(cell, prints())
	for range 2 {
		one.reports(outcome(health.ServerError), now)
	}
	one.reports(outcome(health.RateLimited), now)
	if got := two.sees(outcome(""), now).Class; got != health.RateLimited {
		t.Errorf("the other sees %q, want rate_limited", got)
	}

	for _, text := range []string{"{", `[]`, `{"providers":{"A":{"standings":[{"until":"x"}]}}}`, "null"} {
		cell := &mem.Cell{}
		if err := cell.Swap(t.Context(), []byte(text), 0, now); err != nil {
			t.Fatal(err)
		}
		board := newInstance(cell, prints())
		board.Refresh(t.Context(), now)
		if !board.View(now).Quiet() {
			t.Errorf("%s: not read as nothing", text)
		}
		board.reports(outcome(health.Overloaded), now)
		if got := newInstance(cell, prints()).sees(outcome(""), now).Class; got != health.Overloaded {
			t.Errorf("%s: not replaced", text)
		}
	}
}

// An instance that knows a document of many versions takes over the next one, which begins at
// 1 again: somebody deleted the last, it expired, or it was broken and has been replaced.
func TestDocumentBegunAnewIsTakenOver(t *testing.T) {
	cell := &replaced{Cell: &mem.Cell{}}
	one, two := newInstance(cell, prints()), newInstance(cell, prints())
	now := start()
	for range 3 {
		one.reports(outcome(health.ServerError), now)
		now = now.Add(time.Minute)
	}
	two.sees(outcome(""), now)
	cell.Cell = &mem.Cell{}

	now = now.Add(time.Second)
	if got := one.sees(outcome(""), now); got.State != health.Healthy {
		t.Errorf("after it was deleted: %+v, want healthy", got)
	}
	other := health.Outcome{Provider: "B", KeyID: "k1", Model: "m1", Class: health.NoCredit}
	one.reports(other, now)
	now = now.Add(time.Second)
	if got := two.sees(other, now); got.Class != health.NoCredit {
		t.Errorf("the other sees %+v of the new document, want no_credit", got)
	}
}

// A look that was under way while this instance wrote may be behind, and takes nothing back.
func TestLookBehindOwnWriteIsLeft(t *testing.T) {
	now := start()
	old := &mem.Cell{}
	cell := &replaced{Cell: old}
	one := newInstance(cell, prints())
	one.reports(outcome(health.Overloaded), now)
	cell.Cell = &mem.Cell{} // as it was before
	if got := one.sees(outcome(""), now.Add(999*time.Millisecond)); got.Class != health.Overloaded {
		t.Errorf("sees %+v, want what it has written", got)
	}
}

// replaced is a document in whose place another can be put.
type replaced struct{ *mem.Cell }

// Nothing is read or written while nothing is degraded and the last look is fresh.
func TestQuietBoardAsksNobody(t *testing.T) {
	var calls atomic.Int32
	cell := &mem.Cell{Fault: func(string) (bool, error) { calls.Add(1); return true, nil }}
	board := newInstance(cell, prints())
	now := start()
	for n := range 100 {
		at := now.Add(time.Duration(n) * 9 * time.Millisecond)
		board.Refresh(t.Context(), at)
		board.Report(outcome(health.OK), at)
		board.Report(outcome(health.Request), at)
		if board.Pending() {
			t.Fatal("a success on a quiet board is news")
		}
		board.Share(t.Context(), at)
	}
	if got := calls.Load(); got != 1 {
		t.Errorf("%d calls in 0.9 s, want 1", got)
	}
}

// The document that every instance reads stays small, whatever clients name as models.
func TestDocumentIsBounded(t *testing.T) {
	cell := &mem.Cell{}
	board := newInstance(cell, prints())
	now := start()
	for n := range 2000 {
		board.Report(health.Outcome{Provider: "A", KeyID: "k1", Model: fmt.Sprint("model-", n), Class: health.ModelNotFound}, now)
	}
	board.reports(outcome(health.Unauthorized), now)
	data, _, err := cell.Load(t.Context())
	if err != nil || !json.Valid(data) || len(data) > 32<<10 {
		t.Errorf("%d bytes, %v; want at most 32 KiB", len(data), err)
	}
	if got := newInstance(cell, prints()).sees(outcome(""), now).Class; got != health.Unauthorized {
		t.Errorf("what ends last is left out: %q", got)
	}
}

// Over one instance, shared or not, a board is the same board: same reports, same answers.
func TestSharedBoardsAgreeWithMemory(t *testing.T) {
	classes := []health.Class{
		health.OK, health.RateLimited, health.NoCredit, health.Unauthorized, health.Overloaded, health.ServerError,
		health.Connection, health.Timeout, health.ModelNotFound, health.Request, health.ClientGone,
	}
	rapid.Check(t, func(t *rapid.T) {
		cell := &mem.Cell{}
		memory := health.NewBoard(health.Defaults())
		instances := []instance{newInstance(cell, prints()), newInstance(cell, prints()), newInstance(cell, prints())}
		now := start()
		pick := func(list ...string) string { return rapid.SampledFrom(list).Draw(t, "name") }
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(1, 200).Draw(t, "seconds")) * time.Second)
			i := instances[rapid.IntRange(0, 2).Draw(t, "instance")]
			o := health.Outcome{
				Provider: "A", KeyID: pick("k1", "k2"), Model: pick("m1", "m2"),
				Class:      rapid.SampledFrom(classes).Draw(t, "class"),
				RetryAfter: time.Duration(rapid.IntRange(0, 90).Draw(t, "asked")) * time.Second,
			}
			got, want := i.sees(o, now), memory.View(now).Status(o.Provider, o.KeyID, o.Model)
			if got != want {
				t.Fatalf("Status = %+v, want %+v", got, want)
			}
			if got.State == health.Trial {
				one := i.Probe(context.Background(), o.Provider, o.KeyID, o.Model, now, lease)
				two := memory.Probe(context.Background(), o.Provider, o.KeyID, o.Model, now, lease)
				if one != two {
					t.Fatalf("Probe = %v, want %v", one, two)
				}
			}
			memory.Report(o, now)
			i.reports(o, now)
		}
	})
}
