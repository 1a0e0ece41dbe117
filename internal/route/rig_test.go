package route

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

func start() time.Time { return time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC) }

// priced is a model at so many dollars per million tokens, in and out; below 0 it has no price.
func priced(id string, usd float64) provider.Model {
	m := provider.Model{ID: id, Upstream: id}
	if usd >= 0 {
		nano := int64(usd * 1e9)
		m.Pricing = &provider.Pricing{Rates: provider.Rates{Input: &nano, Output: &nano}}
	}
	return m
}

// upstream is a provider on chat and responses with one key per name.
func upstream(identity, keys string, models ...provider.Model) *provider.Provider {
	p := &provider.Provider{
		Identity: identity, Type: "openai", StickyKeys: true, Billing: provider.PayAsYouGo,
		Surfaces: []wire.Surface{wire.Chat, wire.Responses}, Models: models,
	}
	for _, id := range strings.Fields(keys) {
		p.Keys = append(p.Keys, provider.Key{ID: id, Text: identity + "-secret-" + id})
	}
	return p
}

func mustCatalog(t testing.TB, providers []*provider.Provider, virtuals ...Virtual) *Catalog {
	t.Helper()
	c, err := NewCatalog(providers, virtuals)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// virtual makes a virtual model; a target may end in *weight.
func virtual(source, strategy string, targets ...string) Virtual {
	v := Virtual{Source: source, Strategy: strategy, Affinity: true}
	for _, text := range targets {
		t := VirtualTarget{Model: text}
		if at := strings.LastIndex(text, "*"); at > 0 {
			t.Model = text[:at]
			fmt.Sscan(text[at+1:], &t.Weight) //nolint:errcheck // a test's own text
		}
		v.Targets = append(v.Targets, t)
	}
	return v
}

// rotations counts draws as the gateway does.
type rotations map[string]uint64

func (r rotations) draw(name string) uint64 {
	n := r[name]
	r[name] = n + 1
	return n
}

func at(text string) *affinity.Target {
	f := strings.SplitN(text, " ", 3)
	return &affinity.Target{Provider: f[0], KeyID: f[1], Model: f[2]}
}

func pin(text string) *affinity.Pin { return &affinity.Pin{Target: *at(text), Served: true, Epoch: 1} }

// show writes attempts as "A/k1/m", with ! for pinned and ? for trial.
func show(attempts []Attempt) string {
	var list []string
	for _, a := range attempts {
		text := a.Provider.Identity + "/" + a.Key.ID + "/" + a.Model.Upstream
		if a.Pinned {
			text += "!"
		}
		if a.Trial {
			text += "?"
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

func showOut(list []Exclusion) string {
	var texts []string
	for _, out := range list {
		text := out.Provider + "/" + out.KeyID + "/" + out.Model + "=" + out.Reason
		if out.Reason == OutDegraded {
			text += ":" + string(out.Status.Class)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

// all is every attempt of a decision, in the order in which they are made.
func (d Decision) all() []Attempt {
	return append(d.Attempts[:len(d.Attempts):len(d.Attempts)], d.More()...)
}

// sick returns a view at start() on which the outcomes were reported.
func sick(outcomes ...health.Outcome) health.View {
	settings := health.Defaults()
	settings.ServerErrorAfter = 1
	b := health.NewBoard(settings)
	for _, o := range outcomes {
		b.Report(o, start())
	}
	return b.View(start())
}

func failed(class health.Class, target string) health.Outcome {
	t := at(target)
	return health.Outcome{Provider: t.Provider, KeyID: t.KeyID, Model: t.Model, Class: class}
}
