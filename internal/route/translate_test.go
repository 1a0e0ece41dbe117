package route

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// twoVendors are two providers on chat and two on messages, all with the model m, translated
// for where on.
func twoVendors(on bool) []*provider.Provider {
	list := []*provider.Provider{
		upstream("A", "k", priced("m", 3)), upstream("B", "k", priced("m", 4)),
		upstream("N", "k", priced("m", 1)), upstream("P", "k", priced("m", 2)),
	}
	for i, p := range list {
		p.Translate = on
		if i > 1 {
			p.Surfaces = []wire.Surface{wire.Messages}
		}
	}
	return list
}

// TestTranslatedComeLast: a target that speaks the surface is preferred, unless the strategy
// has an order of its own.
func TestTranslatedComeLast(t *testing.T) {
	c := mustCatalog(t, twoVendors(true),
		virtual("turns", "round_robin", "N/m*3", "A/m", "P/m", "B/m"), virtual("cheap", "cost", "A/m", "N/m", "B/m"),
		virtual("order", "failover", "N/m", "A/m"), virtual("inner", "failover", "P/m", "B/m"), virtual("outer", "round_robin", "N/m", "inner"),
		virtual("foreign", "round_robin", "N/m", "P/m"))
	tests := []struct {
		model   string
		surface wire.Surface
		want    []string // plans one after another
	}{
		{"m", wire.Chat, []string{"A/k/m B/k/m N/k/m P/k/m"}},
		{"m", wire.Messages, []string{"N/k/m P/k/m A/k/m B/k/m"}},
		{"turns", wire.Chat, []string{"A/k/m B/k/m N/k/m P/k/m", "B/k/m A/k/m N/k/m P/k/m", "A/k/m B/k/m N/k/m P/k/m"}},
		{"cheap", wire.Chat, []string{"N/k/m A/k/m B/k/m"}},
		{"order", wire.Chat, []string{"N/k/m A/k/m"}},
		{"outer", wire.Chat, []string{"P/k/m B/k/m N/k/m", "P/k/m B/k/m N/k/m"}},
		{"foreign", wire.Chat, []string{"N/k/m P/k/m", "P/k/m N/k/m"}},
		{"foreign", wire.Responses, []string{""}},
		{"m", wire.Responses, []string{"A/k/m B/k/m"}},
	}
	for _, tt := range tests {
		draws := rotations{}
		for i, want := range tt.want {
			d := c.Plan(Input{Model: tt.model, Surface: tt.surface, Draw: draws.draw})
			if got := show(d.all()); got != want {
				t.Errorf("plan %d of %s on %s = %s, want %s", i, tt.model, tt.surface, got, want)
			}
			for _, a := range d.all() {
				if as, _ := a.Provider.As(tt.surface); a.As != as {
					t.Errorf("%s is called as %s, want %s", a.Provider.Identity, a.As, as)
				}
			}
		}
	}
}

func TestNoTranslationWhereItIsOffOrOfNoUse(t *testing.T) {
	on, off := mustCatalog(t, twoVendors(true)), mustCatalog(t, twoVendors(false))
	for name, d := range map[string]Decision{
		"off":    off.Plan(Input{Model: "m", Surface: wire.Chat}),
		"native": on.Plan(Input{Model: "m", Surface: wire.Chat, Native: true}),
	} {
		if got, want := show(d.all()), "A/k/m B/k/m"; got != want {
			t.Errorf("%s: attempts %s, want %s", name, got, want)
		}
		if got, want := showOut(d.Excluded), "N//m=surface P//m=surface"; got != want {
			t.Errorf("%s: excluded %s, want %s", name, got, want)
		}
	}
	e, _ := on.Entry("N/m", nil)
	if diff := cmp.Diff([]wire.Surface{wire.Messages, wire.Chat}, e.Surfaces); diff != "" {
		t.Errorf("surfaces of N/m (-want +got):\n%s", diff)
	}
}

// TestAPinOutlivesTheSurface: a session that has moved to a target that needs a translation
// stays there, and one that asks on another surface finds the same target.
func TestAPinOutlivesTheSurface(t *testing.T) {
	c := mustCatalog(t, twoVendors(true))
	for _, surface := range []wire.Surface{wire.Chat, wire.Messages} {
		d := c.Plan(Input{Model: "m", Surface: surface, Pin: pin("N k m")})
		if got, want := show(d.Attempts), "N/k/m!"; got != want || d.Reason != ReasonAffinity {
			t.Errorf("on %s: %s for %s, want %s for %s", surface, got, d.Reason, want, ReasonAffinity)
		}
	}
}
