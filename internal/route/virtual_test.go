package route

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

func abc() []*provider.Provider {
	return []*provider.Provider{
		upstream("A", "1", priced("m", 3), priced("free", -1)),
		upstream("B", "1", priced("m", 1)),
		upstream("C", "1", priced("m", 2), priced("solo", 1)),
	}
}

// firsts plans n times and returns who came first each time.
func firsts(c *Catalog, in Input, n int) string {
	var list []string
	for range n {
		list = append(list, c.Plan(in).Attempts[0].Provider.Identity)
	}
	return strings.Join(list, "")
}

func TestRoundRobinTakesTurnsByWeight(t *testing.T) {
	tests := []struct {
		targets string
		want    string
	}{
		{"A/m B/m C/m", "ABCABC"},
		{"C/m A/m", "CACACA"},
		{"A/m*2 B/m*1", "ABAABA"},
		{"A/m*5 B/m*1 C/m*1", "AABACAA"},
		{"A/m*500 B/m*100 C/m*100", "AABACAA"}, // reduced
		{"A/m*0 B/m*1", "ABAB"},                // not set is 1
		{"A/m*3", "AAA"},
		{"A/m B/m A/m", "ABAABA"}, // named twice, two turns
	}
	for _, tt := range tests {
		turns := rotations{}
		c := mustCatalog(t, abc(), virtual("v", "", strings.Fields(tt.targets)...))
		if got := firsts(c, Input{Model: "v", Surface: wire.Chat, Draw: turns.draw}, len(tt.want)); got != tt.want {
			t.Errorf("%s: first choices = %s, want %s", tt.targets, got, tt.want)
		}
	}
}

func TestRoundRobinFallsBackInOrderAndWraps(t *testing.T) {
	turns := rotations{}
	c := mustCatalog(t, abc(), virtual("v", "round_robin", "A/m", "B/m", "C/m"))
	for _, want := range []string{"A/1/m B/1/m C/1/m", "B/1/m C/1/m A/1/m", "C/1/m A/1/m B/1/m"} {
		if got := c.Plan(Input{Model: "v", Surface: wire.Chat, Draw: turns.draw}); show(got.Attempts) != want || got.Reason != ReasonRoundRobin {
			t.Errorf("Plan = %s (%s), want %s", show(got.Attempts), got.Reason, want)
		}
	}
}

// Over a round each member has its share, and with weights too big to lay out nearly so.
func TestSequenceSharesByWeight(t *testing.T) {
	for _, weights := range [][]int{{1}, {7, 3}, {1000, 1}, {1_000_000, 999_999}, {1 << 62, 1 << 62, 1}, {1, 1, 1, 1, 5000}} {
		members := make([]twig, len(weights))
		total := 0.0
		for i, w := range weights {
			members[i].weight = w
			total += float64(w)
		}
		turns := sequence(members)
		if len(turns) > maxSequence+len(weights) {
			t.Errorf("sequence(%v) has %d turns, want about %d at most", weights, len(turns), maxSequence)
		}
		for i, w := range weights {
			got := 0
			for _, turn := range turns {
				if int(turn) == i {
					got++
				}
			}
			share, want := float64(got)/float64(len(turns)), float64(w)/total
			if got == 0 || share < want-0.005 || share > want+0.005 {
				t.Errorf("sequence(%v): member %d has %d of %d turns, want a share of %.4f", weights, i, got, len(turns), want)
			}
		}
	}
}

// Targets of another surface take no turns: the others still share evenly.
func TestRoundRobinSharesAmongThoseOfTheSurface(t *testing.T) {
	providers := abc()
	providers[2].Surfaces = []wire.Surface{wire.Messages}
	turns := rotations{}
	c := mustCatalog(t, providers, virtual("v", "", "A/m", "C/m", "B/m"))
	if got := firsts(c, Input{Model: "v", Surface: wire.Chat, Draw: turns.draw}, 6); got != "ABABAB" {
		t.Errorf("first choices = %s, want ABABAB", got)
	}
}

func TestCostTakesCheapestAndUnpricedLast(t *testing.T) {
	tests := []struct{ targets, want string }{
		{"A/m B/m C/m", "B C A"},
		{"A/free A/m C/m", "C A A"},
		{"C/m B/m A/free", "B C A"},
		{"A/free", "A"},
		{"D/x A/free E/x", "D A E"}, // none priced: as written
		{"C/m F/m", "C F"},          // ties: as written
		{"F/m C/m", "F C"},
	}
	providers := append(abc(), upstream("D", "1"), upstream("E", "1"), upstream("F", "1", priced("m", 2)))
	for _, tt := range tests {
		c := mustCatalog(t, providers, virtual("v", "cost", strings.Fields(tt.targets)...))
		d := c.Plan(Input{Model: "v", Surface: wire.Chat, EstimatedInput: 1000})
		var got []string
		for _, a := range d.Attempts {
			got = append(got, a.Provider.Identity)
		}
		if strings.Join(got, " ") != tt.want || d.Reason != ReasonCost {
			t.Errorf("%s: Plan = %v (%s), want %s (cost)", tt.targets, got, d.Reason, tt.want)
		}
	}
}

func TestFailoverKeepsOrder(t *testing.T) {
	c := mustCatalog(t, abc(), virtual("v", "failover", "C/m", "A/m", "B/m", "C/m"))
	turns := rotations{}
	in := Input{Model: "v", Surface: wire.Chat, Draw: turns.draw}
	if got := c.Plan(in); show(got.Attempts) != "C/1/m A/1/m B/1/m" || got.Reason != ReasonFailover {
		t.Errorf("Plan = %s (%s)", show(got.Attempts), got.Reason)
	}
	in.Health = sick(failed(health.ServerError, "C 1 m"))
	if got := c.Plan(in); show(got.Attempts) != "A/1/m B/1/m" || got.Reason != ReasonFailover {
		t.Errorf("Plan with C down = %s (%s)", show(got.Attempts), got.Reason)
	}
	if len(turns) != 0 {
		t.Errorf("draws = %v, want none", turns)
	}
}

func TestNestedVirtualModelsExpandInPlace(t *testing.T) {
	virtuals := []Virtual{
		virtual("outer", "failover", "C/m", "inner", "A/m", "m"),
		virtual("inner", "cost", "A/m", "B/m"),
		virtual("turns", "round_robin", "inner", "C/m*1"),
		virtual("cheapest", "cost", "C/m", "inner"),
		virtual("plain", "failover", "A/free", "m"),
		virtual("wheel", "round_robin", "turning", "A/free"),
		virtual("turning", "round_robin", "B/m", "C/m"),
	}
	c := mustCatalog(t, abc(), virtuals...)
	tests := []struct{ model, first, second, third string }{
		{"outer", "C/1/m B/1/m A/1/m", "C/1/m B/1/m A/1/m", "C/1/m B/1/m A/1/m"},
		{"turns", "B/1/m A/1/m C/1/m", "C/1/m B/1/m A/1/m", "B/1/m A/1/m C/1/m"},
		{"cheapest", "B/1/m A/1/m C/1/m", "B/1/m A/1/m C/1/m", "B/1/m A/1/m C/1/m"},
		{"plain", "A/1/free B/1/m C/1/m A/1/m", "A/1/free B/1/m C/1/m A/1/m", "A/1/free B/1/m C/1/m A/1/m"},
		// The inner one takes its turn only when its choice comes first.
		{"wheel", "B/1/m C/1/m A/1/free", "A/1/free B/1/m C/1/m", "C/1/m B/1/m A/1/free"},
	}
	for _, tt := range tests {
		turns := rotations{}
		in := Input{Model: tt.model, Surface: wire.Chat, EstimatedInput: 10, Draw: turns.draw}
		for i, want := range []string{tt.first, tt.second, tt.third} {
			if got := show(c.Plan(in).Attempts); got != want {
				t.Errorf("%s, request %d: Plan = %s, want %s", tt.model, i, got, want)
			}
		}
	}
	if diff := slices.IndexFunc(c.Plan(Input{Model: "outer", Surface: wire.Chat}).Excluded, func(Exclusion) bool { return true }); diff >= 0 {
		t.Error("Excluded is not empty")
	}
}

// A virtual model that is named like a plain one hides it, and can still point to it.
func TestVirtualModelHidesPlainName(t *testing.T) {
	c := mustCatalog(t, abc(),
		virtual("m", "failover", "A/free", "m"), virtual("other", "failover", "m"), virtual("A/m", "failover", "A/m", "B/m"))
	tests := []struct{ model, want string }{
		{"m", "A/1/free B/1/m C/1/m A/1/m"},
		{"other", "A/1/free B/1/m C/1/m A/1/m"}, // means the virtual one
		{"A/m", "A/1/m B/1/m"},
		{"B/m", "B/1/m"},
	}
	for _, tt := range tests {
		if got := show(c.Plan(Input{Model: tt.model, Surface: wire.Chat, EstimatedInput: 10}).Attempts); got != tt.want {
			t.Errorf("Plan(%s) = %s, want %s", tt.model, got, tt.want)
		}
	}
}

func TestPins(t *testing.T) {
	off := virtual("off", "round_robin", "A/m")
	off.Affinity = false
	failover := virtual("failover", "failover", "A/m")
	inside := virtual("inside", "failover", "pinned")
	c := mustCatalog(t, append(abc(), upstream("any", "1")), off, failover, inside,
		virtual("pinned", "", "A/m"), virtual("cheap", "cost", "A/m"), virtual("outside", "round_robin", "failover", "off"))
	for model, want := range map[string][2]bool{
		"m": {true, true}, "A/m": {true, true}, "any/x": {true, true}, "pinned": {true, true}, "cheap": {true, true},
		"off": {false, true}, "failover": {false, true},
		"inside": {false, true}, "outside": {true, true}, // the outermost decides
		"unknown": {false, false}, "": {false, false}, "A/unknown": {false, false},
	} {
		if pins, ok := c.Pins(model); pins != want[0] || ok != want[1] {
			t.Errorf("Pins(%q) = %v, %v, want %v", model, pins, ok, want)
		}
	}
}

func TestNewCatalogRefuses(t *testing.T) {
	deep := func(n int) []Virtual {
		var list []Virtual
		for i := range n - 1 {
			list = append(list, virtual(fmt.Sprint("v", i), "", fmt.Sprint("v", i+1)))
		}
		return append(list, virtual(fmt.Sprint("v", n-1), "", "A/m"))
	}
	reversed := deep(9)
	slices.Reverse(reversed)
	tests := []struct {
		name      string
		providers []*provider.Provider
		virtuals  []Virtual
		want      []string // in the error; none: no error
	}{
		{"nothing", nil, nil, nil},
		{"8 deep", abc(), deep(8), nil},
		{"9 deep", abc(), deep(9), []string{`"v0"`, "8 deep"}},
		{"9 deep, the innermost first", abc(), reversed, []string{`"v0"`, "8 deep"}},
		{"a diamond", abc(), []Virtual{virtual("top", "", "l", "r"), virtual("l", "", "low"), virtual("r", "", "low"), virtual("low", "", "m")}, nil},
		{"itself", abc(), []Virtual{virtual("a", "", "a")}, []string{`"a"`, "a -> a"}},
		{"two in a circle", abc(), []Virtual{virtual("a", "", "b"), virtual("b", "", "a")}, []string{`"a"`, "a -> b -> a"}},
		{"two in a circle below another", abc(), []Virtual{virtual("x", "", "A/m", "a"), virtual("a", "", "b"), virtual("b", "", "A/m", "a")}, []string{`"a"`, ": a -> b -> a"}},
		{"a circle through a plain name's shadow", abc(), []Virtual{virtual("m", "", "x"), virtual("x", "", "m")}, []string{"m -> x -> m"}},
		{"a circle of nine", abc(), append(deep(8)[:7], virtual("v7", "", "v0")), []string{"v0 -> v1 -> v2 -> v3 -> v4 -> v5 -> v6 -> v7 -> v0"}},
		{"unknown target", abc(), []Virtual{virtual("v", "", "A/m", "A/nothing")}, []string{`"v"`, `"A/nothing"`}},
		{"unknown provider", abc(), []Virtual{virtual("v", "", "Z/m")}, []string{`"v"`, `"Z/m"`}},
		{"empty target", abc(), []Virtual{virtual("v", "", "")}, []string{`"v"`, `""`}},
		{"no targets", abc(), []Virtual{virtual("v", "")}, []string{`"v"`, "no targets"}},
		{"negative weight", abc(), []Virtual{virtual("v", "", "A/m*-1")}, []string{`"v"`, `"A/m"`, "-1"}},
		{"unknown strategy", abc(), []Virtual{virtual("v", "fastest", "A/m")}, []string{`"v"`, `"fastest"`, "round_robin, cost, failover"}},
		{"same name twice", abc(), []Virtual{virtual("v", "", "A/m"), virtual("v", "", "B/m")}, []string{`"v"`, "two"}},
		{"no name", abc(), []Virtual{virtual("", "", "A/m")}, []string{`""`}},
		{"provider twice", append(abc(), upstream("A", "1")), nil, []string{`"A"`, "two"}},
		{"slash in a provider", []*provider.Provider{upstream("A/B", "1")}, nil, []string{`"A/B"`}},
		{"model twice", []*provider.Provider{upstream("A", "1", priced("m", 1), priced("m", 2))}, nil, []string{`"A"`, `"m"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewCatalog(tt.providers, tt.virtuals)
			if (err != nil) != (tt.want != nil) {
				t.Fatalf("NewCatalog error = %v, want %q", err, tt.want)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("NewCatalog error = %v, want %q in it", err, part)
				}
			}
		})
	}
}

// Many ways lead to the same targets; a plan must not follow each of them.
func TestPlanOfManyDiamondsEnds(t *testing.T) {
	var list []Virtual
	for level := range maxDepth {
		below := make([]string, 40)
		for i := range below {
			below[i] = fmt.Sprint("v", level+1)
			if level == maxDepth-1 {
				below[i] = "m"
			}
		}
		list = append(list, virtual(fmt.Sprint("v", level), "", below...))
	}
	turns := rotations{}
	got := show(mustCatalog(t, abc(), list...).Plan(Input{Model: "v0", Surface: wire.Chat, Draw: turns.draw}).Attempts)
	if want := "B/1/m C/1/m A/1/m"; got != want {
		t.Errorf("Plan = %s, want %s", got, want)
	}
}
