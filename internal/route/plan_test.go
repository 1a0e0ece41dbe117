package route

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

func TestRankOrdersByBillingThenCostThenIdentity(t *testing.T) {
	billed := func(p *provider.Provider, b provider.Billing) *provider.Provider {
		p.Billing = b
		return p
	}
	providers := []*provider.Provider{
		billed(upstream("gratis", "1", priced("m", 0)), provider.Free),
		upstream("dear", "1", priced("m", 9)),
		upstream("unpriced", "1", priced("m", -1)),
		upstream("cheap-b", "1", priced("m", 2)),
		upstream("cheap-a", "1", priced("m", 2)),
		billed(upstream("flat", "1", priced("m", -1)), provider.Subscription),
		upstream("elsewhere", "1", priced("other", 1)),
	}
	got := mustCatalog(t, providers).Plan(Input{Model: "m", Surface: wire.Chat, EstimatedInput: 1000})
	want := "flat/1/m cheap-a/1/m cheap-b/1/m dear/1/m unpriced/1/m gratis/1/m"
	if show(got.Attempts) != want || got.Reason != ReasonRank || !got.Known || !got.Served {
		t.Errorf("Plan = %s (%s), want %s (rank)", show(got.Attempts), got.Reason, want)
	}
}

// The size of the prompt decides between a dear input and a dear output.
func TestRankDependsOnEstimatedInput(t *testing.T) {
	rates := func(in, out int64) provider.Model {
		in, out = in*1e9, out*1e9
		return provider.Model{ID: "m", Upstream: "m", Pricing: &provider.Pricing{Rates: provider.Rates{Input: &in, Output: &out}}}
	}
	c := mustCatalog(t, []*provider.Provider{upstream("A", "1", rates(1, 20)), upstream("B", "1", rates(4, 10))})
	for tokens, want := range map[int64]string{0: "B/1/m A/1/m", 1: "B/1/m A/1/m", 100_000_000: "A/1/m B/1/m"} {
		if got := show(c.Plan(Input{Model: "m", Surface: wire.Chat, EstimatedInput: tokens}).Attempts); got != want {
			t.Errorf("Plan with %d tokens = %s, want %s", tokens, got, want)
		}
	}
}

// Names: virtual, then plain, then provider/model at the first slash.
func TestNamesResolveInOrder(t *testing.T) {
	real := provider.Model{ID: "m-big", Upstream: "real-big-1"}
	providers := []*provider.Provider{
		upstream("A", "1", priced("m", 1), real),
		upstream("B", "1", priced("m", 2), priced("A/m-big", 1), priced("deep/er/m", 1)),
		upstream("any", "1"),
	}
	c := mustCatalog(t, providers, virtual("B/m", "", "A/m"), virtual("m2", "failover", "any/x/y"))
	tests := []struct{ model, reason, want string }{
		{"m", ReasonRank, "A/1/m B/1/m"},
		{"A/m", ReasonExplicit, "A/1/m"},
		{"B/m", ReasonRoundRobin, "A/1/m"}, // a virtual model hides it
		{"m-big", ReasonRank, "A/1/real-big-1"},
		{"A/m-big", ReasonRank, "B/1/A/m-big"}, // a plain name hides it
		{"A/real-big-1", ReasonUnavailable, ""},
		{"deep/er/m", ReasonRank, "B/1/deep/er/m"},
		{"B/deep/er/m", ReasonExplicit, "B/1/deep/er/m"},
		{"B/A/m-big", ReasonExplicit, "B/1/A/m-big"},
		{"any/thing", ReasonExplicit, "any/1/thing"}, // lists none: takes any
		{"any/thing/at/all", ReasonExplicit, "any/1/thing/at/all"},
		{"m2", ReasonFailover, "any/1/x/y"},
		{"thing", ReasonUnavailable, ""}, // only when asked for by provider
		{"any/", ReasonUnavailable, ""},
		{"/m", ReasonUnavailable, ""},
		{"A/other", ReasonUnavailable, ""},
		{"a/m", ReasonUnavailable, ""},
		{"M", ReasonUnavailable, ""},
		{"A", ReasonUnavailable, ""},
		{"", ReasonUnavailable, ""},
	}
	for _, tt := range tests {
		t.Run(tt.model, func(t *testing.T) {
			got := c.Plan(Input{Model: tt.model, Surface: wire.Chat})
			if show(got.Attempts) != tt.want || got.Reason != tt.reason || got.Known != (tt.want != "") {
				t.Errorf("Plan = %s (%s, known %v), want %s (%s)", show(got.Attempts), got.Reason, got.Known, tt.want, tt.reason)
			}
			if _, ok := c.Pins(tt.model); ok != got.Known {
				t.Errorf("Pins knows the model: %v, want %v", ok, got.Known)
			}
		})
	}
}

func TestSurfaceAndKeysFilter(t *testing.T) {
	messages := upstream("N", "1", priced("m", 1))
	messages.Surfaces = []wire.Surface{wire.Messages}
	keyless := upstream("K", "", priced("m", 1))
	blank := upstream("L", "", priced("m", 1))
	blank.Keys = []provider.Key{{ID: "1"}}
	open := upstream("O", "", priced("m", 5))
	open.NoAuth = true
	c := mustCatalog(t, []*provider.Provider{messages, keyless, blank, open, upstream("A", "1", priced("m", 9))})
	tests := []struct {
		surface wire.Surface
		want    string
		out     string
		served  bool
	}{
		{wire.Chat, "O//m A/1/m", "K//m=no_key L//m=no_key N//m=surface", true},
		{wire.Messages, "N/1/m", "A//m=surface K//m=surface L//m=surface O//m=surface", true},
		{wire.Embeddings, "", "A//m=surface K//m=surface L//m=surface N//m=surface O//m=surface", false},
		{"tomorrow", "", "A//m=surface K//m=surface L//m=surface N//m=surface O//m=surface", false},
	}
	for _, tt := range tests {
		got := c.Plan(Input{Model: "m", Surface: tt.surface})
		if show(got.Attempts) != tt.want || showOut(got.Excluded) != tt.out || got.Served != tt.served || !got.Known {
			t.Errorf("Plan(%s) = %s, excluded %s, served %v; want %s, excluded %s, served %v",
				tt.surface, show(got.Attempts), showOut(got.Excluded), got.Served, tt.want, tt.out, tt.served)
		}
		if (got.Reason == ReasonUnavailable) != (tt.want == "") {
			t.Errorf("Plan(%s).Reason = %s", tt.surface, got.Reason)
		}
	}
}

func TestDegradedAreLeftOutAndTrialsMarked(t *testing.T) {
	c := mustCatalog(t, []*provider.Provider{
		upstream("A", "k1 k2", priced("m", 1), priced("n", 1)), upstream("B", "k1", priced("m", 2)),
	})
	view := sick(failed(health.Unauthorized, "A k1 m"), failed(health.ServerError, "B k1 m"))
	got := c.Plan(Input{Model: "m", Surface: wire.Chat, Health: view})
	if show(got.Attempts) != "A/k2/m" || showOut(got.Excluded) != "A/k1/m=degraded:unauthorized B/k1/m=degraded:server_error" {
		t.Errorf("Plan = %s, excluded %s", show(got.Attempts), showOut(got.Excluded))
	}
	if wait, ok := got.RetryAfter(start().Add(10 * time.Second)); !ok || wait != 20*time.Second {
		t.Errorf("RetryAfter = %v, %v, want 20s, true", wait, ok)
	}
	if wait, ok := got.RetryAfter(start().Add(time.Hour)); !ok || wait != 0 {
		t.Errorf("RetryAfter long after = %v, %v, want 0, true", wait, ok)
	}

	board := health.NewBoard(health.Defaults())
	board.Report(failed(health.Overloaded, "A k1 m"), start())
	got = c.Plan(Input{Model: "m", Surface: wire.Chat, Health: board.View(start().Add(time.Minute))})
	if show(got.Attempts) != "A/k1/m? A/k2/m? B/k1/m" || len(got.Excluded) != 0 {
		t.Errorf("Plan after the degradation = %s, excluded %s", show(got.Attempts), showOut(got.Excluded))
	}

	view = sick(failed(health.Unauthorized, "A k1 m"), failed(health.Unauthorized, "A k2 m"), failed(health.Unauthorized, "B k1 m"))
	got = c.Plan(Input{Model: "m", Surface: wire.Chat, Health: view})
	if _, ok := got.RetryAfter(start()); ok || len(got.Attempts) != 0 || got.Reason != ReasonUnavailable || len(got.Excluded) != 3 {
		t.Errorf("Plan with dead keys = %s (%s), excluded %s, RetryAfter %v", show(got.Attempts), got.Reason, showOut(got.Excluded), ok)
	}
}

func TestPin(t *testing.T) {
	messages := upstream("N", "k1", priced("m", 1))
	messages.Surfaces = []wire.Surface{wire.Messages}
	c := mustCatalog(t, []*provider.Provider{
		upstream("A", "k1 k2", priced("m", 1)), upstream("B", "k1", priced("m", 2), priced("n", 1)), messages,
	}, virtual("v", "", "A/m", "B/n"))
	tests := []struct {
		name, model, pin string
		health           health.View
		reason, want     string
	}{
		{"best", "m", "A k2 m", nil, ReasonAffinity, "A/k2/m! A/k1/m B/k1/m"},
		{"worse stays", "m", "B k1 m", nil, ReasonAffinity, "B/k1/m! A/k1/m A/k2/m"},
		{"explicit", "A/m", "A k1 m", nil, ReasonAffinity, "A/k1/m! A/k2/m"},
		{"virtual", "v", "B k1 n", nil, ReasonAffinity, "B/k1/n! A/k1/m A/k2/m"},
		{"only candidate", "n", "B k1 n", nil, ReasonAffinity, "B/k1/n!"},

		{"unknown provider", "m", "X k1 m", nil, ReasonFallback, "A/k1/m A/k2/m B/k1/m"},
		{"key is gone", "m", "A k9 m", nil, ReasonFallback, "A/k1/m A/k2/m B/k1/m"},
		{"model not of this name", "m", "B k1 n", nil, ReasonFallback, "A/k1/m A/k2/m B/k1/m"},
		{"model not of this virtual model", "v", "B k1 m", nil, ReasonFallback, "A/k1/m A/k2/m B/k1/n"},
		{"other surface", "m", "N k1 m", nil, ReasonFallback, "A/k1/m A/k2/m B/k1/m"},
		{"degraded key", "m", "A k1 m", sick(failed(health.RateLimited, "A k1 m")), ReasonFallback, "A/k2/m B/k1/m"},
		{"degraded provider", "m", "A k1 m", sick(failed(health.ServerError, "A k2 m")), ReasonFallback, "B/k1/m"},
		{"degraded model", "m", "A k1 m", sick(failed(health.Overloaded, "A k2 m")), ReasonFallback, "B/k1/m"},
		{"another's trouble", "m", "A k1 m", sick(failed(health.RateLimited, "A k2 m")), ReasonAffinity, "A/k1/m! B/k1/m"},
		{"nobody left", "n", "B k1 n", sick(failed(health.ServerError, "B k1 n")), ReasonUnavailable, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := c.Plan(Input{Model: tt.model, Surface: wire.Chat, Pin: pin(tt.pin), Health: tt.health})
			if all := show(got.all()); all != tt.want || got.Reason != tt.reason {
				t.Errorf("Plan = %s (%s), want %s (%s)", all, got.Reason, tt.want, tt.reason)
			}
			if got.Reason != ReasonAffinity && got.More() != nil {
				t.Errorf("More = %s, want nil", show(got.More()))
			}
			if got.Reason == ReasonAffinity && len(got.Attempts) != 1 {
				t.Errorf("Attempts = %s, want the pinned one alone", show(got.Attempts))
			}
		})
	}
}

// A pin whose degradation has run out may be the trial: it is still where the cache is.
func TestPinOnTrial(t *testing.T) {
	c := mustCatalog(t, []*provider.Provider{upstream("A", "k1", priced("m", 1)), upstream("B", "k1", priced("m", 2))})
	board := health.NewBoard(health.Defaults())
	board.Report(failed(health.Overloaded, "B k1 m"), start())
	later := start().Add(time.Minute)
	got := c.Plan(Input{Model: "m", Surface: wire.Chat, Pin: pin("B k1 m"), Health: board.View(later)})
	if show(got.all()) != "B/k1/m!? A/k1/m" || got.Reason != ReasonAffinity {
		t.Errorf("Plan = %s (%s)", show(got.all()), got.Reason)
	}
	board.Probe(context.Background(), "B", "k1", "m", later, time.Minute)
	got = c.Plan(Input{Model: "m", Surface: wire.Chat, Pin: pin("B k1 m"), Health: board.View(later)})
	if show(got.all()) != "A/k1/m" || got.Reason != ReasonFallback {
		t.Errorf("Plan during the trial = %s (%s)", show(got.all()), got.Reason)
	}
}

func TestHome(t *testing.T) {
	c := mustCatalog(t, []*provider.Provider{
		upstream("A", "k1 k2", priced("m", 1), priced("n", 1)), upstream("B", "k1", priced("m", 2)),
	}, virtual("v", "failover", "B/m", "A/m", "A/n"))
	tests := []struct {
		name, model, home, pin string
		health                 health.View
		want, out              string
	}{
		{"there", "m", "B k1 m", "", nil, "B/k1/m", "A/k1/m=home A/k2/m=home"},
		{"against the pin", "m", "A k2 m", "B k1 m", nil, "A/k2/m", "A/k1/m=home B/k1/m=home"},
		{"with the pin", "m", "A k2 m", "A k2 m", nil, "A/k2/m!", "A/k1/m=home B/k1/m=home"},
		{"another model there", "n", "A k2 m", "", nil, "A/k2/n", "A/k1/n=home"},
		{"own model of a virtual one", "v", "A k1 n", "", nil, "A/k1/n", "B/k1/m=home A/k1/m=home A/k2/m=home A/k2/n=home"},
		{"degraded", "m", "A k1 m", "", sick(failed(health.RateLimited, "A k1 m")), "", "A/k1/m=degraded:rate_limited A/k2/m=home B/k1/m=home"},
		{"others degraded", "m", "A k1 m", "", sick(failed(health.RateLimited, "A k2 m")), "A/k1/m", "A/k2/m=home B/k1/m=home"},
		{"model elsewhere", "n", "B k1 m", "", nil, "", "A/k1/n=home A/k2/n=home B/k1/m=unknown"},
		{"key is gone", "m", "A k9 m", "", nil, "", "A/k1/m=home A/k2/m=home B/k1/m=home A/k9/m=unknown"},
		{"provider is gone", "m", "X k1 m", "", nil, "", "A/k1/m=home A/k2/m=home B/k1/m=home X/k1/m=unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := Input{Model: tt.model, Surface: wire.Responses, Home: at(tt.home), Health: tt.health}
			if tt.pin != "" {
				in.Pin = pin(tt.pin)
			}
			got := c.Plan(in)
			if show(got.all()) != tt.want || showOut(got.Excluded) != tt.out {
				t.Errorf("Plan = %q, excluded %s; want %q, excluded %s", show(got.all()), showOut(got.Excluded), tt.want, tt.out)
			}
			if want := map[bool]string{true: ReasonAffinity, false: ReasonUnavailable}[tt.want != ""]; got.Reason != want {
				t.Errorf("Reason = %s, want %s", got.Reason, want)
			}
		})
	}
}

// S-AFF-04: a session that was moved stays where it is when the better provider recovers,
// whatever the strategy; new sessions may use that one.
func TestSAFF04_RecoveredProviderDoesNotTakeSessionBack(t *testing.T) {
	providers := []*provider.Provider{
		upstream("A", "k1", priced("m", 1)), upstream("B", "k1", priced("m", 2)), upstream("C", "k1", priced("m", 3)),
	}
	for _, strategy := range []string{ReasonRank, ReasonRoundRobin, ReasonCost, ReasonFailover} {
		c, model := mustCatalog(t, providers), "m"
		if strategy != ReasonRank {
			model = "v"
			c = mustCatalog(t, providers, virtual("v", strategy, "A/m", "B/m", "C/m"))
		}
		board := health.NewBoard(health.Defaults())
		for range 3 {
			board.Report(failed(health.ServerError, "A k1 m"), start())
		}
		board.Report(failed(health.OK, "A k1 m"), start().Add(time.Minute))
		turns := rotations{}
		in := Input{Model: model, Surface: wire.Chat, SessionKey: "s1", Health: board.View(start().Add(time.Minute)), Draw: turns.draw}
		for r := range 3 {
			pinned := in
			pinned.Pin = pin("B k1 m")
			pinned.Pin.SwitchCount = 1
			if got := c.Plan(pinned); show(got.Attempts) != "B/k1/m!" || got.Reason != ReasonAffinity {
				t.Errorf("%s: r%d = %s (%s), want B/k1/m! (affinity)", strategy, r, show(got.Attempts), got.Reason)
			}
		}
		if got := show(c.Plan(in).Attempts[:1]); got != "A/k1/m" {
			t.Errorf("%s: a new session goes to %s, want A/k1/m", strategy, got)
		}
	}
}

// S-AFF-05: a session has one pin per requested model; a pin of one model says nothing of
// another.
func TestSAFF05_SubAgentsKeepTheirModelsApart(t *testing.T) {
	c := mustCatalog(t, []*provider.Provider{
		upstream("A", "k1 k2 k3", priced("m-big", 5)), upstream("C", "k1 k2 k3", priced("m-small", 1)),
	})
	pins := map[string]string{}
	for r, model := range strings.Fields("m-big m-small m-big m-small m-small m-big m-big m-small") {
		in := Input{Model: model, Surface: wire.Chat, SessionKey: "s1"}
		if at := pins[model]; at != "" {
			in.Pin = pin(at)
		}
		got := c.Plan(in)
		a := got.Attempts[0]
		place := fmt.Sprintf("%s %s %s", a.Provider.Identity, a.Key.ID, a.Model.Upstream)
		if was := pins[model]; was != "" && was != place {
			t.Errorf("r%d %s goes to %s, want %s", r, model, place, was)
		}
		if want := map[string]string{"m-big": "A", "m-small": "C"}[model]; a.Provider.Identity != want {
			t.Errorf("r%d %s goes to %s, want %s", r, model, a.Provider.Identity, want)
		}
		pins[model] = place
	}
	// The other model's pin is never followed.
	in := Input{Model: "m-small", Surface: wire.Chat, SessionKey: "s1", Pin: pin(pins["m-big"])}
	if got := c.Plan(in).Attempts[0]; got.Provider.Identity != "C" || got.Pinned {
		t.Errorf("m-small with m-big's pin goes to %s", show([]Attempt{got}))
	}
}
