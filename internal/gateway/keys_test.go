package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"switchboard/internal/upstreamtest"
)

// listed is a configuration with keys of one provider by position, and a second provider.
func listed(settings string, keys ...string) string {
	return fmt.Sprintf(`
auth:
  keys: [{name: test, sha256: "{{sha256 ck-test-PPPPQQQQRRRRSSSS}}"}]
providers:
  A: {type: openai, base_url: "http://a.test/v1", api_keys: [%s], models: [m-oai]%s}
  B: {type: openai, base_url: "http://b.test/v1", api_keys: [sk-of-b-0000], models: [m-oai]}
`, strings.Join(keys, ", "), settings)
}

// reconfigure restarts the process with another configuration over the same store.
func (r *rig) reconfigure(t testing.TB, yaml string) {
	t.Helper()
	r.cfg = newRig(t, yaml).cfg
	r.restart(t)
}

// lastCall is the newest upstream call.
func (r *rig) lastCall(t testing.TB) upstreamtest.Call {
	t.Helper()
	calls := r.network.Calls()
	if len(calls) == 0 {
		t.Fatal("no upstream was called")
	}
	return calls[len(calls)-1]
}

const responsesAnswer = `{"id":"resp_%d","object":"response","status":"completed","output":[],"usage":{"input_tokens":10,"output_tokens":1,"total_tokens":11}}`

// S-KEY-02: key ids are positions unless they are named. A list in another order, or a key
// more or less in it, moves no pinned session and sends no request of a conversation away
// from its previous response; nothing of it is a switch.
func TestSKEY02ReorderedKeysMoveNoSession(t *testing.T) {
	const k0, k1, k2, k3 = "sk-zero-AAAAAAAA", "sk-one-BBBBBBBBB", "sk-two-CCCCCCCCC", "sk-three-DDDDDDD"
	before := []string{k1, k2, k3}
	for name, after := range map[string][]string{
		"reordered":         {k3, k2, k1},
		"swapped":           {k2, k1, k3},
		"inserted in front": {k0, k1, k2, k3},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, listed("", before...))
			n := 0
			r.network.Set("A", func(c upstreamtest.Call) upstreamtest.Reply {
				if c.Path == "/v1/responses" {
					n++
					return upstreamtest.JSON(200, fmt.Sprintf(responsesAnswer, n))
				}
				return upstreamtest.JSON(200, chatAnswer)
			})
			const sessions = 12
			keys := map[string]string{}
			for i := range sessions {
				session := fmt.Sprint("s", i)
				r.post("/v1/chat/completions", chatBody, "X-Session-Id: "+session)
				keys[session] = r.lastCall(t).Credential()
				r.post("/v1/responses", `{"model":"m-oai","input":"hi"}`, "X-Session-Id: "+session+"-home")
				keys[session+"-home"] = r.lastCall(t).Credential()
			}

			r.reconfigure(t, listed("", after...))
			check := func(session string) {
				t.Helper()
				event := r.last(t)
				if got := r.lastCall(t).Credential(); got != keys[session] {
					t.Errorf("%s goes to %s, want %s", session, got, keys[session])
				}
				if text := after[int(event.KeyID[0]-'1')]; !strings.Contains(keys[session], text) {
					t.Errorf("%s: the event's key_id is %s, want the key's position now", session, event.KeyID)
				}
				if event.Switched || event.DecisionReason != "affinity" || event.SwitchCount == nil || *event.SwitchCount != 0 {
					t.Errorf("%s: switched %v, reason %s, want affinity and no switch", session, event.Switched, event.DecisionReason)
				}
			}
			for i := range sessions {
				session := fmt.Sprint("s", i)
				r.post("/v1/chat/completions", chatBody, "X-Session-Id: "+session)
				check(session)
				session += "-home"
				r.post("/v1/responses", fmt.Sprintf(`{"model":"m-oai","input":"hi","previous_response_id":"resp_%d"}`, i+1), "X-Session-Id: "+session)
				check(session)
			}
		})
	}
}

// S-DB-04a: a key that is gone takes its position's new holder no session.
func TestSKEY02ReplacedKeyIsNotMistaken(t *testing.T) {
	r := newRig(t, listed("", "sk-one-BBBBBBBBB"))
	r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
	r.post("/v1/chat/completions", chatBody, "X-Session-Id: s1")
	old, _ := r.row("s1", "m-oai")
	r.reconfigure(t, listed("", "sk-two-CCCCCCCCC"))
	r.post("/v1/chat/completions", chatBody, "X-Session-Id: s1")
	now, _ := r.row("s1", "m-oai")
	if r.last(t).Affinity != "assigned" || old.KeyPrint == now.KeyPrint || now.KeyPrint == "" {
		t.Errorf("affinity %s, print %q then %q, want a fresh pin on the new key", r.last(t).Affinity, old.KeyPrint, now.KeyPrint)
	}
}

// S-KEY-02, session_sticky_keys: false: the session keeps its provider and takes that one's
// keys in turn. That is no switch, also not when a key fails; another provider is one.
func TestSKEY02LooseKeysRotateWithinASession(t *testing.T) {
	const k1, k2 = "sk-one-BBBBBBBBB", "sk-two-CCCCCCCCC"
	r := newRig(t, listed(", session_sticky_keys: false", k1, k2))
	dead := ""
	r.network.Set("A", func(c upstreamtest.Call) upstreamtest.Reply {
		if dead == "all" || dead != "" && strings.Contains(c.Credential(), dead) {
			return upstreamtest.JSON(429, `{"error":{"message":"slow"}}`)
		}
		return upstreamtest.JSON(200, chatAnswer)
	})
	r.network.Set("B", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
	ask := func() string {
		t.Helper()
		if a := r.post("/v1/chat/completions", chatBody, "X-Session-Id: s1"); a.status != 200 {
			t.Fatalf("status = %d: %s", a.status, a.text())
		}
		return r.lastCall(t).Credential()
	}
	used := map[string]int{}
	for n := range 10 {
		used[ask()]++
		event := r.last(t)
		if event.Switched || event.Provider != "A" || event.KeyID == "" || n > 0 && event.DecisionReason != "affinity" {
			t.Errorf("request %d: %s/%s (%s), switched %v, want A by affinity", n, event.Provider, event.KeyID, event.DecisionReason, event.Switched)
		}
	}
	if used[k1] != 5 || used[k2] != 5 {
		t.Errorf("keys used: %v, want 5 each", used)
	}
	row, _ := r.row("s1", "m-oai")
	if row.Provider != "A" || row.KeyID != "" || row.KeyPrint != "" || row.SwitchCount != 0 || row.Epoch != 1 || !row.Served {
		t.Errorf("row = %+v, want A whatever the key, never moved", row)
	}

	dead = k1
	for range 4 {
		if got := ask(); got != k2 || r.last(t).Switched {
			t.Errorf("with one key limited: %s, switched %v, want the other and no switch", got, r.last(t).Switched)
		}
	}
	dead = "all"
	ask()
	if row, _ = r.row("s1", "m-oai"); !r.last(t).Switched || row.Provider != "B" || row.SwitchCount != 1 || row.KeyPrint == "" {
		t.Errorf("with both limited: row %+v, want one switch to B's key", row)
	}
}

// A response can be continued only with the key that made it, also where keys take turns.
func TestSREQ04ResponseStaysOnItsLooseKey(t *testing.T) {
	r := newRig(t, listed(", session_sticky_keys: false", "sk-one-BBBBBBBBB", "sk-two-CCCCCCCCC", "sk-three-DDDDDDD"))
	owner := map[string]string{}
	r.network.Set("A", func(c upstreamtest.Call) upstreamtest.Reply {
		owner[fmt.Sprint("resp_", c.N)] = c.Credential()
		return upstreamtest.JSON(200, fmt.Sprintf(responsesAnswer, c.N))
	})
	for n := range 5 {
		r.post("/v1/responses", `{"model":"m-oai","input":"hi"}`, "X-Session-Id: s1")
		of := len(owner)
		for range 3 {
			r.post("/v1/responses", fmt.Sprintf(`{"model":"m-oai","input":"go on","previous_response_id":"resp_%d"}`, of), "X-Session-Id: s1")
			if got, want := r.lastCall(t).Credential(), owner[fmt.Sprint("resp_", of)]; got != want || r.last(t).Switched {
				t.Errorf("round %d: resp_%d goes on with %s, switched %v, want %s", n, of, got, r.last(t).Switched, want)
			}
		}
	}
	if row, _ := r.row("s1", "m-oai"); row.SwitchCount != 0 {
		t.Errorf("row = %+v, want no switch", row)
	}
}

// The setting changes with a restart: keys begin to take turns, or a key is chosen, and
// neither is a switch.
func TestSKEY02StickinessMayChange(t *testing.T) {
	keys := []string{"sk-one-BBBBBBBBB", "sk-two-CCCCCCCCC"}
	r := newRig(t, listed("", keys...))
	r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
	for _, settings := range []string{"", ", session_sticky_keys: false", "", ", session_sticky_keys: false", ""} {
		r.reconfigure(t, listed(settings, keys...))
		used := map[string]bool{}
		for range 4 {
			r.post("/v1/chat/completions", chatBody, "X-Session-Id: s1")
			used[r.lastCall(t).Credential()] = true
			if event := r.last(t); event.Provider != "A" || event.Switched || event.SwitchCount == nil || *event.SwitchCount != 0 {
				t.Errorf("%q: %s, switched %v, want A and no switch", settings, event.Provider, event.Switched)
			}
		}
		if loose := settings != ""; loose != (len(used) == 2) {
			t.Errorf("%q: %d keys used", settings, len(used))
		}
	}
}
