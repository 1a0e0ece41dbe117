package route

import (
	"testing"

	"switchboard/internal/affinity"
	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

func loose(identity, keys string, models ...provider.Model) *provider.Provider {
	p := upstream(identity, keys, models...)
	p.StickyKeys = false
	return p
}

// S-KEY-02, session_sticky_keys: false: a pinned session stays with its provider and takes
// that one's keys in turn; the provider's other keys are tried before another provider.
func TestSKEY02_PinnedSessionRotatesLooseKeys(t *testing.T) {
	c := mustCatalog(t, []*provider.Provider{loose("A", "k1 k2 k3", priced("m", 5)), upstream("B", "k1", priced("m", 1))})
	for name, to := range map[string]affinity.Target{
		"pin without a key":               {Provider: "A", Model: "m"},
		"pin from when keys were sticky":  {Provider: "A", KeyID: "k2", KeyPrint: "p", Model: "m"},
		"pin to a key that is there":      {Provider: "A", KeyID: "k1", Model: "m"},
		"pin to a key that is gone since": {Provider: "A", KeyID: "k9", Model: "m"},
	} {
		turns := rotations{}
		in := Input{Model: "m", Surface: wire.Chat, SessionKey: "s1", Draw: turns.draw, Pin: &affinity.Pin{Target: to, Served: true}}
		for r, want := range []string{
			"A/k1/m! A/k2/m! A/k3/m! B/k1/m", "A/k2/m! A/k3/m! A/k1/m! B/k1/m", "A/k3/m! A/k1/m! A/k2/m! B/k1/m", "A/k1/m! A/k2/m! A/k3/m! B/k1/m",
		} {
			if got := c.Plan(in); show(got.all()) != want || got.Reason != ReasonAffinity {
				t.Errorf("%s: r%d = %s (%s), want %s", name, r, show(got.all()), got.Reason, want)
			}
		}
		in.Health = sick(failed(health.Unauthorized, "A k1 m"))
		for _, want := range []string{"A/k2/m! A/k3/m! B/k1/m", "A/k3/m! A/k2/m! B/k1/m"} {
			turns["key:A"] = uint64(map[byte]int{'2': 0, '3': 1}[want[3]])
			if got := c.Plan(in); show(got.all()) != want || showOut(got.Excluded) != "A/k1/m=degraded:unauthorized" {
				t.Errorf("%s: with k1 dead = %s, excluded %s, want %s", name, show(got.all()), showOut(got.Excluded), want)
			}
		}
		in.Health = sick(failed(health.ServerError, "A k1 m"))
		if got := c.Plan(in); show(got.all()) != "B/k1/m" || got.Reason != ReasonFallback {
			t.Errorf("%s: with A down = %s (%s), want B/k1/m (fallback)", name, show(got.all()), got.Reason)
		}
	}
}

// One key, and no key, take no turns.
func TestPinToALooseProviderWithOneKey(t *testing.T) {
	open := loose("O", "", priced("m", 1))
	open.NoAuth = true
	for want, p := range map[string]*provider.Provider{"A/k1/m!": loose("A", "k1", priced("m", 1)), "O//m!": open} {
		turns := rotations{}
		got := mustCatalog(t, []*provider.Provider{p}).Plan(Input{
			Model: "m", Surface: wire.Chat, SessionKey: "s1", Draw: turns.draw, Pin: &affinity.Pin{Target: affinity.Target{Provider: p.Identity, Model: "m"}},
		})
		if show(got.all()) != want || got.Reason != ReasonAffinity || len(turns) != 0 {
			t.Errorf("Plan = %s (%s), drawn %v, want %s", show(got.all()), got.Reason, turns, want)
		}
	}
}

// A pin without a key says nothing about the key of a provider that keeps sessions on one.
func TestPinWithoutKeyToStickyProviderIsNotViable(t *testing.T) {
	c := mustCatalog(t, []*provider.Provider{upstream("A", "k1 k2", priced("m", 1))})
	to := affinity.Target{Provider: "A", Model: "m"}
	if got := c.Plan(Input{Model: "m", Surface: wire.Chat, Pin: &affinity.Pin{Target: to}}); got.Reason != ReasonFallback || got.Attempts[0].Pinned {
		t.Errorf("Plan = %s (%s), want the strategy's order (fallback)", show(got.Attempts), got.Reason)
	}
	if c.Configured(to) {
		t.Error("Configured() = true, want false")
	}
}

// Where a response lives is one key, also of a provider whose keys take turns; the pin says
// nothing against it.
func TestHomeOfALooseProviderIsOneKey(t *testing.T) {
	c := mustCatalog(t, []*provider.Provider{loose("A", "k1 k2", priced("m", 1))})
	in := Input{Model: "m", Surface: wire.Responses, SessionKey: "s1", Home: at("A k2 m"), Pin: &affinity.Pin{Target: affinity.Target{Provider: "A", Model: "m"}}}
	in.Draw = func(name string) uint64 {
		t.Errorf("a request with a home has drawn %s", name)
		return 0
	}
	for range 3 {
		if got := c.Plan(in); show(got.all()) != "A/k2/m!" {
			t.Errorf("Plan = %s, want A/k2/m!", show(got.all()))
		}
	}
}
