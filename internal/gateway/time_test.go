package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/record"
	"switchboard/internal/upstreamtest"
)

// When a degradation has expired one request tries, and the others keep away until it has
// succeeded: a provider that is still ill is not met by a crowd.
func TestHalfOpenProbe(t *testing.T) {
	for _, recovers := range []bool{true, false} {
		t.Run(fmt.Sprint("recovers ", recovers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, rigYAML(t))
				r.network.Set("B", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
				r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(429, `{"error":{"message":"slow"}}`).With("Retry-After", "5")))
				r.post("/v1/chat/completions", chatBody)
				time.Sleep(6 * time.Second)

				trial := upstreamtest.JSON(200, chatAnswer)
				if !recovers {
					trial = upstreamtest.JSON(429, `{"error":{"message":"slow"}}`).With("Retry-After", "5")
				}
				trial.Wait = 2 * time.Second
				r.network.Set("A", upstreamtest.Always(trial))
				before := len(r.network.Calls())
				var all sync.WaitGroup
				for i := range 10 {
					all.Go(func() { r.post("/v1/chat/completions", chatBody, fmt.Sprint("X-Session-Id: s", i)) })
				}
				all.Wait()
				a := strings.Count(r.network.Order(before), "A")
				if a != 1 {
					t.Errorf("%d of 10 requests tried A, want one", a)
				}
				before = len(r.network.Calls())
				r.post("/v1/chat/completions", chatBody, "X-Session-Id: after")
				want := map[bool]string{true: "A", false: "B"}[recovers]
				if got := r.network.Order(before); got != want {
					t.Errorf("after the trial a request went to %s, want %s", got, want)
				}
				for _, e := range r.recorder.Events() {
					if e.Outcome != record.OutcomeOK {
						t.Errorf("outcome %q, want ok", e.Outcome)
					}
				}
			})
		})
	}
}

// Third server error in a row, and no sooner, puts a provider out of use.
func TestSERR02ServerErrorsInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigYAML(t))
		r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(503, `{"error":{"message":"down"}}`)))
		r.network.Set("B", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
		for i, want := range []string{"A,B", "A,B", "A,B", "B", "B"} {
			before := len(r.network.Calls())
			r.post("/v1/chat/completions", chatBody, fmt.Sprint("X-Session-Id: s", i))
			if got := r.network.Order(before); got != want {
				t.Errorf("request %d called %s, want %s", i+1, got, want)
			}
		}
		time.Sleep(31 * time.Second)
		r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
		before := len(r.network.Calls())
		r.post("/v1/chat/completions", chatBody, "X-Session-Id: later")
		if got := r.network.Order(before); got != "A" {
			t.Errorf("after its time A is not asked: %s", got)
		}
	})
}

// Not more than max_attempts calls, however many providers there are, and no pause between.
func TestMaxAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var yaml strings.Builder
		yaml.WriteString("auth: {keys: [{name: test, sha256: \"{{sha256 " + clientKey + "}}\"}]}\nproviders:\n")
		for _, name := range []string{"A", "B", "C", "D", "E", "F"} {
			fmt.Fprintf(&yaml, "  %s: {type: openai, base_url: \"http://%s.test/v1\", api_keys: [sk-%s-AAAABBBBCCCC], models: [m-oai]}\n", name, strings.ToLower(name), name)
		}
		r := newRig(t, yaml.String())
		for _, name := range []string{"A", "B", "C", "D", "E", "F"} {
			r.network.Set(name, upstreamtest.Always(upstreamtest.JSON(500, `{}`)))
		}
		a := r.post("/v1/chat/completions", chatBody, "X-Session-Id: s1")
		if a.status != 503 || r.network.Order(0) != "A,B,C,D" || a.took != 0 {
			t.Errorf("answer %d from %s after %v, want 503 from A,B,C,D at once", a.status, r.network.Order(0), a.took)
		}
		if len(r.store.Pins()) != 0 {
			t.Errorf("rows = %+v, want none", r.store.Pins())
		}
	})
}

// S-KEY-02: hash mod N over positions moved nearly all sessions when a key was added.
func TestSKEY02SelectionIsStable(t *testing.T) {
	yaml := func(keys ...string) string {
		var list []string
		for _, k := range keys {
			list = append(list, fmt.Sprintf("{id: %s, key: sk-%s-AAAABBBBCCCC}", k, k))
		}
		return "auth: {keys: [{name: test, sha256: \"{{sha256 " + clientKey + "}}\"}]}\nproviders:\n" +
			"  A: {type: openai, base_url: \"http://a.test/v1\", models: [m-oai], api_keys: [" + strings.Join(list, ", ") + "]}\n"
	}
	choices := func(r *rig, prefix string) []string {
		r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
		before := len(r.network.Calls())
		for i := range 1000 {
			r.post("/v1/chat/completions", chatBody, fmt.Sprintf("X-Session-Id: %s-%d", prefix, i))
		}
		var keys []string
		for _, c := range r.network.Calls()[before:] {
			keys = append(keys, c.Credential())
		}
		return keys
	}
	moved := func(a, b []string) (n int, to map[string]int) {
		to = map[string]int{}
		for i := range a {
			if a[i] != b[i] {
				n++
				to[b[i]]++
			}
		}
		return n, to
	}
	four := newRig(t, yaml("k1", "k2", "k3", "k4"))
	first := choices(four, "s")
	four.restart(t)
	if n, _ := moved(first, choices(four, "s")); n != 0 {
		t.Errorf("restart moves %d sessions, want 0", n)
	}
	without := newRig(t, yaml("k1", "k2", "k3", "k4"))
	if n, _ := moved(first, choices(without, "s")); n != 0 {
		t.Errorf("without the store %d sessions move, want 0", n)
	}
	five := newRig(t, yaml("k5", "k3", "k1", "k4", "k2"))
	n, to := moved(first, choices(five, "s"))
	if n < 150 || n > 250 || to["sk-k5-AAAABBBBCCCC"] != n {
		t.Errorf("a fifth key takes %d of 1000 fresh choices, to %v, want 150 to 250, all to k5", n, to)
	}
	five.store = four.store
	five.restart(t)
	if n, _ := moved(first, choices(five, "s")); n != 0 {
		t.Errorf("a fifth key moves %d stored sessions, want 0", n)
	}
	five.network = upstreamtest.NewNetwork()
	five.network.Set("A", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
	five.restart(t)
	seen := map[string]int{}
	for range 10 {
		five.post("/v1/chat/completions", `{"model":"m-oai"}`)
	}
	for _, c := range five.network.Calls() {
		seen[c.Credential()]++
	}
	if len(seen) != 5 {
		t.Errorf("10 requests without a session used %v, want all five keys", seen)
	}
}

// A response arrives in the time its provider takes: a chunk is with the client before the
// next one is made.
func TestChunksArriveInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigYAML(t))
		r.network.Set("A", upstreamtest.Always(upstreamtest.Stream(chunk1).
			Then(upstreamtest.Step{Wait: time.Hour / 60, Bytes: []byte(chunk2)}, upstreamtest.Step{Wait: time.Minute, Bytes: []byte(finish)})))
		began := time.Now()
		var at []time.Duration
		a := &answer{header: http.Header{}, write: func(int, []byte) error {
			at = append(at, time.Since(began))
			return nil
		}}
		r.serve(a, post("/v1/chat/completions", streamBody))
		if fmt.Sprint(at) != "[0s 1m0s 2m0s]" {
			t.Errorf("chunks arrived at %v, want 0s, 1m, 2m", at)
		}
		if e := r.last(t); *e.TTFTMillis != 0 || e.LatencyMillis != 120_000 {
			t.Errorf("ttft %d, latency %d, want 0, 120000", *e.TTFTMillis, e.LatencyMillis)
		}
	})
}

// An upstream that stays connected after its end marker does not keep the client waiting.
func TestEndMarkerEndsTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigYAML(t))
		r.network.Set("A", upstreamtest.Always(upstreamtest.Stream(chunk1, finish).Then(upstreamtest.Step{Hang: true})))
		a := r.post("/v1/chat/completions", streamBody)
		if e := r.last(t); a.took > time.Second || e.Outcome != record.OutcomeOK || *e.InputTokens != 7 || a.text() != chunk1+finish {
			t.Errorf("took %v, outcome %q, body %q", a.took, e.Outcome, a.text())
		}
	})
}

// A thinking model's pings go on for longer than the first byte may take: they keep the call
// alive, and after a while they reach the client.
func TestPingsKeepACallAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigYAML(t))
		reply := upstreamtest.Stream()
		for range 40 {
			reply = reply.Then(upstreamtest.Step{Wait: 5 * time.Second, Bytes: []byte(": ping\n\n")})
		}
		r.network.Set("A", upstreamtest.Always(reply.Then(upstreamtest.Step{Bytes: []byte(chunk1 + finish)})))
		began := time.Now()
		var first time.Duration
		a := &answer{header: http.Header{}, write: func(n int, _ []byte) error {
			if n == 1 {
				first = time.Since(began)
			}
			return nil
		}}
		r.serve(a, post("/v1/chat/completions", streamBody))
		if e := r.last(t); e.Outcome != record.OutcomeOK || first > 30*time.Second || strings.Count(a.text(), ": ping") != 40 {
			t.Errorf("outcome %q, first bytes after %v, body %.100q", e.Outcome, first, a.text())
		}
	})
}
