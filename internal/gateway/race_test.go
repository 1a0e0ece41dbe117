package gateway_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"switchboard/internal/upstreamtest"
)

const (
	chatBody   = `{"model":"m-oai","messages":[{"role":"user","content":"hi"}]}`
	streamBody = `{"model":"m-oai","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`
	chatAnswer = `{"id":"c1","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hi"}}],"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}}`
)

// parallel is how many requests of one session run at once.
const parallel = 40

// burst sends n requests of a session at once and returns the answers.
func burst(r *rig, n int, session string) []*answer {
	answers := make([]*answer, n)
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range answers {
		all.Go(func() {
			<-start
			answers[i] = r.post("/v1/chat/completions", chatBody, "X-Session-Id: "+session)
		})
	}
	close(start)
	all.Wait()
	return answers
}

// rotating is a configuration whose first choices differ from request to request, so that
// racing requests would go apart if nothing held them together.
const rotating = `
auth:
  keys: [{name: test, sha256: "{{sha256 ck-test-PPPPQQQQRRRRSSSS}}"}]
providers:
  A: {type: openai, base_url: "http://a.test/v1", api_keys: [{id: a1, key: sk-a-1-AAAABBBB}, {id: a2, key: sk-a-2-CCCCDDDD}], models: [m-up]}
  B: {type: openai, base_url: "http://b.test/v1", api_keys: [{id: b1, key: sk-b-1-EEEEFFFF}, {id: b2, key: sk-b-2-GGGGHHHH}], models: [m-up]}
  C: {type: openai, base_url: "http://c.test/v1", api_keys: [{id: c1, key: sk-c-1-IIIIJJJJ}], models: [m-up]}
virtual_models:
  - source: m-oai
    strategy: round_robin
    targets: [{model: A/m-up}, {model: B/m-up}, {model: C/m-up}]
`

// S-DB-02: with read-then-write two first requests both won, and a session had two providers
// or keys. One conditional write wins; the losers use the winner's provider and key.
func TestSDB02FirstRequestsAtOnce(t *testing.T) {
	for round := range 10 {
		r := newRig(t, rotating)
		for _, name := range []string{"A", "B", "C"} {
			r.network.Set(name, upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
		}
		for _, a := range burst(r, parallel, "s1") {
			if a.status != 200 {
				t.Fatalf("status = %d, want 200: %s", a.status, a.text())
			}
		}
		row, ok := r.row("s1", "m-oai")
		if !ok || row.SwitchCount != 0 || !row.Served || row.Requests != parallel {
			t.Fatalf("row = %+v, %v, want one served pin with %d requests and no switch", row, ok, parallel)
		}
		for _, call := range r.network.Calls() {
			if call.Upstream != row.Provider || call.Credential() != r.keyText(row.Provider, row.KeyID) {
				t.Fatalf("round %d: a request went to %s with %s, the pin is %s/%s", round, call.Upstream, call.Credential(), row.Provider, row.KeyID)
			}
		}
		if n := len(r.recorder.Events()); n != parallel {
			t.Errorf("%d events, want %d", n, parallel)
		}
	}
}

func (r *rig) keyText(provider, keyID string) string {
	for _, p := range r.cfg.Providers {
		for _, k := range p.Keys {
			if p.Identity == provider && k.ID == keyID {
				return k.Text
			}
		}
	}
	return "no such key"
}

// S-DB-03 a: lost updates on counters.
func TestSDB03UsageAddsUp(t *testing.T) {
	r := newRig(t, rigYAML(t))
	r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
	r.pin("s1", "m-oai", "A", "1", 0)
	burst(r, parallel, "s1")
	row, _ := r.row("s1", "m-oai")
	if row.InputTokens != 10*parallel || row.OutputTokens != parallel || row.Requests != parallel || row.CostNanoUSD != 28000*parallel {
		t.Errorf("row = %+v, want %d input, %d output, %d requests", row, 10*parallel, parallel, parallel)
	}
}

// S-DB-03 b: two requests both saw A fail and both want B: one switch, counted once, and
// told by exactly one event.
func TestSDB03SwitchCountsOnce(t *testing.T) {
	for range 10 {
		r := newRig(t, rigYAML(t))
		var arrived sync.WaitGroup
		arrived.Add(parallel)
		r.network.Set("A", func(upstreamtest.Call) upstreamtest.Reply {
			arrived.Done()
			arrived.Wait() // all of them see A fail
			return upstreamtest.JSON(429, `{"error":{"message":"slow"}}`).With("Retry-After", "60")
		})
		r.network.Set("B", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
		r.pin("s1", "m-oai", "A", "1", 5)
		for _, a := range burst(r, parallel, "s1") {
			if a.status != 200 {
				t.Fatalf("status = %d, want 200: %s", a.status, a.text())
			}
		}
		row, _ := r.row("s1", "m-oai")
		if row.Provider != "B" || row.SwitchCount != 6 || row.Requests != parallel {
			t.Fatalf("row = %+v, want B after one more switch and %d requests", row, parallel)
		}
		switched := 0
		for _, e := range r.recorder.Events() {
			if e.Switched {
				switched++
			}
			if e.SwitchCount == nil || *e.SwitchCount != 6 {
				t.Errorf("event says %v switches, want 6", e.SwitchCount)
			}
		}
		if switched != 1 {
			t.Fatalf("%d events say switched, want 1", switched)
		}
	}
}

// S-DB-03: racing requests that fail over to different providers. One move stands and counts, and
// the row's totals are those of all, whoever served them.
func TestSDB03RacingFailoversAreAllCounted(t *testing.T) {
	r := newRig(t, rotating)
	var arrived sync.WaitGroup
	arrived.Add(parallel)
	r.network.Set("A", func(c upstreamtest.Call) upstreamtest.Reply {
		if c.N <= parallel {
			arrived.Done()
			arrived.Wait()
		}
		return upstreamtest.JSON(503, `{"error":{"message":"down"}}`)
	})
	r.network.Set("B", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
	r.network.Set("C", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
	p := newPin("s1", "m-oai", "A", "a1", 0)
	p.Target.Model = "m-up"
	r.store.Put(p)
	for _, a := range burst(r, parallel, "s1") {
		if a.status != 200 {
			t.Fatalf("status = %d, want 200: %s", a.status, a.text())
		}
	}
	if row, _ := r.row("s1", "m-oai"); row.Provider == "A" || row.SwitchCount != 1 || row.Requests != parallel || row.InputTokens != 10*parallel {
		t.Errorf("row = %+v, want B or C, one switch, %d requests", row, parallel)
	}
}

// S-DB-02 with a first choice that fails: the claim moves without counting, whoever moves it.
func TestSDB02FailoverOfAClaimIsNoSwitch(t *testing.T) {
	r := newRig(t, rigYAML(t))
	r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(529, `{"error":{"message":"busy"}}`)))
	r.network.Set("B", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
	for _, a := range burst(r, parallel, "s1") {
		if a.status != 200 {
			t.Fatalf("status = %d, want 200: %s", a.status, a.text())
		}
	}
	if row, _ := r.row("s1", "m-oai"); row.Provider != "B" || row.SwitchCount != 0 || row.Requests != parallel {
		t.Errorf("row = %+v, want B, no switch, %d requests", row, parallel)
	}
}

// S-AFF-05 in any interleaving: one session, two models, two pins, no switch.
func TestSAFF05ModelsInterleave(t *testing.T) {
	r := newRig(t, rigYAML(t))
	for _, name := range []string{"A", "B"} {
		r.network.Set(name, upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
	}
	r.pin("s1", "m-oai", "B", "1", 0)
	r.pin("s1", "m-emb", "A", "1", 0)
	var all sync.WaitGroup
	for i := range parallel {
		all.Go(func() {
			path, model := "/v1/chat/completions", "m-oai"
			if i%2 == 1 {
				path, model = "/v1/embeddings", "m-emb"
			}
			r.do(context.Background(), post(path, fmt.Sprintf(`{"model":%q,"input":"x"}`, model), "X-Session-Id: s1"))
		})
	}
	all.Wait()
	for _, call := range r.network.Calls() {
		if want := map[string]string{"/v1/chat/completions": "B", "/v1/embeddings": "A"}[call.Path]; call.Upstream != want {
			t.Errorf("%s went to %s, want %s", call.Path, call.Upstream, want)
		}
	}
	for _, e := range r.recorder.Events() {
		if e.Switched || e.SessionID != "s1" {
			t.Errorf("event of session %q, switched %v", e.SessionID, e.Switched)
		}
	}
}
