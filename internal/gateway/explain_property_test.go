package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"switchboard/internal/affinity"
	"switchboard/internal/gateway"
	"switchboard/internal/health"
	vendor "switchboard/internal/provider"
	"switchboard/internal/record"
	"switchboard/internal/route"
	"switchboard/internal/upstreamtest"
	"switchboard/internal/wire"
)

// scene is a configuration, how its providers stand, its pins, and the requests that come.
type scene struct {
	providers []*vendor.Provider
	virtuals  []route.Virtual
	names     []string
	failures  []health.Outcome
	wait      time.Duration
	pins      []affinity.Pin
	requests  []sceneRequest
}

type sceneRequest struct {
	path, body, session string
	wait                time.Duration
	fails               []string // credentials that answer 429
}

func drawScene(t *rapid.T) scene {
	var s scene
	for i := range rapid.IntRange(1, 4).Draw(t, "providers") {
		identity := string(rune('A' + i))
		p := &vendor.Provider{
			Identity: identity, Type: "openai", BaseURL: "http://" + strings.ToLower(identity) + ".test/v1", StreamOptions: true,
			Surfaces: []wire.Surface{wire.Chat, wire.Responses}, StickyKeys: rapid.Bool().Draw(t, "sticky"),
			Billing: rapid.SampledFrom([]vendor.Billing{vendor.Subscription, vendor.PayAsYouGo, vendor.Free}).Draw(t, "billing"),
		}
		if rapid.IntRange(0, 4).Draw(t, "surfaces") == 0 {
			p.Surfaces = []wire.Surface{wire.Chat}
		}
		for k := range rapid.IntRange(0, 3).Draw(t, "keys") {
			text := fmt.Sprintf("sk-%s-%d-QQQQWWWW", identity, k)
			p.Keys = append(p.Keys, vendor.Key{ID: fmt.Sprint("k", k), Text: text, Print: vendor.KeyPrint(text)})
		}
		for _, id := range []string{"m", "n"} {
			if rapid.IntRange(0, 3).Draw(t, "lists") == 0 {
				continue
			}
			m := vendor.Model{ID: id, Upstream: id}
			if usd := rapid.IntRange(-1, 3).Draw(t, "price"); usd >= 0 {
				nano := int64(usd) * 1_000_000_000
				m.Pricing = &vendor.Pricing{Rates: vendor.Rates{Input: &nano, Output: &nano}}
			}
			p.Models = append(p.Models, m)
			s.names = append(s.names, id, identity+"/"+id)
		}
		s.providers = append(s.providers, p)
	}
	if len(s.names) > 0 {
		for i, strategy := range []string{"round_robin", "cost", "failover", "round_robin"} {
			v := route.Virtual{Source: fmt.Sprint("v", i), Strategy: strategy, Affinity: i < 3}
			for range rapid.IntRange(1, 4).Draw(t, "targets") {
				v.Targets = append(v.Targets, route.VirtualTarget{Model: rapid.SampledFrom(s.names).Draw(t, "target"), Weight: rapid.IntRange(0, 3).Draw(t, "weight")})
			}
			s.virtuals = append(s.virtuals, v)
			s.names = append(s.names, v.Source)
		}
	}
	s.names = append(s.names, "nobody's")
	s.drawStandings(t)
	for range rapid.IntRange(1, 12).Draw(t, "requests") {
		s.requests = append(s.requests, s.drawRequest(t))
	}
	return s
}

func (s *scene) drawStandings(t *rapid.T) {
	for range rapid.IntRange(0, 5).Draw(t, "failures") {
		p := rapid.SampledFrom(s.providers).Draw(t, "failing")
		o := health.Outcome{Provider: p.Identity, Model: rapid.SampledFrom([]string{"m", "n"}).Draw(t, "failing model"), Class: rapid.SampledFrom([]health.Class{
			health.RateLimited, health.NoCredit, health.Unauthorized, health.Overloaded, health.ModelNotFound, health.ServerError,
		}).Draw(t, "class")}
		if len(p.Keys) > 0 {
			o.KeyID = rapid.SampledFrom(p.Keys).Draw(t, "failing key").ID
		}
		s.failures = append(s.failures, o, o, o)
	}
	s.wait = time.Duration(rapid.IntRange(0, 120).Draw(t, "seconds")) * time.Second
	for range rapid.IntRange(0, 4).Draw(t, "pins") {
		pin := newPin(rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "pinned"), rapid.SampledFrom(s.names).Draw(t, "pinned model"),
			rapid.SampledFrom([]string{"A", "B", "C", "Z"}).Draw(t, "pin"), rapid.SampledFrom([]string{"k0", "k1", "k9", ""}).Draw(t, "pinned key"), 1)
		pin.Target.Model = rapid.SampledFrom([]string{"m", "n"}).Draw(t, "pin's model")
		pin.Served, pin.LastInputTokens = rapid.Bool().Draw(t, "served"), 1000
		s.pins = append(s.pins, pin)
	}
}

func (s *scene) drawRequest(t *rapid.T) sceneRequest {
	r := sceneRequest{
		session: rapid.SampledFrom([]string{"", "s1", "s2", "s3"}).Draw(t, "session"),
		wait:    time.Duration(rapid.IntRange(0, 40).Draw(t, "wait")) * time.Second,
	}
	model := rapid.SampledFrom(s.names).Draw(t, "model")
	r.path, r.body = "/v1/chat/completions", fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hi"}]}`, model)
	if rapid.IntRange(0, 3).Draw(t, "surface") == 0 {
		r.path, r.body = "/v1/responses", fmt.Sprintf(`{"model":%q,"input":"hi"}`, model)
	}
	for _, p := range s.providers {
		for _, k := range p.Keys {
			if rapid.IntRange(0, 5).Draw(t, "fails") == 0 {
				r.fails = append(r.fails, k.Text)
			}
		}
	}
	return r
}

// For whatever configuration, health, pins and requests: what Explain says first is what the
// data plane then does first, its writes are what is then written, and to explain changes
// nothing: not the pins, the health, or whose turn it is.
func TestExplainIsWhatHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScene(rt)
		problem := ""
		synctest.Test(t, func(t *testing.T) { problem = s.play(t) })
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

func (s scene) play(t *testing.T) string {
	catalog, err := route.NewCatalog(s.providers, s.virtuals)
	if err != nil {
		return err.Error()
	}
	board := health.NewBoard(health.Defaults())
	r := newRig(t, threeProviders, func(o *gateway.Options) { o.Catalog, o.Board = catalog, board })
	for _, o := range s.failures {
		board.Report(o, time.Now())
	}
	for _, pin := range s.pins {
		r.store.Put(pin)
	}
	time.Sleep(s.wait)
	var now sceneRequest
	for _, p := range s.providers {
		r.network.Set(p.Identity, func(c upstreamtest.Call) upstreamtest.Reply {
			if slices.Contains(now.fails, c.Credential()) {
				return upstreamtest.JSON(429, `{"error":{"message":"slow down"}}`)
			}
			return upstreamtest.JSON(200, chatAnswer)
		})
	}
	for _, now = range s.requests {
		time.Sleep(now.wait)
		var headers []string
		if now.session != "" {
			headers = append(headers, "X-Session-Id: "+now.session)
		}
		before := r.pinsBySession()
		got := r.gateway.Explain(t.Context(), ask(now.path, now.body, headers...))
		again := r.gateway.Explain(t.Context(), ask(now.path, now.body, headers...))
		if diff := cmp.Diff(got, again); diff != "" {
			return "explained twice (-first +second):\n" + diff
		}
		calls := len(r.network.Calls())
		if diff := cmp.Diff(before, r.pinsBySession()); diff != "" {
			return "explaining changed the pins (-before +after):\n" + diff
		}
		served := r.post(now.path, now.body, headers...)
		if problem := compare(got, served, r.network.Calls()[calls:], r.last(t)); problem != "" {
			return fmt.Sprintf("%s\n%+v\nexplained as %s\nwas %d %s\n%+v", problem, now, explained(t, got), served.status, served.text(), r.last(t))
		}
	}
	return ""
}

func (r *rig) pinsBySession() map[affinity.Ref]affinity.Pin {
	pins := map[affinity.Ref]affinity.Pin{}
	for _, pin := range r.store.Pins() {
		pins[pin.Ref] = pin
	}
	return pins
}

// compare holds what was said against what happened.
func compare(said gateway.Explanation, served *answer, calls []upstreamtest.Call, event record.Event) string {
	if said.Refusal != nil {
		if len(calls) > 0 || served.status != said.Refusal.Status {
			return "refused, it said"
		}
		return ""
	}
	if len(calls) == 0 || len(said.Attempts) == 0 {
		return "tried, it said"
	}
	first := event.Attempts[0]
	if to := (gateway.Target{Provider: first.Provider, KeyID: first.KeyID, Model: first.Model}); to != said.Attempts[0] {
		return fmt.Sprintf("the first call went to %+v", to)
	}
	if len(calls) > len(said.Attempts) {
		return "more calls than attempts"
	}
	tried := map[gateway.Target]bool{}
	for _, to := range said.Attempts {
		tried[to] = true
	}
	for _, a := range event.Attempts[:min(1, len(event.Attempts))] {
		if !tried[gateway.Target{Provider: a.Provider, KeyID: a.KeyID, Model: a.Model}] {
			return fmt.Sprintf("%+v is not among the attempts", a)
		}
	}
	if served.status != 200 || len(calls) != 1 {
		return "" // the rest depends on how attempts fail
	}
	wrote := ""
	for _, w := range said.Writes {
		wrote = w.Write
	}
	switch {
	case event.DecisionReason != said.DecisionReason:
		return "another reason"
	case event.Switched != (wrote == gateway.WriteSwitch):
		return "a switch"
	case (event.Affinity == string(affinity.StateAssigned)) != (len(said.Writes) == 2):
		return "a claim"
	case event.SessionID != said.Request.SessionID || event.SessionSource != said.Request.SessionSource:
		return "another session"
	}
	if wrote == gateway.WriteSwitch && (said.Writes[0].SwitchCostNanoUSD == nil) != (event.SwitchCostNanoUSD == nil) {
		return "the cost of the switch"
	}
	return ""
}
