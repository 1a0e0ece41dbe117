package route

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/health"
	"switchboard/internal/wire"
)

func leads(c *Catalog, model string) string {
	d := c.Plan(Input{Model: model, Surface: wire.Chat, EstimatedInput: 10})
	if !d.Known {
		return "-"
	}
	return show(d.Attempts)
}

func limited(v Virtual, paths ...string) Virtual {
	v.UserPaths = paths
	return v
}

func disabled(v Virtual) Virtual {
	v.Disabled = true
	return v
}

func TestUserPaths(t *testing.T) {
	c := mustCatalog(t, abc(),
		limited(virtual("v", "failover", "B/m"), "/team/a", "/ops"),
		limited(virtual("m", "failover", "C/m"), "/team/a"),
		limited(virtual("all", "failover", "A/m"), "/x", "/"),
		virtual("through", "failover", "v"))
	for userPath, want := range map[string][4]string{ // v, m, all, through
		"/team/a":   {"B/1/m", "C/1/m", "A/1/m", "B/1/m"},
		"/team/a/b": {"B/1/m", "C/1/m", "A/1/m", "B/1/m"},
		"/ops":      {"B/1/m", "B/1/m C/1/m A/1/m", "A/1/m", "B/1/m"},
		"/team/ab":  {"-", "B/1/m C/1/m A/1/m", "A/1/m", "B/1/m"},
		"/team":     {"-", "B/1/m C/1/m A/1/m", "A/1/m", "B/1/m"},
		"/Team/a":   {"-", "B/1/m C/1/m A/1/m", "A/1/m", "B/1/m"},
		"":          {"-", "B/1/m C/1/m A/1/m", "A/1/m", "B/1/m"},
	} {
		own := c.For(userPath)
		for i, model := range []string{"v", "m", "all", "through"} {
			if got := leads(own, model); got != want[i] {
				t.Errorf("for %q: %s = %q, want %q", userPath, model, got, want[i])
			}
		}
		listed := ""
		for _, e := range own.Entries(nil) {
			if e.Virtual {
				listed += e.ID + " "
			}
		}
		wantListed := "all "
		if want[1] == "C/1/m" {
			wantListed += "m "
		}
		wantListed += "through "
		if want[0] != "-" {
			wantListed += "v "
		}
		if listed != wantListed {
			t.Errorf("for %q: virtual entries = %q, want %q", userPath, listed, wantListed)
		}
		if _, ok := own.Entry("v", nil); ok != (want[0] != "-") {
			t.Errorf("for %q: Entry(v) = %v", userPath, ok)
		}
		if _, ok := own.Pins("v"); ok != (want[0] != "-") {
			t.Errorf("for %q: Pins(v) ok = %v", userPath, ok)
		}
	}
	if open := mustCatalog(t, abc(), virtual("v", "", "m")); open.For("/a") != open {
		t.Error("For copies a catalog in which everybody sees the same")
	}
}

func TestDisabledVirtualModels(t *testing.T) {
	c := mustCatalog(t, abc(),
		disabled(virtual("off", "failover", "B/m")),
		disabled(virtual("m", "failover", "C/m")),
		virtual("some", "failover", "off", "A/m"),
		virtual("none", "failover", "off"),
		virtual("none below", "failover", "none", "C/solo"),
		virtual("hidden", "failover", "m"))
	for model, want := range map[string]string{
		"off": "-", "m": "B/1/m C/1/m A/1/m", "some": "A/1/m", "none": "-", "none below": "C/1/solo", "hidden": "B/1/m C/1/m A/1/m",
	} {
		if got := leads(c, model); got != want {
			t.Errorf("%s = %q, want %q", model, got, want)
		}
		if got := c.HasVirtual(model); got != (want != "-" && model != "m") {
			t.Errorf("HasVirtual(%s) = %v", model, got)
		}
	}
}

// What is disabled is checked like all: enabling it must not be what breaks.
func TestDisabledVirtualModelsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		virtuals []Virtual
		want     VirtualError
	}{
		{[]Virtual{disabled(virtual("v", "", "Z/m"))}, VirtualError{Source: "v", Field: "targets[0].model"}},
		{[]Virtual{virtual("a", "", "m", "b"), disabled(virtual("b", "", "a"))}, VirtualError{Source: "a", Field: "targets", Chain: []string{"a", "b", "a"}}},
		{[]Virtual{disabled(virtual("m", "", "x")), virtual("x", "", "m")}, VirtualError{Source: "m", Field: "targets", Chain: []string{"m", "x", "m"}}},
		{[]Virtual{virtual("a", "", "m", "m*-1")}, VirtualError{Source: "a", Field: "targets[1].weight"}},
		{[]Virtual{virtual("a", "")}, VirtualError{Source: "a", Field: "targets"}},
		{[]Virtual{virtual("a", "quick", "m")}, VirtualError{Source: "a", Field: "strategy"}},
		{[]Virtual{virtual("", "", "m")}, VirtualError{Field: "source"}},
	} {
		_, err := NewCatalog(abc(), tt.virtuals)
		var got *VirtualError
		if !errors.As(err, &got) {
			t.Errorf("NewCatalog(%v) = %v, want a VirtualError", tt.virtuals, err)
			continue
		}
		if tt.want.Text = got.Text; got.Text == "" || strings.Contains(got.Text, "virtual model \"") {
			t.Errorf("text = %q", got.Text)
		}
		if diff := cmp.Diff(tt.want, *got); diff != "" {
			t.Errorf("NewCatalog(%v) (-want +got):\n%s", tt.virtuals, diff)
		}
	}
}

// With shares the providers and knows no other virtual models than it is given; what was
// taken before goes on as it was.
func TestWith(t *testing.T) {
	first := mustCatalog(t, abc(), virtual("v", "failover", "A/m"), virtual("w", "failover", "A/m"))
	second, err := first.With([]Virtual{virtual("v", "failover", "B/m")})
	if err != nil {
		t.Fatal(err)
	}
	for c, want := range map[*Catalog][2]string{first: {"A/1/m", "A/1/m"}, second: {"B/1/m", "-"}} {
		if got := [2]string{leads(c, "v"), leads(c, "w")}; got != want {
			t.Errorf("v, w = %q, want %q", got, want)
		}
	}
	if _, err := first.With([]Virtual{virtual("v", "", "v")}); err == nil {
		t.Error("With a circle = nil")
	}
}

// A virtual model's turn goes on when the virtual models are replaced.
func TestRotationGoesOnAcrossASwap(t *testing.T) {
	turns := rotations{}
	c := mustCatalog(t, abc(), virtual("v", "", "A/m", "B/m"))
	got := firsts(c, Input{Model: "v", Surface: wire.Chat, Draw: turns.draw}, 3)
	c, err := c.With([]Virtual{virtual("v", "", "A/m", "B/m"), virtual("other", "", "C/m")})
	if err != nil {
		t.Fatal(err)
	}
	if got += firsts(c, Input{Model: "v", Surface: wire.Chat, Draw: turns.draw}, 3); got != "ABABAB" {
		t.Errorf("first choices = %s, want ABABAB", got)
	}
}

func TestEntryShowsTheFirstTargetThatCanServe(t *testing.T) {
	blank := upstream("N", "", priced("n", 1))
	c := mustCatalog(t, append(abc(), blank), virtual("low", "", "C/m"), virtual("v", "cost", "N/n", "A/m", "low", "B/m"))
	for _, tt := range []struct {
		view health.View
		want string
	}{
		{nil, "A"},
		{sick(failed(health.ServerError, "A 1 m")), "C"},
		{sick(failed(health.ServerError, "A 1 m"), failed(health.Overloaded, "C 1 m")), "B"},
		{sick(failed(health.ServerError, "A 1 m"), failed(health.ServerError, "B 1 m"), failed(health.ServerError, "C 1 m")), "N"},
	} {
		if e, ok := c.Entry("v", tt.view); !ok || e.OwnedBy != tt.want || !e.Virtual {
			t.Errorf("Entry = %+v, %v, want it owned by %s", e, ok, tt.want)
		}
	}
	for id, want := range map[string]string{"A/m": "A", "m": "switchboard", "solo": "C"} {
		if e, ok := c.Entry(id, nil); !ok || e.OwnedBy != want || e.Virtual {
			t.Errorf("Entry(%s) = %+v, %v, want it owned by %s", id, e, ok, want)
		}
	}
	for _, id := range []string{"", "A/", "A/x", "nothing"} {
		if e, ok := c.Entry(id, nil); ok {
			t.Errorf("Entry(%q) = %+v, want none", id, e)
		}
	}
}
