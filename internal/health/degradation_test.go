package health

import (
	"fmt"
	"testing"
	"time"
)

// start is an arbitrary instant.
func start() time.Time { return time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC) }

// step is a report, after a pause.
type step struct {
	after time.Duration
	Outcome
}

func fail(class Class) Outcome { return Outcome{Provider: "A", KeyID: "k1", Model: "m1", Class: class} }

func asked(class Class, wait time.Duration) Outcome {
	o := fail(class)
	o.RetryAfter = wait
	return o
}

func subscribed(o Outcome) Outcome {
	o.Subscription = true
	return o
}

// play reports the steps and returns the instant of the last.
func play(b *Memory, steps ...step) time.Time {
	now := start()
	for _, s := range steps {
		now = now.Add(s.after)
		b.Report(s.Outcome, now)
	}
	return now
}

const forGood = time.Duration(-1)

// Every row of DESIGN 5's degradation table: how long after the last report the target is
// left alone, and on which scope that stands.
func TestDegradationTable(t *testing.T) {
	keyModel := Scope{"A", "k1", "m1"}
	key := Scope{Provider: "A", KeyID: "k1"}
	model := Scope{Provider: "A", Model: "m1"}
	whole := Scope{Provider: "A"}
	const s, m, h = time.Second, time.Minute, time.Hour
	tests := []struct {
		name  string
		steps []step
		wait  time.Duration // 0: healthy
		scope Scope
	}{
		{"429 without a word", []step{{0, fail(RateLimited)}}, m, keyModel},
		{"429 Retry-After", []step{{0, asked(RateLimited, 7*s)}}, 7 * s, keyModel},
		{"429 Retry-After longer than the default", []step{{0, asked(RateLimited, 3*h)}}, 3 * h, keyModel},
		{"429 subscription", []step{{0, subscribed(fail(RateLimited))}}, 5 * h, keyModel},
		{"429 subscription Retry-After", []step{{0, subscribed(asked(RateLimited, 90*s))}}, 90 * s, keyModel},
		{"429 does not double", []step{{0, fail(RateLimited)}, {m, fail(RateLimited)}, {m, fail(RateLimited)}}, m, keyModel},
		{"429 Retry-After does not double", []step{{0, asked(RateLimited, s)}, {2 * s, asked(RateLimited, 9*s)}}, 9 * s, keyModel},
		{"429 a newer word replaces a guess", []step{{0, subscribed(fail(RateLimited))}, {s, subscribed(asked(RateLimited, m))}}, m, keyModel},
		{"429 a guess replaces no word", []step{{0, asked(RateLimited, h)}, {s, fail(RateLimited)}}, h - s, keyModel},

		{"no credit", []step{{0, fail(NoCredit)}}, h, key},
		{"no credit twice", []step{{0, fail(NoCredit)}, {h, fail(NoCredit)}}, 2 * h, key},
		{"no credit thrice", []step{{0, fail(NoCredit)}, {h, fail(NoCredit)}, {2 * h, fail(NoCredit)}}, 4 * h, key},
		{"no credit up to a day", repeated(9, 24*h, fail(NoCredit)), 24 * h, key},

		{"401", []step{{0, fail(Unauthorized)}}, forGood, key},
		{"401 outlasts no credit", []step{{0, fail(Unauthorized)}, {s, fail(NoCredit)}}, forGood, key},
		{"401 after no credit", []step{{0, fail(NoCredit)}, {s, fail(Unauthorized)}}, forGood, key},

		{"529", []step{{0, fail(Overloaded)}}, 30 * s, model},
		{"529 Retry-After", []step{{0, asked(Overloaded, 5*s)}}, 5 * s, model},
		{"529 twice", []step{{0, fail(Overloaded)}, {31 * s, fail(Overloaded)}}, m, model},
		{"529 up to 300 s", repeated(9, h, fail(Overloaded)), 300 * s, model},
		{"529 on many requests at once counts once", []step{{0, fail(Overloaded)}, {0, fail(Overloaded)}, {s, fail(Overloaded)}}, 29 * s, model},

		{"one 5xx", []step{{0, fail(ServerError)}}, 0, Scope{}},
		{"two 5xx", []step{{0, fail(ServerError)}, {0, fail(ServerError)}}, 0, Scope{}},
		{"three 5xx", []step{{0, fail(ServerError)}, {0, fail(ServerError)}, {0, fail(ServerError)}}, 30 * s, whole},
		{"three connection errors", []step{{0, fail(Connection)}, {0, fail(Connection)}, {0, fail(Connection)}}, 30 * s, whole},
		{"5xx and connection errors in a row", []step{{0, fail(ServerError)}, {0, fail(Connection)}, {0, fail(ServerError)}}, 30 * s, whole},
		{"three timeouts", []step{{0, fail(Timeout)}, {0, fail(Timeout)}, {0, fail(Timeout)}}, 10 * s, whole},
		{"the third decides how long", []step{{0, fail(ServerError)}, {0, fail(ServerError)}, {0, fail(Timeout)}}, 10 * s, whole},
		{"in a row however far apart", []step{{0, fail(ServerError)}, {h, fail(ServerError)}, {h, fail(ServerError)}}, 30 * s, whole},
		{"5xx after its trial", append(repeated(3, 0, fail(ServerError)), step{30 * s, fail(ServerError)}), m, whole},
		{"5xx up to 300 s", repeated(12, h, fail(ServerError)), 300 * s, whole},
		{"timeouts up to 120 s", repeated(12, h, fail(Timeout)), 120 * s, whole},
		{"a success breaks the row", []step{{0, fail(ServerError)}, {0, fail(ServerError)}, {0, fail(OK)}, {0, fail(ServerError)}, {0, fail(ServerError)}}, 0, Scope{}},
		{"a refused request breaks the row", []step{{0, fail(ServerError)}, {0, fail(ServerError)}, {0, fail(Request)}, {0, fail(ServerError)}, {0, fail(ServerError)}}, 0, Scope{}},
		{"a hung-up client breaks no row", []step{{0, fail(ServerError)}, {0, fail(ServerError)}, {0, fail(ClientGone)}, {0, fail(ServerError)}}, 30 * s, whole},

		{"404", []step{{0, fail(ModelNotFound)}}, 5 * m, model},
		{"404 does not double", []step{{0, fail(ModelNotFound)}, {5 * m, fail(ModelNotFound)}}, 5 * m, model},
		{"404 outlasts an overload", []step{{0, fail(Overloaded)}, {s, fail(ModelNotFound)}}, 5 * m, model},

		{"client gone", repeated(10, s, fail(ClientGone)), 0, Scope{}},
		{"bad request", repeated(10, s, fail(Request)), 0, Scope{}},
		{"success", repeated(10, s, fail(OK)), 0, Scope{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := NewBoard(Defaults())
			now := play(b, tt.steps...)
			status := func(after time.Duration) Status { return b.View(now.Add(after)).Status("A", "k1", "m1") }
			got := status(0)
			if tt.wait == 0 {
				if got != (Status{}) || !b.View(now).Quiet() {
					t.Fatalf("Status = %+v, Quiet = %v, want healthy and quiet", got, b.View(now).Quiet())
				}
				return
			}
			if b.View(now).Quiet() {
				t.Error("Quiet = true, want false")
			}
			want := Status{Degraded, tt.steps[len(tt.steps)-1].Class, now.Add(tt.wait), tt.scope}
			if tt.wait == forGood {
				want.Class, want.Until = Unauthorized, time.Time{}
			}
			if got != want {
				t.Fatalf("Status = %+v, want %+v", got, want)
			}
			if tt.wait == forGood {
				if got := status(10000 * h); got != want {
					t.Errorf("Status a year later = %+v, want %+v", got, want)
				}
				return
			}
			if got := status(tt.wait - 1).State; got != Degraded {
				t.Errorf("State just before the end = %v, want Degraded", got)
			}
			if got := status(tt.wait).State; got != Trial {
				t.Errorf("State at the end = %v, want Trial", got)
			}
		})
	}
}

func repeated(n int, apart time.Duration, o Outcome) []step {
	steps := make([]step, n)
	for i := range steps {
		steps[i] = step{apart, o}
	}
	return steps
}

// What a degradation of (A, k1, m1) says about its neighbours.
func TestDegradationCoversItsScopeAndNoMore(t *testing.T) {
	tests := []struct {
		class                           Class
		otherKey, otherModel, bothOther State
	}{
		{RateLimited, Healthy, Healthy, Healthy},
		{NoCredit, Healthy, Degraded, Healthy},
		{Unauthorized, Healthy, Degraded, Healthy},
		{Overloaded, Degraded, Healthy, Healthy},
		{ModelNotFound, Degraded, Healthy, Healthy},
		{ServerError, Degraded, Degraded, Degraded},
		{Connection, Degraded, Degraded, Degraded},
		{Timeout, Degraded, Degraded, Degraded},
	}
	for _, tt := range tests {
		t.Run(string(tt.class), func(t *testing.T) {
			b := NewBoard(Defaults())
			view := b.View(play(b, repeated(3, 0, fail(tt.class))...))
			got := [...]State{
				view.Status("A", "k1", "m1").State, view.Status("A", "k2", "m1").State,
				view.Status("A", "k1", "m2").State, view.Status("A", "k2", "m2").State,
				view.Status("B", "k1", "m1").State,
			}
			want := [...]State{Degraded, tt.otherKey, tt.otherModel, tt.bothOther, Healthy}
			if got != want {
				t.Errorf("states of own, other key, other model, both, other provider = %v, want %v", got, want)
			}
		})
	}
}

// A success of (A, k1, m1) clears what it disproves and nothing beside it.
func TestSuccessClearsWhatItDisproves(t *testing.T) {
	tests := []struct {
		name    string
		failed  Outcome
		after   time.Duration
		cleared bool
	}{
		{"provider trouble", Outcome{Provider: "A", KeyID: "k1", Model: "m1", Class: ServerError}, 0, true},
		{"provider trouble met by another key and model", Outcome{Provider: "A", KeyID: "k2", Model: "m2", Class: ServerError}, 0, true},
		{"timeouts of another model", Outcome{Provider: "A", KeyID: "k1", Model: "m2", Class: Timeout}, time.Hour, true},
		{"own rate limit that ran out", Outcome{Provider: "A", KeyID: "k1", Model: "m1", Class: RateLimited}, time.Hour, true},
		{"own rate limit that still runs", Outcome{Provider: "A", KeyID: "k1", Model: "m1", Class: RateLimited}, 0, false},
		{"own no credit", Outcome{Provider: "A", KeyID: "k1", Model: "m1", Class: NoCredit}, 0, true},
		{"no credit met by another model", Outcome{Provider: "A", KeyID: "k1", Model: "m2", Class: NoCredit}, 0, true},
		{"own 403 of another model", Outcome{Provider: "A", KeyID: "k1", Model: "m2", Class: Unauthorized}, 0, true},
		{"own overload", Outcome{Provider: "A", KeyID: "k1", Model: "m1", Class: Overloaded}, 0, true},
		{"overload met by another key", Outcome{Provider: "A", KeyID: "k2", Model: "m1", Class: Overloaded}, 0, true},
		{"model not found", Outcome{Provider: "A", KeyID: "k1", Model: "m1", Class: ModelNotFound}, time.Hour, true},

		{"another key's 401", Outcome{Provider: "A", KeyID: "k2", Model: "m1", Class: Unauthorized}, 0, false},
		{"another key's credit", Outcome{Provider: "A", KeyID: "k2", Model: "m1", Class: NoCredit}, time.Hour, false},
		{"another key's rate limit", Outcome{Provider: "A", KeyID: "k2", Model: "m1", Class: RateLimited}, time.Hour, false},
		{"another model's rate limit", Outcome{Provider: "A", KeyID: "k1", Model: "m2", Class: RateLimited}, time.Hour, false},
		{"another model's overload", Outcome{Provider: "A", KeyID: "k1", Model: "m2", Class: Overloaded}, 0, false},
		{"another provider's trouble", Outcome{Provider: "B", KeyID: "k1", Model: "m1", Class: ServerError}, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := NewBoard(Defaults())
			now := play(b, repeated(3, 0, tt.failed)...)
			if b.View(now).Quiet() {
				t.Fatal("Quiet = true before the success, want false")
			}
			b.Report(fail(OK), now.Add(tt.after))
			view := b.View(now.Add(tt.after))
			if got := view.Status(tt.failed.Provider, tt.failed.KeyID, tt.failed.Model).State == Healthy; got != tt.cleared {
				t.Errorf("cleared = %v, want %v", got, tt.cleared)
			}
			if view.Quiet() != tt.cleared {
				t.Errorf("Quiet = %v, want %v", view.Quiet(), tt.cleared)
			}
		})
	}
}

// Success also ends the doubling: the next degradation is a first one.
func TestSuccessEndsDoubling(t *testing.T) {
	for _, class := range []Class{NoCredit, Overloaded, ServerError, Timeout} {
		b := NewBoard(Defaults())
		first := play(b, repeated(3, 0, fail(class))...)
		want := b.View(first).Status("A", "k1", "m1").Until.Sub(first)
		play(b, repeated(9, 48*time.Hour, fail(class))...)
		again := play(b, append([]step{{500 * time.Hour, fail(OK)}}, repeated(3, 0, fail(class))...)...)
		if got := b.View(again).Status("A", "k1", "m1").Until.Sub(again); got != want {
			t.Errorf("%s: first wait after a success = %v, want %v", class, got, want)
		}
	}
}

// A request that the provider refuses as wrong proves that it is there, but says nothing of
// keys, limits and models.
func TestRefusedRequestProvesOnlyThatTheProviderAnswers(t *testing.T) {
	for class, cleared := range map[Class]bool{
		ServerError: true, Connection: true, Timeout: true,
		RateLimited: false, NoCredit: false, Unauthorized: false, Overloaded: false, ModelNotFound: false,
	} {
		for _, keyID := range []string{"k1", ""} { // "" is a provider without keys
			b := NewBoard(Defaults())
			o := fail(class)
			o.KeyID = keyID
			now := play(b, repeated(3, 0, o)...)
			o.Class = Request
			b.Report(o, now)
			if got := b.View(now).Quiet(); got != cleared {
				t.Errorf("%s on key %q, then a refused request: Quiet = %v, want %v", class, keyID, got, cleared)
			}
		}
	}
}

// A provider without keys that answers 401 has nothing that could be changed: it is tried
// again after the time of a key without credit.
func TestUnauthorizedWithoutKeyIsNotForGood(t *testing.T) {
	b := NewBoard(Defaults())
	o := Outcome{Provider: "A", Model: "m1", Class: Unauthorized}
	for _, want := range []time.Duration{time.Hour, 2 * time.Hour} {
		now := start().Add(want)
		b.Report(o, now)
		got := b.View(now).Status("A", "", "m1")
		if got.State != Degraded || !got.Until.Equal(now.Add(want)) {
			t.Errorf("Status = %+v, want degraded for %v", got, want)
		}
	}
}

// Settings are taken as they are, odd ones too.
func TestSettings(t *testing.T) {
	settings := Defaults()
	settings.ServerErrorAfter = 1
	settings.ServerError, settings.ServerErrorMax = 10*time.Minute, time.Minute
	b := NewBoard(settings)
	now := play(b, step{0, fail(ServerError)})
	if got, want := b.View(now).Status("A", "k1", "m1").Until, now.Add(10*time.Minute); !got.Equal(want) {
		t.Errorf("Until with a ceiling below the start = %v, want %v", got, want)
	}
	for _, times := range []int{1, 2, 63, 64, 1000, 1 << 40} {
		if got := doubled(time.Second, 1<<63-1, times); got <= 0 {
			t.Errorf("doubled(1s, max, %d) = %v, want more than 0", times, got)
		}
	}
	if got := NewBoard(Settings{}); got.View(play(got, step{0, fail(Overloaded)})).Status("A", "k1", "m1").State != Trial {
		t.Error("zero settings: want a trial at once")
	}
}

// Model names of clients must not fill the memory.
func TestBoardIsBounded(t *testing.T) {
	b := NewBoard(Defaults())
	b.Report(Outcome{Provider: "A", KeyID: "k1", Model: "m", Class: Unauthorized}, start())
	for i := range 3 * maxStandings {
		o := fail(ModelNotFound)
		o.Model = fmt.Sprint("made-up-", i)
		b.Report(o, start().Add(time.Duration(i)*time.Millisecond))
	}
	list := b.List(start())
	if len(list) > maxStandings {
		t.Errorf("len(List) = %d, want at most %d", len(list), maxStandings)
	}
	if got := b.View(start()).Status("A", "k1", "m").Class; got != Unauthorized {
		t.Errorf("the refused key reads as %q, want %q", got, Unauthorized)
	}
	last := fmt.Sprint("made-up-", 3*maxStandings-1)
	if got := b.View(start()).Status("A", "k2", last).Class; got != ModelNotFound {
		t.Errorf("the newest reads as %q, want %q", got, ModelNotFound)
	}
}
