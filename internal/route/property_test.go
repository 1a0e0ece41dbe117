package route

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// world is an arbitrary configuration.
type world struct {
	providers []*provider.Provider
	virtuals  []Virtual
	names     []string // that can be asked for
}

func drawWorld(t *rapid.T) world {
	var w world
	models := []string{"m", "n", "x/y"}
	for i := range rapid.IntRange(1, 5).Draw(t, "providers") {
		p := upstream(string(rune('A'+i)), "")
		for k := range rapid.IntRange(0, 3).Draw(t, "keys") {
			id := fmt.Sprint("k", k+1)
			p.Keys = append(p.Keys, provider.Key{ID: id, Text: p.Identity + id})
		}
		p.NoAuth = len(p.Keys) == 0 && rapid.Bool().Draw(t, "no auth")
		p.StickyKeys = rapid.Bool().Draw(t, "sticky")
		p.Billing = rapid.SampledFrom([]provider.Billing{provider.Subscription, provider.PayAsYouGo, provider.Free}).Draw(t, "billing")
		if rapid.IntRange(0, 3).Draw(t, "surfaces") == 0 {
			p.Surfaces = []wire.Surface{wire.Messages}
		}
		p.Translate = rapid.Bool().Draw(t, "translate")
		for _, id := range models {
			if rapid.IntRange(0, 3).Draw(t, "lists") > 0 {
				m := priced(id, float64(rapid.IntRange(-1, 3).Draw(t, "price")))
				if rapid.IntRange(0, 4).Draw(t, "renamed") == 0 {
					m.Upstream = "shared"
				}
				p.Models = append(p.Models, m)
				w.names = append(w.names, id, p.Identity+"/"+id)
			}
		}
		if len(p.Models) == 0 {
			w.names = append(w.names, p.Identity+"/anything")
		}
		w.providers = append(w.providers, p)
	}
	for _, n := range strategies() { // a strategy that is added is tested here as well
		for i := range 2 {
			v := virtual(fmt.Sprint(n.name, i), n.name)
			for range rapid.IntRange(1, 4).Draw(t, "targets") {
				v.Targets = append(v.Targets, VirtualTarget{
					Model: rapid.SampledFrom(w.names).Draw(t, "target"), Weight: rapid.IntRange(0, 5).Draw(t, "weight"),
				})
			}
			w.virtuals = append(w.virtuals, v)
			w.names = append(w.names, v.Source)
		}
	}
	return w
}

// slot names a provider, key and model.
type slot struct{ provider, key, model string }

// candidates resolves a name the naive way: every key of every target that it can mean.
// A target that cannot serve on the surface counts once, without a key.
func (w world) candidates(model string, surface wire.Surface) map[slot]bool {
	all := map[slot]bool{}
	add := func(p *provider.Provider, upstream string) {
		switch {
		case !reached(p, surface) || !p.NoAuth && len(p.Keys) == 0:
			all[slot{p.Identity, "", upstream}] = true
		case p.NoAuth:
			all[slot{p.Identity, "", upstream}] = true
		}
		if reached(p, surface) {
			for _, k := range p.Keys {
				all[slot{p.Identity, k.ID, upstream}] = true
			}
		}
	}
	for _, v := range w.virtuals {
		if v.Source == model {
			for _, t := range v.Targets {
				maps.Copy(all, w.candidates(t.Model, surface))
			}
			return all
		}
	}
	for _, p := range w.providers {
		for _, m := range p.Models {
			if m.ID == model || p.Identity+"/"+m.ID == model {
				add(p, m.Upstream)
			}
		}
		if len(p.Models) == 0 && model == p.Identity+"/anything" {
			add(p, "anything")
		}
	}
	return all
}

func drawHealth(t *rapid.T, all map[slot]bool) health.View {
	board := health.NewBoard(health.Defaults())
	sorted := slices.SortedFunc(maps.Keys(all), func(a, b slot) int { return cmpSlots(a, b) })
	for range rapid.IntRange(0, 6).Draw(t, "failures") {
		s := rapid.SampledFrom(sorted).Draw(t, "failing")
		class := rapid.SampledFrom([]health.Class{
			health.RateLimited, health.NoCredit, health.Unauthorized, health.Overloaded, health.ModelNotFound, health.ServerError,
		}).Draw(t, "class")
		for range 3 {
			board.Report(health.Outcome{Provider: s.provider, KeyID: s.key, Model: s.model, Class: class}, start())
		}
	}
	return board.View(start().Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second))
}

func cmpSlots(a, b slot) int {
	return slices.Compare([]string{a.provider, a.key, a.model}, []string{b.provider, b.key, b.model})
}

// What holds for every strategy, configuration and health: every candidate is either tried
// once or left out with a reason, a viable pin comes first and draws nothing, and the order
// in which providers are configured means nothing.
func TestPlanInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		model := rapid.SampledFrom(w.names).Draw(t, "model")
		surface := rapid.SampledFrom([]wire.Surface{wire.Chat, wire.Messages, "tomorrow"}).Draw(t, "surface")
		all := w.candidates(model, surface)
		turns := rotations{}
		in := Input{
			Model: model, Surface: surface, Health: drawHealth(t, all), Draw: turns.draw,
			SessionKey:     rapid.SampledFrom([]string{"", "s1", "s2"}).Draw(t, "session"),
			EstimatedInput: int64(rapid.IntRange(0, 5000).Draw(t, "tokens")),
		}
		sorted := slices.SortedFunc(maps.Keys(all), cmpSlots)
		if rapid.Bool().Draw(t, "pinned") {
			s := rapid.SampledFrom(sorted).Draw(t, "pin")
			in.Pin = pin(s.provider + " " + s.key + " " + s.model)
		}
		catalog := func(p []*provider.Provider, v []Virtual) *Catalog {
			c, err := NewCatalog(p, v)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		c := catalog(w.providers, w.virtuals)
		got := c.Plan(in)
		if in.Pin != nil && len(got.Attempts) > 0 && got.Attempts[0].Pinned {
			drawn := maps.Clone(turns)
			if !got.Attempts[0].Provider.StickyKeys {
				delete(drawn, "key:"+in.Pin.Provider)
			}
			if len(drawn) > 0 {
				t.Fatalf("a pinned request has drawn %v", drawn)
			}
		}
		attempts := got.all()
		checkAccounted(t, all, attempts, got, in)
		checkPin(t, in, attempts, got)

		// The same question again, to a catalog that was configured in another order.
		again := in
		other := rotations{}
		again.Draw = other.draw
		d := catalog(rapid.Permutation(w.providers).Draw(t, "order"), rapid.Permutation(w.virtuals).Draw(t, "order of virtuals")).Plan(again)
		if show(d.all()) != show(attempts) || d.Reason != got.Reason || showOut(d.Excluded) != showOut(got.Excluded) {
			t.Fatalf("order of providers: Plan = %s, excluded %s; want %s, excluded %s",
				show(d.all()), showOut(d.Excluded), show(attempts), showOut(got.Excluded))
		}
		checkHome(t, c, in, sorted)
	})
}

func checkAccounted(t *rapid.T, all map[slot]bool, attempts []Attempt, got Decision, in Input) {
	found := map[slot]bool{}
	note := func(s slot) {
		if found[s] || !all[s] {
			t.Fatalf("%v: twice or no candidate, in %s, excluded %s", s, show(attempts), showOut(got.Excluded))
		}
		found[s] = true
	}
	for _, a := range attempts {
		note(slot{a.Provider.Identity, a.Key.ID, a.Model.Upstream})
		status := in.Health.Status(a.Provider.Identity, a.Key.ID, a.Model.Upstream)
		if status.State == health.Degraded || a.Trial != (status.State == health.Trial) || !reached(a.Provider, in.Surface) {
			t.Fatalf("attempt %s, but its status is %+v", show([]Attempt{a}), status)
		}
	}
	for _, out := range got.Excluded {
		note(slot{out.Provider, out.KeyID, out.Model})
		if (out.Reason == OutDegraded) != (out.Status.State == health.Degraded) || out.Reason == "" {
			t.Fatalf("exclusion %+v", out)
		}
	}
	if len(found) != len(all) {
		t.Fatalf("%d of %d candidates accounted for: %s, excluded %s", len(found), len(all), show(attempts), showOut(got.Excluded))
	}
	if !got.Known || (got.Reason == ReasonUnavailable) != (len(attempts) == 0) || len(attempts) > 0 && !got.Served {
		t.Fatalf("Known %v, Served %v, Reason %s with %d attempts", got.Known, got.Served, got.Reason, len(attempts))
	}
}

func checkPin(t *rapid.T, in Input, attempts []Attempt, got Decision) {
	for i, a := range attempts {
		isPin := in.Pin != nil && a.Provider.Identity == in.Pin.Provider && a.Model.Upstream == in.Pin.Target.Model &&
			(a.Key.ID == in.Pin.KeyID || !a.Provider.StickyKeys)
		if a.Pinned != isPin || isPin && (i >= len(got.Attempts) || got.Reason != ReasonAffinity) {
			t.Fatalf("pin %v at place %d of %s (%s)", in.Pin.Target, i, show(attempts), got.Reason)
		}
	}
	for _, a := range got.Attempts {
		if got.Reason == ReasonAffinity && !a.Pinned {
			t.Fatalf("attempts %s beside the pin %v", show(got.Attempts), in.Pin.Target)
		}
	}
	if got.Reason == ReasonAffinity && !attempts[0].Pinned || got.Reason == ReasonFallback && in.Pin == nil {
		t.Fatalf("Reason = %s of %s", got.Reason, show(attempts))
	}
}

// checkHome asks for the same model with a home: that key of that provider, or nobody.
func checkHome(t *rapid.T, c *Catalog, in Input, sorted []slot) {
	s := rapid.SampledFrom(sorted).Draw(t, "home")
	in.Home = at(s.provider + " " + s.key + " " + s.model)
	in.Draw = func(name string) uint64 {
		t.Fatalf("a request with a home has drawn %s", name)
		return 0
	}
	got := c.Plan(in)
	if len(got.all()) > 1 || len(got.all())+len(got.Excluded) < 1 {
		t.Fatalf("Plan with a home = %s, excluded %s", show(got.all()), showOut(got.Excluded))
	}
	for _, a := range got.Attempts {
		if (slot{a.Provider.Identity, a.Key.ID, a.Model.Upstream}) != s {
			t.Fatalf("Plan with home %v = %s", s, show(got.Attempts))
		}
	}
}

// reached tells whether requests of the surface reach a provider, translated or not.
func reached(p *provider.Provider, s wire.Surface) bool {
	_, ok := p.As(s)
	return ok
}
