package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	vendors "switchboard/internal/provider"
	"switchboard/internal/record"
	"switchboard/internal/upstreamtest"
	"switchboard/internal/wire"
)

// speech is what providers say on a surface, where all vendors say the same.
type speech struct {
	path    string
	request string // with %v for stream
	plain   string
	tools   string
	stream  []string
	failure string // an error event after the first chunk
}

// speeches are the common scripts. What is a vendor's own is in testdata/preset_*.txtar.
func speeches() map[wire.Surface]speech {
	return map[wire.Surface]speech{
		wire.Chat: {
			path:    "/chat/completions",
			request: `{"model":"m","stream":%v,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`,
			plain: `{"id":"c1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hello"}}],` +
				`"usage":{"prompt_tokens":2000,"completion_tokens":9,"total_tokens":2009,"prompt_tokens_details":{"cached_tokens":1920}}}`,
			tools: `{"id":"c1","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[` +
				`{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}}],` +
				`"usage":{"prompt_tokens":2000,"completion_tokens":9,"total_tokens":2009,"prompt_tokens_details":{"cached_tokens":1920}}}`,
			stream: []string{
				`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n",
				`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]}}]}` + "\n\n",
				`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}` + "\n\n",
				`data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n",
				`data: {"choices":[],"usage":{"prompt_tokens":2000,"completion_tokens":9,"total_tokens":2009,"prompt_tokens_details":{"cached_tokens":1920}}}` + "\n\n",
				"data: [DONE]\n\n",
			},
			failure: `data: {"error":{"message":"the engine failed","type":"server_error","code":null}}` + "\n\n",
		},
		wire.Messages: {
			path:    "/messages",
			request: `{"model":"m","stream":%v,"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
			plain: `{"id":"m1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn",` +
				`"usage":{"input_tokens":80,"cache_read_input_tokens":1920,"cache_creation_input_tokens":0,"output_tokens":9}}`,
			tools: `{"id":"m1","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}],"stop_reason":"tool_use",` +
				`"usage":{"input_tokens":80,"cache_read_input_tokens":1920,"cache_creation_input_tokens":0,"output_tokens":9}}`,
			stream: []string{
				"event: message_start\n" + `data: {"type":"message_start","message":{"id":"m1","usage":{"input_tokens":80,"cache_read_input_tokens":1920,"output_tokens":1}}}` + "\n\n",
				"event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}` + "\n\n",
				"event: message_delta\n" + `data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}` + "\n\n",
				"event: message_stop\n" + `data: {"type":"message_stop"}` + "\n\n",
			},
			failure: "event: error\n" + `data: {"type":"error","error":{"type":"api_error","message":"the engine failed"}}` + "\n\n",
		},
	}
}

// presetRig is a provider of the type with one of a plain type behind it.
func presetRig(t *testing.T, v vendors.Vendor, surface wire.Surface) *rig {
	own, other := "base_url: http://p.test/v1", "openai"
	if v.Deployments {
		own = "base_url: http://p.test/openai, api_version: 2024-10-21"
	}
	if surface == wire.Messages {
		other = "anthropic"
	}
	return newRig(t, fmt.Sprintf(`
auth: {keys: [{name: test, sha256: "{{sha256 %s}}"}]}
providers:
  P: {type: %s, %s, api_keys: [sk-p-MMMMNNNNOOOOTTTT], billing_model: subscription, models: [m]}
  Q: {type: %s, base_url: "http://q.test/v1", api_keys: [sk-q-EEEEFFFFGGGGHHHH], models: [m]}
`, clientKey, v.Type, own, other))
}

// Every preset carries the common conversations: plain, stream, tools, cached tokens, 429,
// overload, an error in mid-stream, a cut.
func TestPresets(t *testing.T) {
	for _, v := range vendors.Vendors() {
		for _, surface := range v.Surfaces {
			say, common := speeches()[surface]
			if !common {
				continue
			}
			t.Run(v.Type+"/"+string(surface), func(t *testing.T) {
				fine := upstreamtest.Always(upstreamtest.JSON(200, say.plain))
				cut := upstreamtest.Stream(say.stream[:len(say.stream)-2]...)
				if surface == wire.Chat {
					cut = upstreamtest.Stream(say.stream[:2]...)
				}
				for _, tt := range []struct {
					name    string
					stream  bool
					reply   upstreamtest.Reply
					outcome string
					order   string
					says    string
				}{
					{"plain", false, upstreamtest.JSON(200, say.plain), record.OutcomeOK, "P", say.plain},
					{"tools", false, upstreamtest.JSON(200, say.tools), record.OutcomeOK, "P", say.tools},
					{"stream", true, upstreamtest.Stream(say.stream...), record.OutcomeOK, "P", strings.Join(say.stream, "")},
					{"rate limit", false, upstreamtest.JSON(429, `{"error":{"message":"slow down","type":"rate_limit_error"}}`).With("Retry-After", "3"), record.OutcomeOK, "P,Q", say.plain},
					{"overload", false, upstreamtest.JSON(529, `{"error":{"message":"busy","type":"overloaded_error"}}`), record.OutcomeOK, "P,Q", say.plain},
					{"no credit", false, upstreamtest.JSON(402, `{"error":{"message":"Insufficient Balance"}}`), record.OutcomeOK, "P,Q", say.plain},
					{"bad key", false, upstreamtest.JSON(401, `{"error":{"message":"no"}}`), record.OutcomeOK, "P,Q", say.plain},
					{"down", false, upstreamtest.JSON(500, `oops`), record.OutcomeOK, "P,Q", say.plain},
					{"own fault", false, upstreamtest.JSON(400, `{"error":{"message":"bad","type":"invalid_request_error"}}`), record.OutcomeUpstreamError, "P", `{"error":{"message":"bad"`},
					{"error in mid-stream", true, upstreamtest.Stream(say.stream[0], say.stream[1], say.failure), record.OutcomeUpstreamError, "P", "the engine failed"},
					{"cut", true, cut.Then(upstreamtest.Step{Cut: true}), record.OutcomeUpstreamError, "P", "error"},
				} {
					t.Run(tt.name, func(t *testing.T) {
						r := presetRig(t, v, surface)
						r.network.Set("P", upstreamtest.Always(tt.reply))
						r.network.Set("Q", fine)
						a := r.post("/v1"+say.path, fmt.Sprintf(say.request, tt.stream), "X-Session-Id: the-session-of-the-client")
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
						checkPresetCall(t, v, surface, say.path, r.network.Calls()[0])
					})
				}
			})
		}
	}
}

// checkPresetCall checks where a call went, that it carries the provider's credential and no
// other, and that the session's id did not leave.
func checkPresetCall(t *testing.T, v vendors.Vendor, surface wire.Surface, path string, c upstreamtest.Call) {
	t.Helper()
	wantPath, wantQuery := "/v1"+path, ""
	if v.Deployments {
		wantPath, wantQuery = "/openai/deployments/m"+path, "api-version=2024-10-21"
	}
	if c.Path != wantPath || c.Query != wantQuery {
		t.Errorf("called %s?%s, want %s?%s", c.Path, c.Query, wantPath, wantQuery)
	}
	want := http.Header{}
	v.Authorize(want, "sk-p-MMMMNNNNOOOOTTTT")
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		if got := c.Header.Get(name); got != want.Get(name) {
			t.Errorf("%s: %q, want %q", name, got, want.Get(name))
		}
	}
	hint, _ := v.HintFor(surface)
	value := ""
	if v.HintByDefault {
		value = vendors.Key{Text: "sk-p-MMMMNNNNOOOOTTTT"}.SessionHint("the-session-of-the-client")
	}
	if hint.Header != "" && c.Header.Get(hint.Header) != value {
		t.Errorf("%s: %q, want %q", hint.Header, c.Header.Get(hint.Header), value)
	}
	if member := `{"` + hint.Member + `":"` + value + `",`; hint.Member != "" && strings.HasPrefix(string(c.Body), member) != v.HintByDefault {
		t.Errorf("the body begins with the hint is not %v: %s", v.HintByDefault, c.Body)
	}
	if sent := fmt.Sprint(c.Header, string(c.Body)); strings.Contains(sent, "the-session-of-the-client") {
		t.Errorf("the session's id was sent: %s", sent)
	}
}
