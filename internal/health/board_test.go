package health

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const lease = time.Minute

// degradedProvider is a board on which A has run out its degradation and is to be tried.
func degradedProvider() (*Memory, time.Time) {
	b := NewBoard(Defaults())
	return b, play(b, repeated(3, 0, fail(ServerError))...).Add(30 * time.Second)
}

func TestTrialHasOneWinner(t *testing.T) {
	b, now := degradedProvider()
	var wins atomic.Int32
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			// Whatever key and model they come with: the provider is what is tried.
			if b.Probe(context.Background(), "A", fmt.Sprint("k", i%3), fmt.Sprint("m", i%2), now, lease) {
				wins.Add(1)
			}
		})
	}
	group.Wait()
	if got := wins.Load(); got != 1 {
		t.Errorf("%d of 100 Probe calls won, want 1", got)
	}
}

func TestTrialKeepsOthersAway(t *testing.T) {
	b, now := degradedProvider()
	if got := b.View(now).Status("A", "k2", "m2").State; got != Trial {
		t.Fatalf("State before the trial = %v, want Trial", got)
	}
	if !b.Probe(context.Background(), "A", "k1", "m1", now, lease) {
		t.Fatal("Probe = false, want true")
	}
	want := Status{Degraded, ServerError, now.Add(lease), Scope{Provider: "A"}}
	if got := b.View(now).Status("A", "k2", "m2"); got != want {
		t.Errorf("Status during the trial = %+v, want %+v", got, want)
	}
	if b.Probe(context.Background(), "A", "k2", "m1", now.Add(lease-1), lease) {
		t.Error("Probe during the trial = true, want false")
	}
	// The trial is never reported: it ends by itself.
	if !b.Probe(context.Background(), "A", "k2", "m1", now.Add(lease), lease) {
		t.Error("Probe after the lease = false, want true")
	}
}

func TestTrialEnds(t *testing.T) {
	tests := []struct {
		class Class
		want  State
		wait  time.Duration
	}{
		{OK, Healthy, 0},
		{Request, Healthy, 0},
		{ClientGone, Trial, 0}, // proves nothing: the next one tries
		{ServerError, Degraded, time.Minute},
		{Connection, Degraded, time.Minute},
		{Timeout, Degraded, 20 * time.Second},
	}
	for _, tt := range tests {
		t.Run(string(tt.class), func(t *testing.T) {
			b, now := degradedProvider()
			b.Probe(context.Background(), "A", "k1", "m1", now, lease)
			b.Report(fail(tt.class), now)
			got := b.View(now).Status("A", "k2", "m2")
			if got.State != tt.want {
				t.Fatalf("State = %v, want %v", got.State, tt.want)
			}
			if tt.want == Degraded && !got.Until.Equal(now.Add(tt.wait)) {
				t.Errorf("Until = %v, want %v", got.Until, now.Add(tt.wait))
			}
			if won := b.Probe(context.Background(), "A", "k1", "m1", now, lease); won != (tt.want != Degraded) {
				t.Errorf("Probe = %v afterwards", won)
			}
		})
	}
}

// A trial that meets another trouble than the one it was about leaves that to the next.
func TestTrialMeetsOtherTrouble(t *testing.T) {
	b, now := degradedProvider()
	b.Probe(context.Background(), "A", "k1", "m1", now, lease)
	b.Report(fail(RateLimited), now)
	view := b.View(now)
	if got := view.Status("A", "k1", "m1"); got.State != Degraded || got.Class != RateLimited {
		t.Errorf("Status of the limited key = %+v, want degraded, rate limited", got)
	}
	if got := view.Status("A", "k2", "m1").State; got != Trial {
		t.Errorf("State of the other key = %v, want Trial", got)
	}
	if !b.Probe(context.Background(), "A", "k2", "m1", now, lease) {
		t.Error("Probe with the other key = false, want true")
	}
}

func TestProbeOfHealthyAndDegraded(t *testing.T) {
	b := NewBoard(Defaults())
	if !b.Probe(context.Background(), "A", "k1", "m1", start(), lease) || !b.View(start()).Quiet() {
		t.Error("Probe of a healthy target: want true, and nothing on the board")
	}
	b.Report(fail(Unauthorized), start())
	if b.Probe(context.Background(), "A", "k1", "m1", start().Add(1000*time.Hour), lease) {
		t.Error("Probe of a refused key = true, want false")
	}
}

// What covers a target longest decides, and a trial of one scope is none while another is
// degraded.
func TestWorstDecides(t *testing.T) {
	b, now := degradedProvider()
	b.Report(asked(RateLimited, 10*time.Second), now)
	b.Report(asked(Overloaded, 20*time.Second), now)
	want := Status{Degraded, Overloaded, now.Add(20 * time.Second), Scope{Provider: "A", Model: "m1"}}
	if got := b.View(now).Status("A", "k1", "m1"); got != want {
		t.Errorf("Status = %+v, want %+v", got, want)
	}
	b.Report(fail(Unauthorized), now)
	want = Status{Degraded, Unauthorized, time.Time{}, Scope{Provider: "A", KeyID: "k1"}}
	if got := b.View(now).Status("A", "k1", "m1"); got != want {
		t.Errorf("Status = %+v, want %+v", got, want)
	}
}

func TestViewIsImmutable(t *testing.T) {
	b := NewBoard(Defaults())
	before := b.View(start())
	b.Report(fail(NoCredit), start())
	during := b.View(start())
	b.Report(fail(OK), start())
	if !before.Quiet() || before.Status("A", "k1", "m1").State != Healthy {
		t.Error("an older view has changed with a failure")
	}
	if during.Quiet() || during.Status("A", "k1", "m1").State != Degraded {
		t.Error("an older view has changed with a success")
	}
}

func TestList(t *testing.T) {
	b := NewBoard(Defaults())
	if got := b.List(start()); len(got) != 0 {
		t.Errorf("List of a quiet board = %v, want none", got)
	}
	for _, o := range []Outcome{
		{Provider: "B", KeyID: "k1", Model: "m1", Class: Unauthorized},
		{Provider: "A", KeyID: "k2", Model: "m1", Class: RateLimited},
		{Provider: "A", KeyID: "k1", Model: "m2", Class: Overloaded},
		{Provider: "A", KeyID: "k1", Model: "m1", Class: RateLimited, RetryAfter: time.Second},
	} {
		b.Report(o, start())
	}
	now := start().Add(45 * time.Second)
	want := []Status{
		{Trial, Overloaded, start().Add(30 * time.Second), Scope{"A", "", "m2"}},
		{Trial, RateLimited, start().Add(time.Second), Scope{"A", "k1", "m1"}},
		{Degraded, RateLimited, start().Add(time.Minute), Scope{"A", "k2", "m1"}},
		{Degraded, Unauthorized, time.Time{}, Scope{"B", "k1", ""}},
	}
	if diff := cmp.Diff(want, b.List(now)); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
}

// Whatever happened before: times only run out, a success leaves its own target usable
// unless a rate limit runs, and at most one of two trials wins.
func TestBoardInvariants(t *testing.T) {
	classes := []Class{
		OK, RateLimited, NoCredit, Unauthorized, Overloaded, ServerError, Connection, Timeout,
		ModelNotFound, Request, ClientGone,
	}
	rapid.Check(t, func(t *rapid.T) {
		b, now := NewBoard(Defaults()), start()
		pick := func(list ...string) string { return rapid.SampledFrom(list).Draw(t, "name") }
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "seconds")) * time.Second)
			o := Outcome{
				Provider: pick("A", "B"), KeyID: pick("", "k1", "k2"), Model: pick("m1", "m2"),
				Class:      rapid.SampledFrom(classes).Draw(t, "class"),
				RetryAfter: time.Duration(rapid.IntRange(0, 90).Draw(t, "asked")) * time.Second,
			}
			status := func() Status { return b.View(now).Status(o.Provider, o.KeyID, o.Model) }
			if status().State == Trial {
				first, second := b.Probe(context.Background(), o.Provider, o.KeyID, o.Model, now, lease), b.Probe(context.Background(), o.Provider, o.KeyID, o.Model, now, lease)
				if !first || second {
					t.Fatalf("two trials: Probe = %v, %v, want true, false", first, second)
				}
			}
			b.Report(o, now)
			got := status()
			switch {
			case o.Class == OK && got.State != Healthy && got.Class != RateLimited:
				t.Fatalf("after a success: Status = %+v", got)
			case got.State == Degraded && got.Class != Unauthorized && (!got.Until.After(now) || got.Until.Sub(now) > 24*time.Hour):
				t.Fatalf("Status = %+v at %v", got, now)
			case got.State != Degraded && scopeOfAny(o) && o.RetryAfter == 0:
				t.Fatalf("after %s: Status = %+v, want degraded", o.Class, got)
			}
			list, quiet := b.List(now), b.View(now).Quiet()
			if quiet != (len(list) == 0) {
				t.Fatalf("Quiet = %v, List = %v", quiet, list)
			}
		}
	})
}

func scopeOfAny(o Outcome) bool {
	_, ok := scopeOf(o)
	return ok
}

func TestBoardUnderConcurrency(t *testing.T) {
	b, now := degradedProvider()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 200 {
				at := now.Add(time.Duration(j) * time.Second)
				o := Outcome{Provider: fmt.Sprint("P", i%4), KeyID: "k", Model: "m", Class: Overloaded}
				if j%2 == 0 {
					o.Class = OK
				}
				b.Report(o, at)
				b.View(at).Status(o.Provider, "k", "m")
				b.Probe(context.Background(), o.Provider, "k", "m", at, lease)
				b.List(at)
			}
		})
	}
	group.Wait()
	if got := b.View(now).Status("A", "k1", "m1").Class; got != ServerError {
		t.Errorf("A reads as %q, want %q: another provider's report was written over it", got, ServerError)
	}
}

func TestQuietBoardAllocatesNothing(t *testing.T) {
	b := NewBoard(Defaults())
	now, ok := start(), fail(OK)
	got := testing.AllocsPerRun(100, func() {
		if view := b.View(now); !view.Quiet() {
			t.Error("Quiet = false")
		}
		b.Report(ok, now)
	})
	if got != 0 {
		t.Errorf("View and Report of a success = %v allocations, want 0", got)
	}
}

// Compare with benchstat: go test -bench . -count 10 ./internal/health > new.txt; benchstat old.txt new.txt
func BenchmarkQuietViewAndSuccess(b *testing.B) {
	board, now, ok := NewBoard(Defaults()), start(), fail(OK)
	b.ReportAllocs()
	for b.Loop() {
		board.View(now).Quiet()
		board.Report(ok, now)
	}
}

func BenchmarkStatusWithTrouble(b *testing.B) {
	board, now := degradedProvider()
	b.ReportAllocs()
	for b.Loop() {
		view := board.View(now)
		view.Status("A", "k1", "m1")
		view.Status("B", "k1", "m1")
	}
}

func BenchmarkReportFailure(b *testing.B) {
	board, now, o := NewBoard(Defaults()), start(), fail(Overloaded)
	b.ReportAllocs()
	for b.Loop() {
		board.Report(o, now)
	}
}
