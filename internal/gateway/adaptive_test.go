package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/gateway"
	"switchboard/internal/mem"
	"switchboard/internal/signal"
	"switchboard/internal/upstreamtest"
)

// adapting is three equal providers behind an adaptive name.
const adapting = `
auth:
  keys: [{name: test, sha256: "{{sha256 ck-test-PPPPQQQQRRRRSSSS}}"}]
providers:
  A: {type: openai, base_url: "http://a.test/v1", api_keys: [sk-a-1-AAAABBBB], models: [m-up]}
  B: {type: openai, base_url: "http://b.test/v1", api_keys: [sk-b-1-EEEEFFFF], models: [m-up]}
  C: {type: openai, base_url: "http://c.test/v1", api_keys: [sk-c-1-IIIIJJJJ], models: [m-up]}
virtual_models:
  - source: m-oai
    strategy: adaptive
    objective: latency
    targets: [{model: A/m-up}, {model: B/m-up}, {model: C/m-up}]
`

func after(wait time.Duration) upstreamtest.Answer {
	reply := upstreamtest.JSON(200, chatAnswer)
	reply.Wait = wait
	return upstreamtest.Always(reply)
}

// served are the providers of the last n events.
func (r *rig) served(n int) string {
	var list []string
	events := r.recorder.Events()
	for _, e := range events[len(events)-n:] {
		list = append(list, e.Provider)
	}
	return strings.Join(list, "")
}

// First requests of a session at once meet on one target, whatever the signals are.
func TestAdaptiveFirstRequestsAtOnce(t *testing.T) {
	for round := range 10 {
		r := newRig(t, adapting)
		for _, name := range []string{"A", "B", "C"} {
			r.network.Set(name, upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
		}
		for _, a := range burst(r, parallel, fmt.Sprint("s", round)) {
			if a.status != http.StatusOK {
				t.Fatalf("round %d: status %d", round, a.status)
			}
		}
		if got := r.served(parallel); got != strings.Repeat(got[:1], parallel) {
			t.Errorf("round %d: served by %s, want one provider", round, got)
		}
		if row, ok := r.row(fmt.Sprint("s", round), "m-oai"); !ok || row.SwitchCount != 0 {
			t.Errorf("round %d: row %+v", round, row)
		}
	}
}

// A pin stays where it is while its target is slow, and is released when that is backed off.
func TestAdaptiveKeepsPinsUnlessBackedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, adapting)
		for _, name := range []string{"A", "B", "C"} {
			r.network.Set(name, after(200*time.Millisecond))
		}
		r.post("/v1/chat/completions", chatBody, "X-Session-Id: s")
		home := r.last(t).Provider
		r.network.Set(home, after(20*time.Second))
		for range 5 {
			if r.post("/v1/chat/completions", chatBody, "X-Session-Id: s"); r.last(t).Provider != home || r.last(t).DecisionReason != "affinity" {
				t.Fatalf("slow: served by %s (%s), want %s", r.last(t).Provider, r.last(t).DecisionReason, home)
			}
		}
		for i := range 20 { // new sessions know better
			if r.post("/v1/chat/completions", chatBody, fmt.Sprint("X-Session-Id: n", i)); r.last(t).Provider == home || r.last(t).DecisionReason != "adaptive" {
				t.Errorf("new session %d: served by %s (%s), want another than the slow %s", i, r.last(t).Provider, r.last(t).DecisionReason, home)
			}
		}
		r.network.Set(home, upstreamtest.Always(upstreamtest.JSON(429, `{"error":{"message":"slow down"}}`).With("Retry-After", "30")))
		r.post("/v1/chat/completions", chatBody, "X-Session-Id: s")
		moved := r.last(t)
		if moved.Provider == home || !moved.Switched || moved.DecisionReason != "fallback" {
			t.Fatalf("limited: %+v, want a switch away from %s", moved, home)
		}
		r.network.Set(home, after(time.Millisecond))
		time.Sleep(time.Minute)
		if r.post("/v1/chat/completions", chatBody, "X-Session-Id: s"); r.last(t).Provider != moved.Provider {
			t.Errorf("after it recovered: served by %s, want %s still", r.last(t).Provider, moved.Provider)
		}
	})
}

// What attempts show is what happened: nobody is in flight in the end, however it ended.
func TestSignalsOfEveryEnding(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer upstreamtest.Answer
		stream bool
		leave  time.Duration // when the client goes away; 0: never
		known  bool          // a time to first output
		failed bool
	}{
		{"answer", after(time.Second), false, 0, true, false},
		{"stream", upstreamtest.Always(upstreamtest.Stream("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n", "data: [DONE]\n\n")), true, 0, true, false},
		{"cut after output", upstreamtest.Always(upstreamtest.Stream("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n").Then(upstreamtest.Step{Cut: true})), true, 0, true, true},
		{"server error", upstreamtest.Always(upstreamtest.JSON(500, `{"error":{"message":"x"}}`)), false, 0, false, true},
		{"limited", upstreamtest.Always(upstreamtest.JSON(429, `{"error":{"message":"x"}}`)), false, 0, false, true},
		{"refused", upstreamtest.Always(upstreamtest.Reply{Fail: upstreamtest.ErrRefused}), false, 0, false, true},
		{"the request's own fault", upstreamtest.Always(upstreamtest.JSON(400, `{"error":{"message":"x","type":"invalid_request_error"}}`)), false, 0, false, false},
		{"no first byte", upstreamtest.Always(upstreamtest.Reply{Silent: true}), true, 0, true, true},
		{"client gone before output", after(time.Minute), false, time.Second, false, false},
		{"client gone after output", upstreamtest.Always(upstreamtest.Stream("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n").Then(upstreamtest.Step{Hang: true})), true, time.Second, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := signal.NewTable()
				r := newRig(t, adapting, func(o *gateway.Options) { o.Signals = table })
				for _, name := range []string{"A", "B", "C"} {
					r.network.Set(name, tt.answer)
				}
				body := chatBody
				if tt.stream {
					body = streamBody
				}
				ctx, cancel := context.WithCancel(t.Context())
				if tt.leave > 0 {
					time.AfterFunc(tt.leave, cancel)
				}
				r.do(ctx, post("/v1/chat/completions", body))
				cancel()
				for _, a := range r.last(t).Attempts {
					l := table.View(time.Now()).Load(signal.Target{Provider: a.Provider, Model: "m-up"}, tt.stream)
					if l.InFlight != 0 || l.Confidence > 0 != tt.known || l.Failures > 0 != tt.failed {
						t.Errorf("%s: %+v, want nobody in flight, known %v, failed %v", a.Provider, l, tt.known, tt.failed)
					}
				}
			})
		})
	}
}

// A panic below the gateway leaves nobody in flight either.
func TestSignalsOfAPanic(t *testing.T) {
	table := signal.NewTable()
	r := newRig(t, adapting, withTransport(&panicking{inCall: true}), func(o *gateway.Options) { o.Signals = table })
	r.post("/v1/chat/completions", chatBody)
	for _, p := range []string{"A", "B", "C"} {
		if l := table.View(time.Now()).Load(signal.Target{Provider: p, Model: "m-up"}, false); l.InFlight != 0 {
			t.Errorf("%s: %v in flight", p, l.InFlight)
		}
	}
}

// While no virtual model is adaptive nothing is observed, read or told.
func TestNoSignalsWithoutAdaptive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		touched := func(op string) (bool, error) { t.Errorf("%s of the shared signals", op); return true, nil }
		table := signal.NewShared(&mem.Cell{Fault: touched}, slog.New(slog.DiscardHandler))
		r := newRig(t, strings.NewReplacer("strategy: adaptive", "strategy: cost", "objective: latency", "").Replace(adapting),
			func(o *gateway.Options) { o.Signals = table })
		for _, name := range []string{"A", "B", "C"} {
			r.network.Set(name, after(time.Second))
		}
		for range 10 {
			r.post("/v1/chat/completions", chatBody)
			time.Sleep(time.Second)
		}
		if l := table.View(time.Now()).Load(signal.Target{Provider: r.last(t).Provider, Model: "m-up"}, false); l != (signal.Load{}) {
			t.Errorf("observed %+v, want nothing", l)
		}
	})
}

// Two instances: what one sees is told by whoever needs a decision there, and known to the
// other. A request that follows its pin tells nothing: it has its two calls already.
func TestInstancesShareSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		swaps := 0
		cell := &mem.Cell{Fault: func(op string) (bool, error) {
			if op == mem.OpSwap {
				swaps++
			}
			return true, nil
		}}
		share := func(o *gateway.Options) { o.Signals = signal.NewShared(cell, slog.New(slog.DiscardHandler)) }
		one, two := newRig(t, adapting, share), newRig(t, adapting, share)
		for _, r := range []*rig{one, two} {
			r.network.Set("A", after(9*time.Second))
			r.network.Set("B", after(10*time.Second))
			r.network.Set("C", after(time.Second))
		}
		one.post("/v1/chat/completions", chatBody, "X-Session-Id: s")
		if swaps != 1 {
			t.Fatalf("%d swaps after a decision, want 1", swaps)
		}
		time.Sleep(time.Minute)
		for range 5 {
			one.post("/v1/chat/completions", chatBody, "X-Session-Id: s")
			time.Sleep(10 * time.Second)
		}
		if swaps != 1 {
			t.Errorf("%d swaps after requests that follow a pin, want still 1", swaps)
		}
		for _, target := range []string{"A", "B", "C"} { // by name: the slow ones are seen as well
			one.post("/v1/chat/completions", strings.Replace(chatBody, "m-oai", target+"/m-up", 1))
			time.Sleep(6 * time.Second)
		}
		if swaps != 4 {
			t.Errorf("%d swaps after three more decisions, want 4", swaps)
		}
		for i := range 10 {
			two.post("/v1/chat/completions", chatBody, fmt.Sprint("X-Session-Id: t", i))
		}
		if got := two.served(10); strings.ContainsAny(got[:1], "B") || strings.Count(got, "C") < 5 {
			t.Errorf("the other instance served by %s, want it to know that C is fast", got)
		}
	})
}

// A cell of signals that is down or slow costs no answer, and no time beyond the budget.
func TestSharedSignalsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell := &mem.Cell{Fault: func(string) (bool, error) { return false, context.DeadlineExceeded }}
		r := newRig(t, adapting, func(o *gateway.Options) { o.Signals = signal.NewShared(cell, slog.New(slog.DiscardHandler)) })
		for _, name := range []string{"A", "B", "C"} {
			r.network.Set(name, after(time.Second))
		}
		for range 5 {
			if a := r.post("/v1/chat/completions", chatBody); a.status != 200 || a.took > 1300*time.Millisecond {
				t.Errorf("status %d after %v, want 200 within budgets", a.status, a.took)
			}
			time.Sleep(5 * time.Second)
		}
	})
}

// Explain shows what the strategy compares, and changes none of it.
func TestExplainShowsScores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := signal.NewTable()
		r := newRig(t, adapting, func(o *gateway.Options) { o.Signals = table })
		r.network.Set("A", after(time.Second))
		r.network.Set("B", after(2*time.Second))
		r.network.Set("C", upstreamtest.Always(upstreamtest.JSON(429, `{"error":{"message":"x"}}`)))
		for _, target := range []string{"A", "B", "C"} {
			r.post("/v1/chat/completions", strings.Replace(chatBody, "m-oai", target+"/m-up", 1))
		}
		before := table.View(time.Now()).Load(signal.Target{Provider: "A", Model: "m-up"}, false)
		e := r.gateway.Explain(t.Context(), ask("/v1/chat/completions", chatBody, "X-Session-Id: new"))
		if e.DecisionReason != "adaptive" || len(e.Candidates) != 3 || e.Attempts[0].Provider != "A" {
			t.Fatalf("Explain = %s", explained(t, e))
		}
		a, b, c := e.Candidates[0].Score, e.Candidates[1].Score, e.Candidates[2]
		if a == nil || b == nil || a.Score >= b.Score || *a.TTFBMillis != 1000 || *b.TTFBMillis != 2000 || a.PriceRatio != 1 || a.InFlight != 0 {
			t.Errorf("scores of A and B in %s", explained(t, e))
		}
		if c.Score != nil || c.Reason != "degraded" || c.Provider != "C" {
			t.Errorf("C = %+v, want it out and without a score", c)
		}
		if got := table.View(time.Now()).Load(signal.Target{Provider: "A", Model: "m-up"}, false); got != before {
			t.Errorf("explaining changed the signals from %+v to %+v", before, got)
		}
		r.pin("old", "m-oai", "B", "1", 0)
		e = r.gateway.Explain(t.Context(), ask("/v1/chat/completions", chatBody, "X-Session-Id: old"))
		if e.DecisionReason != "fallback" && e.DecisionReason != "affinity" || e.Candidates[0].Score == nil {
			t.Errorf("pinned: Explain = %s", explained(t, e))
		}
	})
}

// What Explain says of a session is what becomes of it, whatever the signals.
func TestExplainForeseesAdaptive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, adapting)
		for i, name := range []string{"A", "B", "C"} {
			r.network.Set(name, after(time.Duration(i+1)*300*time.Millisecond))
		}
		seen := map[string]bool{}
		for i := range 40 {
			session := fmt.Sprint("X-Session-Id: s", i)
			e := r.gateway.Explain(t.Context(), ask("/v1/chat/completions", chatBody, session))
			if r.post("/v1/chat/completions", chatBody, session); r.last(t).Provider != e.Attempts[0].Provider || e.DecisionReason != r.last(t).DecisionReason {
				t.Errorf("session %d: foreseen %s (%s), served by %s (%s)", i, e.Attempts[0].Provider, e.DecisionReason, r.last(t).Provider, r.last(t).DecisionReason)
			}
			seen[r.last(t).Provider] = true
		}
		if !seen["A"] || !seen["B"] {
			t.Errorf("served by %v, want more than the best one", seen)
		}
	})
}
