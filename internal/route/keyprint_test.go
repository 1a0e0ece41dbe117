package route

import (
	"fmt"
	"strings"
	"testing"

	"switchboard/internal/affinity"
	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// listed is a provider whose keys, given by their texts, are named by their positions.
func listed(keys string) *provider.Provider {
	p := upstream("A", "", priced("m", 1), priced("n", 1))
	for i, text := range strings.Fields(keys) {
		p.Keys = append(p.Keys, provider.Key{ID: fmt.Sprint(i + 1), Text: text, Print: provider.KeyPrint(text)})
	}
	return p
}

func printed(id, text string) affinity.Target {
	return affinity.Target{Provider: "A", KeyID: id, KeyPrint: provider.KeyPrint(text), Model: "m"}
}

// S-KEY-02: a pin stays on its key wherever that key stands now, and however the other keys
// come and go; an id alone would name another key.
func TestSKEY02_PinFollowsItsKeyThroughTheList(t *testing.T) {
	for _, tt := range []struct{ name, before, after string }{
		{"as it was", "k1 k2", "k1 k2"},
		{"reordered", "k1 k2", "k2 k1"},
		{"reversed", "k1 k2 k3 k4", "k4 k3 k2 k1"},
		{"inserted in front", "k1 k2", "k0 k1 k2"},
		{"inserted between", "k1 k2", "k1 k0 k2"},
		{"added", "k1 k2", "k1 k2 k3"},
		{"another removed", "k1 k2 k3", "k2 k3"},
		{"last removed", "k1 k2 k3", "k1 k2"},
		{"another replaced", "k1 k2 k3", "k9 k3 k2"},
		{"alone", "k1 k2 k3", "k3"},
		{"all gone", "k1 k2", "k8 k9"},
	} {
		c := mustCatalog(t, []*provider.Provider{listed(tt.after), upstream("B", "1", priced("m", 2))})
		for i, text := range strings.Fields(tt.before) {
			to := printed(fmt.Sprint(i+1), text)
			left := strings.Contains(tt.after, text)
			if got := c.Configured(to); got != left {
				t.Errorf("%s: Configured(%s) = %v, want %v", tt.name, text, got, left)
			}

			got := c.Plan(Input{Model: "m", Surface: wire.Chat, SessionKey: "s1", Pin: &affinity.Pin{Target: to, Served: true}})
			first := got.Attempts[0]
			if left && (first.Key.Text != text || !first.Pinned || got.Reason != ReasonAffinity) || !left && (first.Pinned || got.Reason != ReasonFallback) {
				t.Errorf("%s: Plan pinned to %s = key %s (%s)", tt.name, text, first.Key.Text, got.Reason)
			}
			if all := got.all(); len(all) != len(strings.Fields(tt.after))+1 {
				t.Errorf("%s: Plan pinned to %s = %s, want every key once", tt.name, text, show(all))
			}

			for _, model := range []string{"m", "n"} {
				got = c.Plan(Input{Model: model, Surface: wire.Responses, Home: &to})
				if home := len(got.Attempts) == 1 && got.Attempts[0].Key.Text == text; home != left {
					t.Errorf("%s: Plan of %s at home on %s = %s", tt.name, model, text, show(got.Attempts))
				}
			}
		}
	}
}

// A row without a print, as one written by hand, has only the id.
func TestPinWithoutPrintGoesByID(t *testing.T) {
	c := mustCatalog(t, []*provider.Provider{listed("k1 k2")})
	for _, id := range []string{"1", "2"} {
		to := affinity.Target{Provider: "A", KeyID: id, Model: "m"}
		got := c.Plan(Input{Model: "m", Surface: wire.Chat, Pin: &affinity.Pin{Target: to}})
		if !c.Configured(to) || got.Attempts[0].Key.ID != id || !got.Attempts[0].Pinned {
			t.Errorf("Plan pinned to id %s = %s", id, show(got.Attempts))
		}
	}
	if c.Configured(affinity.Target{Provider: "A", KeyID: "3", Model: "m"}) {
		t.Error("Configured(3) = true, want false")
	}
}

// The pin and the home name one key by different positions.
func TestHomeKnowsItsPinByPrint(t *testing.T) {
	c := mustCatalog(t, []*provider.Provider{listed("k1 k2")})
	home := printed("1", "k2")
	got := c.Plan(Input{Model: "m", Surface: wire.Responses, Home: &home, Pin: &affinity.Pin{Target: printed("7", "k2")}})
	if show(got.Attempts) != "A/2/m!" {
		t.Errorf("Plan = %s, want A/2/m!", show(got.Attempts))
	}
}
