//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// venvPython is what `make` installs e2e/py/requirements.txt into.
const venvPython = "../.cache/venv/bin/python"

// TestSDK runs the suites of the official SDKs in every target, each against a stack of its
// own, then reads what the gateway keeps for what they must have left.
func TestSDK(t *testing.T) {
	python, err := filepath.Abs(venvPython)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, prefix, dir string
		command           []string
		check             func(t *testing.T, s *stack, prefix string, on target)
	}{
		{"js openai", "js-", "js", []string{"node", "--test", "openai.test.mjs"}, checkOpenAI},
		{"js anthropic", "js-", "js", []string{"node", "--test", "anthropic.test.mjs"}, checkAnthropic},
		{"py openai", "py-", "py", []string{python, "-W", "error", "-m", "unittest", "-v", "test_openai"}, checkOpenAI},
		{"py anthropic", "py-", "py", []string{python, "-W", "error", "-m", "unittest", "-v", "test_anthropic"}, checkAnthropic},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onEachTarget(t, func(t *testing.T, s *stack, board gateway, on target) {
				cmd := exec.CommandContext(t.Context(), tt.command[0], tt.command[1:]...)
				cmd.Dir = tt.dir
				cmd.Env = append(os.Environ(), s.suiteEnv(board, on)...)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %v\n%s\nlog:\n%s", tt.command, err, out, board.tail())
				}
				t.Logf("%s", out)
				tt.check(t, s, tt.prefix, on)
				s.checkUpstreamRequests(on)
			})
		})
	}
}

// suiteEnv is what e2e/js/rig.mjs and e2e/py/rig.py read.
func (s *stack) suiteEnv(board gateway, on target) []string {
	s.t.Helper()
	upstreams := map[string]string{}
	for _, u := range s.upstreams() {
		upstreams[u.name] = u.url()
	}
	list, err := json.Marshal(upstreams)
	if err != nil {
		s.t.Fatal(err)
	}
	sizes, err := json.Marshal(on.tooLarge)
	if err != nil {
		s.t.Fatal(err)
	}
	return []string{"BASE_URL=" + board.url(), "CLIENT_KEY=" + clientKey, "UPSTREAMS=" + string(list), "TOO_LARGE=" + string(sizes)}
}

// Cost of one answer of the fakes at the rig's prices, in nano-USD.
const (
	chatCost    = "960000"  // 200 x 2.00 + 800 x 0.50 + 20 x 8.00
	embedCost   = "20000"   // 1000 x 0.02
	messageCost = "1215000" // 100 x 3.00 + 800 x 0.30 + 100 x 3.75 + 20 x 15.00
)

func checkOpenAI(t *testing.T, s *stack, prefix string, on target) {
	for _, name := range []string{"plain", "stream", "usage", "paced", "fits", "large", "large-plain"} {
		want(t, name, s.thread(prefix+name, 1)[0],
			"api_surface", "openai-chat-completions", "requested_model", "m-oai", "outcome", "ok", "response_status", "200",
			"input_tokens", "1000", "cached_input_tokens", "800", "output_tokens", "20", "reasoning_tokens", "5",
			"usage_quality", "exact", "cost_nano_usd", chatCost, "user_path", userPath, "switched", "0", "affinity", "assigned")
	}
	want(t, "embeddings", s.thread(prefix+"embeddings", 1)[0], "api_surface", "openai-embeddings", "cost_nano_usd", embedCost, "outcome", "ok")
	want(t, "limited", s.thread(prefix+"limited", 1)[0], "response_status", "429", "decision_reason", "unavailable", "outcome", "upstream_error")
	want(t, "down", s.thread(prefix+"down", 1)[0], "response_status", "503", "decision_reason", "unavailable", "outcome", "upstream_error")
	for _, name := range []string{"limited", "down"} {
		if left := s.pins(prefix + name); len(left) != 0 {
			t.Errorf("%s: nobody answered, yet there is a pin: %v", name, left)
		}
	}

	want(t, "cut", s.thread(prefix+"cut", 1)[0], "outcome", "upstream_error", "response_status", "200", "stream", "1")
	abort := s.thread(prefix+"abort", 2)
	want(t, "aborted", abort[0], "outcome", on.aborted, "stream", "1")
	want(t, "after the abort", abort[1], "outcome", "ok", "affinity", "pinned", "decision_reason", "affinity",
		"provider_identity", abort[0]["provider_identity"], "key_id", abort[0]["key_id"])
	if degraded, ok := abort[1]["degraded_providers"]; ok && degraded != "[]" {
		t.Errorf("after the abort: degraded providers %s, want none", degraded)
	}

	s.checkTenTurns(prefix+"ten", "9600000")

	for i := range 12 {
		session := fmt.Sprintf("%sparallel-%d", prefix, i)
		if n := distinct(s.thread(session, 3), "provider_identity", "key_id"); n != 1 {
			t.Errorf("%s was on %d provider keys, want 1", session, n)
		}
		want(t, session, s.pin(session), "switch_count", "0", "total_requests", "3", "total_input_tokens", "3000")
	}

	move := s.thread(prefix+"move", 8)
	if n := count(move, "switched", "1"); n != 1 {
		t.Errorf("%d events say switched, want 1", n)
	}
	want(t, "the switch", move[4], "switched", "1", "decision_reason", "fallback", "switch_count", "1")
	want(t, "after the switch", move[5], "switched", "0", "decision_reason", "affinity", "switch_count", "1")
	want(t, "pin after the switch", s.pin(prefix+"move"), "switch_count", "1", "provider_identity", move[4]["provider_identity"])
}

func checkAnthropic(t *testing.T, s *stack, prefix string, on target) {
	s.checkTenTurns(prefix+"msg-ten", "12150000")
	for _, event := range slices.Concat(s.thread(prefix+"msg", 2), s.thread(prefix+"msg-large", 2), s.thread(prefix+"msg-fits", 1), s.thread(prefix+"msg-paced", 1)) {
		want(t, "messages", event, "api_surface", "anthropic-messages", "provider_identity", "n", "outcome", "ok",
			"input_tokens", "1000", "cached_input_tokens", "800", "cache_write_tokens", "100", "output_tokens", "20",
			"usage_quality", "exact", "cost_nano_usd", messageCost)
	}
	want(t, "limited", s.thread(prefix+"msg-limited", 1)[0], "response_status", "429", "decision_reason", "unavailable")
	want(t, "cut", s.thread(prefix+"msg-cut", 1)[0], "outcome", "upstream_error", "response_status", "200", "stream", "1")
	abort := s.thread(prefix+"msg-abort", 2)
	want(t, "aborted", abort[0], "outcome", on.aborted)
	want(t, "after the abort", abort[1], "outcome", "ok", "decision_reason", "affinity", "key_id", abort[0]["key_id"])
	for name, turns := range map[string]int{"msg-tools": 3, "msg-tool-talk": 4} {
		tools := s.thread(prefix+name, turns)
		if n, pinned := distinct(tools, "key_id"), count(tools, "affinity", "pinned"); n != 1 || pinned != turns-1 {
			t.Errorf("%s: %d turns on %d keys, %d of them pinned; want 1 key, all but the first pinned", name, turns, n, pinned)
		}
	}
	want(t, "count_tokens", s.thread(prefix+"count", 1)[0], "outcome", "ok", "response_status", "200")
}

// checkTenTurns looks at a conversation of ten turns that cost so many nano-USD.
func (s *stack) checkTenTurns(session, cost string) {
	s.t.Helper()
	ten := s.thread(session, 10)
	if n := distinct(ten, "provider_identity", "key_id"); n != 1 {
		s.t.Errorf("ten turns on %d provider keys, want 1", n)
	}
	if n := count(ten, "affinity", "pinned"); n != 9 {
		s.t.Errorf("%d of ten turns were pinned, want 9", n)
	}
	want(s.t, "pin of ten turns", s.pin(session), "switch_count", "0", "total_requests", "10", "total_input_tokens", "10000",
		"total_output_tokens", "200", "total_cached_tokens", "8000", "total_cost_nano_usd", cost, "is_active", "1")
	s.checkOneKey(session, 10)
}

// checkOneKey looks at what the upstreams themselves saw of a session: the request bodies
// of ten turns start alike, so the key tells.
func (s *stack) checkOneKey(session string, turns int) {
	s.t.Helper()
	pin := s.pin(session)
	served := s.provider(pin["provider_identity"])
	key := upstreamKeys(served.name)[map[string]int{"one": 0, "two": 1}[pin["key_id"]]]
	n := 0
	for _, u := range s.upstreams() {
		for _, r := range u.requests() {
			if containsTurn(r.Body) {
				n++
				if u != served || r.Key != key {
					s.t.Errorf("session %s reached %s, key %s; its pin says %s, key %s", session, u.name, r.Key, served.name, key)
				}
			}
		}
	}
	if n != turns {
		s.t.Errorf("upstreams saw %d turns of session %s, want %d", n, session, turns)
	}
}

func containsTurn(body string) bool {
	var request struct{ Messages []struct{ Content any } }
	if json.Unmarshal([]byte(body), &request) != nil || len(request.Messages) == 0 {
		return false
	}
	return request.Messages[0].Content == "turn 0"
}

// checkUpstreamRequests: exactly one credential reaches a provider, ours, and nothing that
// is between the client and us; the largest body that fits, and none that does not.
func (s *stack) checkUpstreamRequests(on target) {
	s.t.Helper()
	largest := 0
	for _, u := range s.upstreams() {
		for _, r := range u.requests() {
			largest = max(largest, r.Size)
			credentials := 0
			for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key"} {
				credentials += len(r.Header.Values(name))
			}
			if credentials != 1 {
				s.t.Errorf("%s %s: %d credentials, want 1: %v", u.name, r.Path, credentials, r.Header)
			}
			for _, name := range []string{"X-Session-Id", "Cookie"} {
				if r.Header.Get(name) != "" {
					s.t.Errorf("%s %s: header %s reached the provider", u.name, r.Path, name)
				}
			}
		}
	}
	if largest < 5_000_000 || largest >= on.tooLarge[0] {
		s.t.Errorf("the largest body that reached a provider has %d bytes, want 5 MB to %d", largest, on.tooLarge[0])
	}
}
