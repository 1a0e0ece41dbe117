package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	vendors "switchboard/internal/provider"
	"switchboard/internal/record"
	"switchboard/internal/upstreamtest"
	"switchboard/internal/wire"
)

// Every preset carries the common conversations with a client of the other surface too: what
// happens is the same, and what the client reads is in its own shape.
func TestTranslatedPresets(t *testing.T) {
	for _, v := range vendors.Vendors() {
		for _, surface := range v.Surfaces {
			client, ok := surface.Counterpart()
			if !ok {
				continue
			}
			t.Run(v.Type+"/"+string(surface), func(t *testing.T) {
				if len(v.Surfaces) > 1 && vendorSpeaks(v, client) {
					t.Skip("it speaks both")
				}
				translatedPreset(t, v, surface, client)
			})
		}
	}
}

func vendorSpeaks(v vendors.Vendor, s wire.Surface) bool {
	p := vendors.Provider{Surfaces: v.Surfaces}
	return p.Speaks(s)
}

func translatedPreset(t *testing.T, v vendors.Vendor, surface, client wire.Surface) {
	say, ask := speeches()[surface], speeches()[client]
	fine := upstreamtest.Always(upstreamtest.JSON(200, say.plain))
	for _, tt := range []struct {
		name    string
		stream  bool
		reply   upstreamtest.Reply
		outcome string
		order   string
		says    string
	}{
		{"plain", false, upstreamtest.JSON(200, say.plain), record.OutcomeOK, "P", "hello"},
		{"tools", false, upstreamtest.JSON(200, say.tools), record.OutcomeOK, "P", `"name":"f"`},
		{"stream", true, upstreamtest.Stream(say.stream...), record.OutcomeOK, "P", map[wire.Surface]string{wire.Chat: "[DONE]", wire.Messages: "message_stop"}[client]},
		{"rate limit", false, upstreamtest.JSON(429, `{"error":{"message":"slow down","type":"rate_limit_error"}}`).With("Retry-After", "3"), record.OutcomeOK, "P,Q", "hello"},
		{"overload", false, upstreamtest.JSON(529, `{"error":{"message":"busy","type":"overloaded_error"}}`), record.OutcomeOK, "P,Q", "hello"},
		{"bad key", false, upstreamtest.JSON(401, `{"error":{"message":"no"}}`), record.OutcomeOK, "P,Q", "hello"},
		{"down", false, upstreamtest.JSON(500, `oops`), record.OutcomeOK, "P,Q", "hello"},
		{"no answer", false, upstreamtest.JSON(200, `{"hello":1}`), record.OutcomeOK, "P,Q", "hello"},
		{"error before output", true, upstreamtest.Stream(say.failure), record.OutcomeOK, "P,Q", "hello"},
		{"own fault", false, upstreamtest.JSON(400, `{"error":{"message":"bad","type":"invalid_request_error"}}`), record.OutcomeUpstreamError, "P", `"message":"bad"`},
		{"error in mid-stream", true, upstreamtest.Stream(say.stream[0], say.stream[1], say.failure), record.OutcomeUpstreamError, "P", "the engine failed"},
		{"cut", true, upstreamtest.Stream(say.stream[:2]...).Then(upstreamtest.Step{Cut: true}), record.OutcomeUpstreamError, "P", "broke off"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := presetRig(t, v, surface)
			r.network.Set("P", upstreamtest.Always(tt.reply))
			r.network.Set("Q", fine)
			a := r.post("/v1"+ask.path, fmt.Sprintf(ask.request, tt.stream), "X-Session-Id: the-session-of-the-client")
			e := r.last(t)
			if order := r.network.Order(0); order != tt.order || e.Outcome != tt.outcome || !strings.Contains(a.text(), tt.says) {
				t.Errorf("%s: %s said %d %s, want %s: %s", order, e.Outcome, a.status, a.text(), tt.order, tt.says)
			}
			if tt.outcome != record.OutcomeOK && (strings.Contains(a.text(), "[DONE]") || strings.Contains(a.text(), "message_stop")) {
				t.Errorf("the answer looks complete: %s", a.text())
			}
			if tt.outcome == record.OutcomeOK && (*e.InputTokens != 2000 || *e.CachedInputTokens != 1920 || *e.OutputTokens != 9 || e.UsageQuality != record.UsageExact) {
				t.Errorf("usage of %d, %d cached, %d, %s, want 2000, 1920, 9, exact", *e.InputTokens, *e.CachedInputTokens, *e.OutputTokens, e.UsageQuality)
			}
			if e.APISurface != string(client) || e.Attempts[0].Surface != string(surface) {
				t.Errorf("the event says %s called as %s, want %s as %s", e.APISurface, e.Attempts[0].Surface, client, surface)
			}
			checkShape(t, client, a)
			checkPresetCall(t, v, surface, say.path, r.network.Calls()[0])
		})
	}
}

// checkShape fails when an answer is not in the surface's shape.
func checkShape(t *testing.T, client wire.Surface, a *answer) {
	t.Helper()
	lines := []string{a.text()}
	if strings.HasPrefix(a.sent.Get("Content-Type"), "text/event-stream") {
		lines = nil
		for line := range strings.Lines(a.text()) {
			if data, ok := strings.CutPrefix(line, "data: "); ok && strings.TrimSpace(data) != "[DONE]" {
				lines = append(lines, data)
			}
		}
	}
	for _, line := range lines {
		var shape struct {
			Type, Object string
			Error        *struct{ Message string }
		}
		if err := json.Unmarshal([]byte(line), &shape); err != nil {
			t.Fatalf("no JSON: %v: %s", err, line)
		}
		chat := shape.Object == "chat.completion" || shape.Object == "chat.completion.chunk" || shape.Error != nil && shape.Type == ""
		if chat != (client == wire.Chat) || client == wire.Messages && shape.Type == "" {
			t.Errorf("not in the shape of %s: %s", client, line)
		}
	}
}

func TestExplainSaysWhatIsTranslated(t *testing.T) {
	r := newRig(t, rigYAML(t))
	got := r.gateway.Explain(t.Context(), ask("/v1/messages", `{"model":"m-oai","max_tokens":9,"messages":[]}`))
	if len(got.Candidates) == 0 || got.Candidates[0].TranslatedTo != string(wire.Chat) || got.Refusal != nil {
		t.Errorf("Explain = %s, want candidates translated to %s", explained(t, got), wire.Chat)
	}
	got = r.gateway.Explain(t.Context(), ask("/v1/chat/completions", chatBody))
	if len(got.Candidates) == 0 || got.Candidates[0].TranslatedTo != "" {
		t.Errorf("Explain = %s, want no translation", explained(t, got))
	}
}
