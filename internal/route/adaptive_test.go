package route

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/signal"
	"switchboard/internal/wire"
)

// seen is what has been observed of a target of model m.
type seen struct {
	provider string
	ttfb     time.Duration // 0: it has not answered
	inFlight int
	failures int
}

// signals is a view at start() of what was seen.
func signals(list ...seen) signal.View {
	table := signal.NewTable()
	for _, s := range list {
		t := signal.Target{Provider: s.provider, Model: "m"}
		if s.ttfb > 0 {
			f := table.Begin(t, false, start().Add(-s.ttfb))
			f.Answered(start())
			f.End(start().Add(-s.ttfb)) // leaves no load
		}
		for range s.failures {
			f := table.Begin(t, false, start())
			f.Failed(start())
			f.End(start())
		}
		for range s.inFlight {
			table.Begin(t, false, start())
		}
	}
	return table.View(start())
}

// numbers yields a fixed sequence as chance, over and over.
func numbers(list ...uint64) func() uint64 {
	i := 0
	return func() uint64 { i++; return list[(i-1)%len(list)] }
}

func adaptiveModel(objective string, targets ...string) Virtual {
	v := virtual("v", ReasonAdaptive, targets...)
	v.Objective = objective
	return v
}

// Of two targets both are drawn: the better one is taken, whatever the chance.
func TestAdaptiveObjectives(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name      string
		objective string
		a, b      seen
		costA     float64 // B costs 1
		want      string  // the first
	}{
		{"faster", "latency", seen{ttfb: 500 * ms}, seen{ttfb: 400 * ms}, 1, "B"},
		{"faster and dearer, for latency", "latency", seen{ttfb: 400 * ms}, seen{ttfb: 500 * ms}, 100, "A"},
		{"twice as dear, not twice as fast", "balanced", seen{ttfb: 300 * ms}, seen{ttfb: 500 * ms}, 2, "B"},
		{"twice as dear, more than twice as fast", "balanced", seen{ttfb: 200 * ms}, seen{ttfb: 500 * ms}, 2, "A"},
		{"balanced is the default", "", seen{ttfb: 200 * ms}, seen{ttfb: 500 * ms}, 2, "A"},
		{"twice as dear, seven times as fast, for cost", "cost", seen{ttfb: 100 * ms}, seen{ttfb: 700 * ms}, 2, "B"},
		{"twice as dear, nine times as fast, for cost", "cost", seen{ttfb: 100 * ms}, seen{ttfb: 900 * ms}, 2, "A"},
		{"nothing is known: the cheaper one", "balanced", seen{}, seen{}, 1.5, "B"},
		{"busy", "latency", seen{ttfb: 400 * ms, inFlight: 2}, seen{ttfb: 500 * ms}, 1, "B"},
		{"busier", "latency", seen{ttfb: 400 * ms, inFlight: 2}, seen{ttfb: 500 * ms, inFlight: 4}, 1, "A"},
		{"failing", "latency", seen{ttfb: 400 * ms, failures: 3}, seen{ttfb: 700 * ms}, 1, "B"},
		{"unknown counts as fast", "latency", seen{ttfb: 400 * ms, inFlight: 1}, seen{}, 1, "B"},
		{"unknown and busy", "latency", seen{ttfb: 400 * ms}, seen{inFlight: 1}, 1, "A"},
		{"without a price as dear as the dearest", "balanced", seen{ttfb: 500 * ms}, seen{ttfb: 400 * ms}, -1, "B"},
		{"costs nothing", "balanced", seen{ttfb: 4 * time.Second}, seen{ttfb: 300 * ms}, 0, "A"},
		{"costs nothing and never answers", "balanced", seen{ttfb: 50 * time.Second}, seen{ttfb: 300 * ms}, 0, "B"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.a.provider, tt.b.provider = "A", "B"
			c := mustCatalog(t, []*provider.Provider{upstream("A", "k1", priced("m", tt.costA)), upstream("B", "k1", priced("m", 1))},
				adaptiveModel(tt.objective, "A/m", "B/m"))
			for _, chance := range []uint64{0, 1 << 31, 1<<32 - 1, 1 << 63, 1<<64 - 1} {
				got := c.Plan(Input{
					Model: "v", Surface: wire.Chat, EstimatedInput: 1000, Signals: signals(tt.a, tt.b), Random: numbers(chance),
				})
				if got.Attempts[0].Provider.Identity != tt.want || got.Reason != ReasonAdaptive || len(got.Attempts) != 2 {
					t.Errorf("chance %x: Plan = %s (%s), want %s first", chance, show(got.Attempts), got.Reason, tt.want)
				}
			}
		})
	}
}

// Two are drawn by weight and the better one is taken: the worst of three never, and the best
// one as often as it is drawn, not always. The rest follows as it scores.
func TestAdaptiveTakesTheBetterOfTwo(t *testing.T) {
	c := mustCatalog(t, []*provider.Provider{
		upstream("A", "k1", priced("m", 1)), upstream("B", "k1", priced("m", 1)), upstream("C", "k1", priced("m", 1)),
	}, adaptiveModel("", "C/m*1", "B/m*1", "A/m*2"))
	view := signals(seen{provider: "A", ttfb: time.Second}, seen{provider: "B", ttfb: 2 * time.Second}, seen{provider: "C", ttfb: 3 * time.Second})
	orders := map[string]int{}
	const n = 20_000
	for i := range n {
		d := c.Plan(Input{Model: "v", Surface: wire.Chat, SessionKey: fmt.Sprint("session-", i), Signals: view})
		order := ""
		for _, a := range d.Attempts {
			order += a.Provider.Identity
		}
		orders[order]++
	}
	// A is not drawn only when B and C are: 1/4 x 1/3 + 1/4 x 1/3.
	if share := float64(orders["BAC"]) / n; orders["ABC"]+orders["BAC"] != n || share < 1/6.-0.01 || share > 1/6.+0.01 {
		t.Errorf("orders %v, want ABC and, for one in six, BAC", orders)
	}
}

// Requests that arrive at once, before any has an answer, spread over equal targets.
func TestAdaptiveSpreadsABurst(t *testing.T) {
	var providers []*provider.Provider
	var targets []string
	for i := range 5 {
		providers = append(providers, upstream(fmt.Sprint("P", i), "k1", priced("m", 1)))
		targets = append(targets, fmt.Sprintf("P%d/m", i))
	}
	c := mustCatalog(t, providers, adaptiveModel("", targets...))
	table := signal.NewTable()
	counts := map[string]int{}
	for i := range 500 {
		d := c.Plan(Input{Model: "v", Surface: wire.Chat, SessionKey: fmt.Sprint("s", i), Signals: table.View(start())})
		target, watched := c.Watches(d.Attempts[0])
		if !watched {
			t.Fatalf("Watches(%s) = false", show(d.Attempts[:1]))
		}
		table.Begin(target, false, start())
		counts[target.Provider]++
	}
	for id, n := range counts {
		if n < 85 || n > 115 {
			t.Errorf("%s has %d of 500 requests, want about 100 each: %v", id, n, counts)
		}
	}
}

// A session draws the same two wherever its first requests arrive.
func TestAdaptiveIsTheSameForASession(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		c, err := NewCatalog(w.providers, w.virtuals)
		if err != nil {
			t.Fatal(err)
		}
		in := Input{
			Model: "adaptive0", Surface: wire.Chat, SessionKey: rapid.StringN(1, 20, -1).Draw(t, "session"),
			Draw: func(string) uint64 { return 7 }, Random: func() uint64 { t.Fatal("chance"); return 0 },
		}
		first, second := c.Plan(in), c.Plan(in)
		if show(first.Attempts) != show(second.Attempts) {
			t.Fatalf("Plan = %s, then %s", show(first.Attempts), show(second.Attempts))
		}
	})
}

// drawSignals is anything that may be known of the candidates.
func drawSignals(t *rapid.T, all map[slot]bool) signal.View {
	table := signal.NewTable()
	for s := range all {
		target := signal.Target{Provider: s.provider, Model: s.model}
		for range rapid.IntRange(0, 3).Draw(t, "attempts") {
			f := table.Begin(target, rapid.Bool().Draw(t, "stream"), start())
			now := start().Add(time.Duration(rapid.IntRange(0, 100_000).Draw(t, "ms")) * time.Millisecond)
			if rapid.Bool().Draw(t, "answered") {
				f.Answered(now)
			} else {
				f.Failed(now)
			}
			if rapid.Bool().Draw(t, "ended") {
				f.End(now)
			}
		}
	}
	return table.View(start().Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "later")) * time.Second))
}

// Whatever is known of the targets: a pin whose target health does not leave alone is
// followed, slow, dear, busy or failing as it may be; one whose target is left alone is not.
// The signals change who comes first, never who can be tried, and pools of one are not scored.
func TestSignalsNeverReleaseAPin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		c, err := NewCatalog(w.providers, w.virtuals)
		if err != nil {
			t.Fatal(err)
		}
		model := rapid.SampledFrom([]string{"adaptive0", "adaptive1"}).Draw(t, "model")
		all := w.candidates(model, wire.Chat)
		in := Input{
			Model: model, Surface: wire.Chat, SessionKey: "s", Health: drawHealth(t, all), Signals: drawSignals(t, all),
			EstimatedInput: int64(rapid.IntRange(0, 5000).Draw(t, "tokens")), Random: func() uint64 { t.Fatal("chance"); return 0 },
		}
		sorted := slices.SortedFunc(maps.Keys(all), cmpSlots)
		unpinned := c.Plan(in)
		blind := in
		blind.Signals = signal.View{}
		tried := func(d Decision) string {
			list := strings.Fields(show(d.Attempts))
			slices.Sort(list)
			return strings.Join(list, " ")
		}
		if got, want := tried(unpinned), tried(c.Plan(blind)); got != want {
			t.Fatalf("with signals %s are tried, without them %s", got, want)
		}
		for _, s := range c.Scores(in) {
			if !(s.Score > 0 && s.PriceRatio >= 1) {
				t.Fatalf("score %+v", s)
			}
		}
		s := rapid.SampledFrom(sorted).Draw(t, "pin")
		in.Pin = pin(s.provider + " " + s.key + " " + s.model)
		got := c.Plan(in)
		viable := slices.ContainsFunc(unpinned.Attempts, func(a Attempt) bool {
			return a.Provider.Identity == s.provider && a.Model.Upstream == s.model && (a.Key.ID == s.key || !a.Provider.StickyKeys)
		})
		followed := len(got.Attempts) > 0 && got.Attempts[0].Pinned
		if followed != viable {
			t.Fatalf("pin %v: viable %v, but Plan = %s (%s)", s, viable, show(got.Attempts), got.Reason)
		}
	})
}

// The pin's target is left alone: another is chosen as for a new session, and the reason says so.
func TestAdaptiveReleasesABackedOffPin(t *testing.T) {
	c := mustCatalog(t, fourProviders("k1"), adaptiveModel("", "provider-0/m", "provider-1/m", "provider-2/m", "provider-3/m"))
	for class, want := range map[health.Class]bool{
		health.RateLimited: true, health.Overloaded: true, health.ServerError: true, health.Unauthorized: true, health.Request: false, health.OK: false,
	} {
		d := c.Plan(Input{
			Model: "v", Surface: wire.Chat, SessionKey: "s", Pin: pin("provider-2 k1 m"), Health: sick(failed(class, "provider-2 k1 m")),
		})
		if released := !d.Attempts[0].Pinned; released != want || released != (d.Reason == ReasonFallback) {
			t.Errorf("%s: Plan = %s (%s), want the pin released: %v", class, show(d.all()), d.Reason, want)
		}
	}
}

// With one target left there is nothing to choose: no chance is drawn and nothing is scored.
func TestAdaptivePoolOfOne(t *testing.T) {
	providers := []*provider.Provider{upstream("A", "k1 k2", priced("m", 1)), upstream("B", "k1", priced("m", 1)), upstream("C", "", priced("m", 1))}
	never := func() uint64 { t.Error("chance was drawn"); return 0 }
	for _, tt := range []struct {
		name    string
		targets []string
		health  health.View
		want    string
	}{
		{"one configured", []string{"A/m"}, nil, "A/k1/m A/k2/m"},
		{"one can serve", []string{"B/m", "C/m"}, nil, "B/k1/m"},
		{"one is not left alone", []string{"A/m", "B/m"}, sick(failed(health.Overloaded, "A k1 m")), "B/k1/m"},
		{"one provider twice", []string{"B/m", "B/m"}, nil, "B/k1/m"},
		{"none", []string{"A/m", "B/m"}, sick(failed(health.Overloaded, "A k1 m"), failed(health.Overloaded, "B k1 m")), ""},
	} {
		c := mustCatalog(t, providers, adaptiveModel("", tt.targets...))
		in := Input{Model: "v", Surface: wire.Chat, Health: tt.health, Random: never, Draw: func(string) uint64 { return 0 }}
		if tt.name == "one provider twice" {
			in.Random = nil
		}
		if got := show(c.Plan(in).Attempts); got != tt.want {
			t.Errorf("%s: Plan = %s, want %s", tt.name, got, tt.want)
		}
		if scores := c.Scores(in); tt.name != "one provider twice" && len(scores) != 0 {
			t.Errorf("%s: Scores = %+v, want none", tt.name, scores)
		}
	}
}

// A member may be another virtual model: it stands as the one that would serve for it.
func TestAdaptiveOverNestedModels(t *testing.T) {
	c := mustCatalog(t, fourProviders("k1"),
		virtual("cheap", ReasonFailover, "provider-1/m", "provider-3/m"), adaptiveModel("latency", "provider-0/m", "cheap"))
	view := signals(seen{provider: "provider-0", ttfb: time.Second}, seen{provider: "provider-1", ttfb: 3 * time.Second}, seen{provider: "provider-3", ttfb: 500 * time.Millisecond})
	in := Input{Model: "v", Surface: wire.Chat, SessionKey: "s", Signals: view}
	if got, want := show(c.Plan(in).Attempts), "provider-1/k1/m provider-3/k1/m provider-0/k1/m"; got != want {
		t.Errorf("Plan = %s, want %s", got, want)
	}
	scores := c.Scores(in)
	if len(scores) != 2 || scores[0].Provider != "provider-0" || scores[1].Provider != "provider-3" || scores[1].TTFB != 0.5 || scores[0].Score != 1 {
		t.Errorf("Scores = %+v", scores)
	}
	if !c.Adaptive() || !mustCatalog(t, fourProviders("k1"), virtual("v", ReasonCost, "provider-0/m")).noneWatched() {
		t.Error("Adaptive() is wrong")
	}
}

func (c *Catalog) noneWatched() bool { return !c.Adaptive() }

func TestBadObjective(t *testing.T) {
	for _, tt := range []struct{ strategy, objective, want string }{
		{"adaptive", "speed", `virtual model "v": there is no objective "speed"; known here: balanced, latency, cost`},
		{"cost", "cost", `virtual model "v": the objective "cost" means nothing to the strategy cost; it is for adaptive`},
		{"", "latency", `virtual model "v": the objective "latency" means nothing to the strategy round_robin; it is for adaptive`},
	} {
		v := virtual("v", tt.strategy, "A/m")
		v.Objective = tt.objective
		if _, err := NewCatalog([]*provider.Provider{upstream("A", "k1", priced("m", 1))}, []Virtual{v}); err == nil || err.Error() != tt.want {
			t.Errorf("NewCatalog(%s, %s) = %v, want %s", tt.strategy, tt.objective, err, tt.want)
		}
	}
}

func BenchmarkAdaptive(b *testing.B) {
	var providers []*provider.Provider
	var targets []string
	table := signal.NewTable()
	for i := range 8 {
		id := fmt.Sprint("provider-", i)
		providers = append(providers, upstream(id, "k1", priced("m", float64(i+1))))
		targets = append(targets, id+"/m")
		f := table.Begin(signal.Target{Provider: id, Model: "m"}, false, start())
		f.Answered(start().Add(time.Second))
	}
	c := mustCatalog(b, providers, adaptiveModel("", targets...))
	in := Input{
		Model: "v", Surface: wire.Chat, SessionKey: "s1", EstimatedInput: 20_000, Signals: table.View(start().Add(2 * time.Second)),
		Health: health.NewBoard(health.Defaults()).View(start()),
	}
	b.Run("plan over 8", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Plan(in)
		}
	})
	b.Run("score of 8", func(b *testing.B) {
		w := newWalk(c.find("v").offer(wire.Chat, false), in)
		root := w.offer.root
		var room [8]rating
		b.ReportAllocs()
		for b.Loop() {
			adaptive{1}.rate(room[:0], root, w)
		}
	})
	b.Run("pinned", func(b *testing.B) {
		in := in
		in.Pin = pin("provider-3 k1 m")
		b.ReportAllocs()
		for b.Loop() {
			c.Plan(in)
		}
	})
}
