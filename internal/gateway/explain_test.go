package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/affinity"
	"switchboard/internal/gateway"
	"switchboard/internal/mem"
	"switchboard/internal/upstreamtest"
)

// ask is a request of the tests' client as Explain takes it.
func ask(path, body string, headers ...string) gateway.Ask {
	r := post(path, body, headers...)
	return gateway.Ask{Method: r.Method, Path: path, Header: r.Header, Body: []byte(body)}
}

// explained is the explanation as JSON has it.
func explained(t testing.TB, e gateway.Explanation) string {
	t.Helper()
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestExplainANewSession(t *testing.T) {
	r := newRig(t, rigYAML(t))
	body := `{"model":"m-oai","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 80) + `"}]}`
	got := r.gateway.Explain(t.Context(), ask("/v1/chat/completions?beta=true", body, "X-Session-Id: s1"))
	name, tokens := "test", int64(len(body)/4)
	nano := tokens*2000 + 8_000_000
	cost := json.Number("")
	candidate := func(place int, provider string) gateway.Candidate {
		return gateway.Candidate{
			Target: gateway.Target{Provider: provider, KeyID: "1", Model: "m-oai"}, BillingModel: "pay_as_you_go", Place: place,
			EstimatedCostNanoUSD: &nano, EstimatedCost: &cost,
		}
	}
	to := gateway.Target{Provider: "A", KeyID: "1", Model: "m-oai"}
	want := gateway.Explanation{
		Request: gateway.RequestFacts{
			Method: "POST", Path: "/v1/chat/completions", APISurface: "openai-chat-completions", RequestedModel: "m-oai", Stream: true,
			ClientKey: &name, SessionID: "s1", SessionSource: "header:x-session-id", SessionKey: "s1", EstimatedInputTokens: tokens,
		},
		Affinity: "none", DecisionReason: "rank", MaxAttempts: 4,
		Attempts:   []gateway.Target{to, {Provider: "B", KeyID: "1", Model: "m-oai"}},
		Candidates: []gateway.Candidate{candidate(1, "A"), candidate(2, "B")},
		Writes: []gateway.Write{
			{Write: gateway.WriteClaim, When: gateway.BeforeCall, Target: to}, {Write: gateway.WriteConfirm, When: gateway.FirstOutput, Target: to},
		},
	}
	want.Candidates[0].EstimatedCost = got.Candidates[0].EstimatedCost // checked below
	want.Candidates[1].EstimatedCost = got.Candidates[1].EstimatedCost
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Explain (-want +got):\n%s", diff)
	}
	if number, err := got.Candidates[0].EstimatedCost.Float64(); err != nil || number != float64(nano)/1e9 {
		t.Errorf("estimated cost = %v, %v, want %d nano-USD", number, err, nano)
	}
}

// An explanation has no key in it, neither the client's nor a provider's, wherever it was sent.
func TestExplainShowsNoCredential(t *testing.T) {
	r := newRig(t, rigYAML(t))
	r.pin("s1", "m-oai", "A", "1", 3)
	for _, header := range []string{"X-Api-Key", "Api-Key", "Authorization", "Cookie", "X-Goog-Api-Key", "X-Anything"} {
		a := ask("/v1/chat/completions?key="+clientKey, chatBody, "X-Session-Id: s1", header+": "+clientKey)
		text := explained(t, r.gateway.Explain(t.Context(), a))
		for _, secret := range r.secrets {
			if strings.Contains(text, secret) {
				t.Errorf("with %s: the explanation shows %s:\n%s", header, secret, text)
			}
		}
	}
}

// What the data plane refuses is explained with the same status and code.
func TestExplainRefusals(t *testing.T) {
	r := newRig(t, rigYAML(t))
	for _, tt := range []struct {
		path, body string
		status     int
		code       string
	}{
		{"/v1/chat/completions", `{"model":"nobody's","messages":[]}`, 404, "model_not_found"},
		{"/v1/responses", `{"model":"m-ant","input":"x"}`, 404, "model_not_found"},
		{"/v1/chat/completions", `{"model":`, 400, ""},
		{"/v1/chat/completions", ``, 400, ""},
		{"/v1/chat/completions", `{"model":"a","model":"b"}`, 400, ""},
		{"/v1/chat/completions", `{"messages":[]}`, 400, "missing_field"},
	} {
		served := r.post(tt.path, tt.body)
		got := r.gateway.Explain(t.Context(), ask(tt.path, tt.body))
		if got.Refusal == nil || got.Refusal.Status != tt.status || served.status != tt.status || tt.code != "" && got.Refusal.Code != tt.code {
			t.Errorf("Explain(%s, %s) = %+v, want %d %s; the data plane answers %d", tt.path, tt.body, got.Refusal, tt.status, tt.code, served.status)
		}
		if got.DecisionReason != "unavailable" || len(got.Attempts)+len(got.Writes) > 0 {
			t.Errorf("Explain(%s, %s) = %s, want nothing tried", tt.path, tt.body, explained(t, got))
		}
	}
	for _, a := range []gateway.Ask{
		{Path: "/v1/nothing"},
		{Path: ""},
		{Path: "::"},
		{Path: "/v1/models", Method: "GET"},
		{Path: "/v1/chat/completions", Method: "GET"},
		{Path: "/v1/chat/completions\x00%zz"},
		{},
	} {
		if got := r.gateway.Explain(t.Context(), a); got.Refusal == nil || got.Refusal.Status != 404 && got.Refusal.Status != 405 {
			t.Errorf("Explain(%+v) = %+v, want 404 or 405", a, got.Refusal)
		}
	}
}

// Every way a pin can stand, and what would be written.
func TestExplainPins(t *testing.T) {
	sick := func(r *rig, provider string) {
		r.network.Set(provider, func(upstreamtest.Call) upstreamtest.Reply {
			return upstreamtest.JSON(429, `{"error":{"message":"slow down"}}`)
		})
		r.post("/v1/chat/completions", chatBody, "X-Session-Id: other")
	}
	for _, tt := range []struct {
		name     string
		prepare  func(r *rig)
		affinity string
		reason   string
		first    string
		usable   bool
		followed bool
		writes   string
	}{
		{"served", func(r *rig) { r.pin("s1", "m-oai", "B", "1", 2) }, "pinned", "affinity", "B", true, true, ""},
		{"claimed", func(r *rig) {
			pin := newPin("s1", "m-oai", "B", "1", 0)
			pin.Served = false
			r.store.Put(pin)
		}, "pinned", "affinity", "B", true, true, "confirm B"},
		{"not configured", func(r *rig) { r.pin("s1", "m-oai", "Z", "1", 2) }, "none", "rank", "A", false, false, "claim A, confirm A"},
		{"key not configured", func(r *rig) { r.pin("s1", "m-oai", "B", "7", 2) }, "none", "rank", "A", false, false, "claim A, confirm A"},
		{"another model", func(r *rig) {
			pin := newPin("s1", "m-oai", "B", "1", 2)
			pin.Target.Model = "m-emb"
			r.store.Put(pin)
		}, "pinned", "fallback", "A", true, false, "switch A"},
		{"degraded", func(r *rig) { r.pin("s1", "m-oai", "A", "1", 2); sick(r, "A") }, "pinned", "fallback", "B", true, false, "switch B"},
		{"claimed and degraded", func(r *rig) {
			pin := newPin("s1", "m-oai", "A", "1", 0)
			pin.Served = false
			r.store.Put(pin)
			sick(r, "A")
		}, "pinned", "fallback", "B", true, false, "move B"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, rigYAML(t))
				for _, name := range []string{"A", "B"} {
					r.network.Set(name, func(upstreamtest.Call) upstreamtest.Reply { return upstreamtest.JSON(200, chatAnswer) })
				}
				tt.prepare(r)
				got := r.gateway.Explain(t.Context(), ask("/v1/chat/completions", chatBody, "X-Session-Id: s1"))
				var writes []string
				for _, w := range got.Writes {
					writes = append(writes, w.Write+" "+w.Provider)
				}
				if got.Pin == nil || got.Pin.Usable != tt.usable || got.Pin.Followed != tt.followed || got.Affinity != tt.affinity ||
					got.DecisionReason != tt.reason || got.Attempts[0].Provider != tt.first || strings.Join(writes, ", ") != tt.writes {
					t.Errorf("Explain = %s, want %+v", explained(t, got), tt)
				}
			})
		})
	}
}

// Degraded candidates are there with the reason and the time, and what all of them come to.
func TestExplainNothingLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigYAML(t))
		for _, name := range []string{"A", "B"} {
			r.network.Set(name, func(upstreamtest.Call) upstreamtest.Reply {
				return upstreamtest.JSON(429, `{"error":{"message":"slow down"}}`)
			})
		}
		r.post("/v1/chat/completions", chatBody)
		time.Sleep(10 * time.Second)
		got := r.gateway.Explain(t.Context(), ask("/v1/chat/completions", chatBody))
		served := r.post("/v1/chat/completions", chatBody)
		if got.Refusal == nil || got.Refusal.Status != served.status || got.Refusal.Status != 429 || got.Refusal.RetryAfterSeconds != 50 {
			t.Errorf("refusal = %+v, the data plane answers %d", got.Refusal, served.status)
		}
		until := time.Now().Add(50 * time.Second).UTC()
		for _, c := range got.Candidates {
			want := &gateway.HealthFacts{State: "degraded", Reason: "rate_limited", RetryAt: &until}
			if diff := cmp.Diff(want, c.Health); diff != "" || c.Reason != "degraded" || c.Place != 0 || c.EstimatedCostNanoUSD == nil {
				t.Errorf("candidate %+v (-want +got):\n%s", c, diff)
			}
		}
		if len(got.Candidates) != 2 {
			t.Errorf("%d candidates, want 2", len(got.Candidates))
		}
	})
}

// A store that is down or slow costs the pin, as in a request, and nothing else.
func TestExplainWithoutAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigYAML(t))
		r.pin("s1", "m-oai", "B", "1", 0)
		r.restart(t, withStore(silentStore{r.store}))
		got := r.gateway.Explain(t.Context(), ask("/v1/chat/completions", chatBody, "X-Session-Id: s1"))
		if got.Affinity != "unknown" || got.Pin != nil || got.DecisionReason != "rank" || len(got.Writes) > 0 || len(got.Attempts) == 0 {
			t.Errorf("Explain = %s, want it ranked, with affinity unknown", explained(t, got))
		}
	})
}

type silentStore struct{ *mem.Store }

func (silentStore) Lookup(ctx context.Context, _ affinity.Ref, _ time.Time) (affinity.Pin, error) {
	<-ctx.Done()
	return affinity.Pin{}, ctx.Err()
}

// A tenant can be named; else it is that of the client key.
func TestExplainTenants(t *testing.T) {
	r := newRig(t, strings.Replace(rigYAML(t), `- {name: test, sha256: "{{sha256 ck-test-PPPPQQQQRRRRSSSS}}"}`,
		`- {name: test, sha256: "{{sha256 ck-test-PPPPQQQQRRRRSSSS}}", user_path: /team/alpha}`, 1))
	path := func(s string) *string { return &s }
	for _, tt := range []struct {
		given *string
		key   string
		want  string
		named bool
	}{
		{nil, clientKey, "/team/alpha", true},
		{nil, "another", "", false},
		{path("/team/beta"), clientKey, "/team/beta", true},
		{path("/team/beta/"), "", "/team/beta", false},
		{path(""), clientKey, "", true},
	} {
		a := ask("/v1/chat/completions", chatBody, "X-Session-Id: s1")
		a.Header.Set("Authorization", "Bearer "+tt.key)
		a.UserPath = tt.given
		got := r.gateway.Explain(t.Context(), a)
		if got.Request.UserPath != tt.want || (got.Request.ClientKey != nil) != tt.named || (got.Request.SessionKey == "s1") != (tt.want == "") {
			t.Errorf("Explain for %v with %q = %+v, want the path %q", tt.given, tt.key, got.Request, tt.want)
		}
	}
}

// count_tokens takes no pin; a response that is continued stays where it lives.
func TestExplainOfOtherKinds(t *testing.T) {
	r := newRig(t, rigYAML(t))
	got := r.gateway.Explain(t.Context(), ask("/v1/messages/count_tokens", `{"model":"m-ant","messages":[]}`, "X-Session-Id: s1"))
	if len(got.Writes) > 0 || got.Attempts[0].Provider != "N" {
		t.Errorf("Explain(count_tokens) = %s, want no write", explained(t, got))
	}
	alias := affinity.Alias{
		ResponseID: "resp_1", SessionKey: "s9", ClientSessionID: "s9", SessionSource: "header:x-session-id",
		Target: affinity.Target{Provider: "B", KeyID: "1", Model: "m-oai"}, ExpiresAt: time.Now().Add(time.Hour),
	}
	if err := r.store.PutAlias(t.Context(), alias); err != nil {
		t.Fatal(err)
	}
	got = r.gateway.Explain(t.Context(), ask("/v1/responses", `{"model":"m-oai","input":"hi","previous_response_id":"resp_1"}`))
	if got.Request.PreviousResponse == nil || got.Request.SessionID != "s9" || len(got.Attempts) != 1 || got.Attempts[0].Provider != "B" {
		t.Errorf("Explain(previous_response_id) = %s, want B alone", explained(t, got))
	}
	for _, c := range got.Candidates {
		if c.Provider == "A" && c.Reason != "home" {
			t.Errorf("candidate %+v, want it out because of the home", c)
		}
	}
}
