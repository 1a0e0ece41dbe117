package route

import (
	"fmt"
	"testing"

	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// Compare with benchstat: go test -bench . -count 10 ./internal/route > new.txt; benchstat old.txt new.txt

func fourProviders(keys string) []*provider.Provider {
	var list []*provider.Provider
	for i, price := range []float64{4, 1, 3, 2} {
		list = append(list, upstream(fmt.Sprint("provider-", i), keys, priced("m", price)))
	}
	return list
}

func BenchmarkPlan(b *testing.B) {
	quiet := health.NewBoard(health.Defaults()).View(start())
	trouble := sick(failed(health.Overloaded, "provider-0 k1 other"), failed(health.Unauthorized, "provider-3 k1 m"))
	turns := uint64(0)
	draw := func(string) uint64 { turns++; return turns }
	for _, bm := range []struct {
		name string
		keys string
		in   Input
	}{
		{"pinned", "k1 k2", Input{Model: "m", SessionKey: "s1", Pin: pin("provider-2 k2 m"), Health: quiet}},
		{"pinned, others degraded", "k1 k2", Input{Model: "m", SessionKey: "s1", Pin: pin("provider-2 k2 m"), Health: trouble}},
		{"explicit", "k1", Input{Model: "provider-2/m", Health: quiet}},
		{"rank of 4", "k1", Input{Model: "m", Health: quiet}},
		{"rank of 4, 2 keys each, session", "k1 k2", Input{Model: "m", SessionKey: "s1", Health: quiet}},
		{"rank of 4, 2 keys each, no session", "k1 k2", Input{Model: "m", Health: quiet}},
		{"round robin of 4", "k1", Input{Model: "v", Health: quiet}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			c := mustCatalog(b, fourProviders(bm.keys),
				virtual("v", "", "provider-0/m", "provider-1/m*3", "provider-2/m", "provider-3/m"))
			in := bm.in
			in.Surface, in.EstimatedInput, in.Draw = wire.Chat, 20_000, draw
			b.ReportAllocs()
			for b.Loop() {
				c.Plan(in)
			}
		})
	}
}

func BenchmarkNewCatalogOf1000Models(b *testing.B) {
	var providers []*provider.Provider
	for i := range 4 {
		p := upstream(fmt.Sprint("provider-", i), "k1 k2")
		for m := range 250 {
			p.Models = append(p.Models, priced(fmt.Sprint("model-", m), 1))
		}
		providers = append(providers, p)
	}
	b.ReportAllocs()
	for b.Loop() {
		mustCatalog(b, providers)
	}
}

// A pinned request, which nearly every one is, pays for its one attempt and nothing else.
func TestPinnedPlanAllocatesItsAttemptOnly(t *testing.T) {
	c := mustCatalog(t, fourProviders("k1 k2"))
	in := Input{
		Model: "m", Surface: wire.Chat, SessionKey: "s1", Pin: pin("provider-2 k2 m"),
		Health: health.NewBoard(health.Defaults()).View(start()), Draw: func(string) uint64 { return 0 },
	}
	if got := testing.AllocsPerRun(100, func() { c.Plan(in) }); got > 1 {
		t.Errorf("Plan of a pinned request = %v allocations, want 1", got)
	}
}
