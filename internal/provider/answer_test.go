package provider

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"switchboard/internal/wire"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestReadAnswer(t *testing.T) {
	exact := func(u Usage) Usage { u.Quality = usageExact; return u }
	unknown := Usage{Quality: usageUnknown}
	tests := []struct {
		name    string
		surface wire.Surface
		body    string
		want    Usage
		id      string
	}{
		{"S-ERR-01 c", wire.Chat, `{"choices":[{"index":0,"finish_reason":"content_filter","message":{"role":"assistant","content":null}}],"usage":{"prompt_tokens":12,"completion_tokens":14,"total_tokens":26}}`, exact(Usage{Input: 12, Output: 14}), ""},
		{"spread over lines", wire.Chat, "{\n  \"usage\" : {\n \"prompt_tokens\" : 1 ,\n \"completion_tokens\" : 2 } }\n", exact(Usage{Input: 1, Output: 2}), ""},
		{"usage in the text", wire.Chat, `{"choices":[{"message":{"content":"{\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":9}}"}}]}`, unknown, ""},
		{"usage within", wire.Chat, `{"x":{"usage":{"prompt_tokens":9,"completion_tokens":9}},"y":[{"usage":{"prompt_tokens":8}}]}`, unknown, ""},
		{"responses", wire.Responses, `{"id":"resp_1","object":"response","output":[{"id":"msg"}],"service_tier":"default","usage":{"input_tokens":9,"output_tokens":3,"output_tokens_details":{"reasoning_tokens":1}}}`, exact(Usage{Input: 9, Output: 3, Reasoning: 1}), "resp_1"},
		{"messages have no response id", wire.Messages, `{"id":"msg_1","usage":{"input_tokens":9,"output_tokens":3}}`, exact(Usage{Input: 9, Output: 3}), ""},
		{"messages, cache only", wire.Messages, `{"usage":{"input_tokens":0,"cache_read_input_tokens":7,"cache_creation_input_tokens":0,"output_tokens":3}}`, exact(Usage{Input: 7, CachedInput: 7, Output: 3}), ""},
		{"messages, nulls", wire.Messages, `{"usage":{"input_tokens":4,"cache_read_input_tokens":null,"cache_creation_input_tokens":null,"cache_creation":null,"output_tokens":3,"server_tool_use":null}}`, exact(Usage{Input: 4, Output: 3}), ""},
		{"split names less than the total", wire.Messages, `{"usage":{"input_tokens":0,"cache_creation_input_tokens":10,"cache_creation":{"ephemeral_1h_input_tokens":4},"output_tokens":0}}`, exact(Usage{Input: 10, CacheWrite: 10, CacheWrite1h: 4}), ""},
		{"split without total", wire.Messages, `{"usage":{"input_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":4},"output_tokens":0}}`, exact(Usage{Input: 7, CacheWrite: 6, CacheWrite1h: 4}), ""},
		{"batch", wire.Messages, `{"usage":{"input_tokens":1,"output_tokens":1,"service_tier":"batch"}}`, exact(Usage{Input: 1, Output: 1, ServiceTier: "batch"}), ""},
		{"embeddings", wire.Embeddings, `{"data":[{"embedding":[0.1,-0.2]}],"usage":{"prompt_tokens":333,"total_tokens":333}}`, exact(Usage{Input: 333}), ""},
		{"deepseek", wire.Chat, `{"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11,"prompt_cache_hit_tokens":6,"prompt_cache_miss_tokens":4}}`, exact(Usage{Input: 10, CachedInput: 6, Output: 1}), ""},
		{"details beat the flat spelling", wire.Chat, `{"usage":{"prompt_tokens":10,"completion_tokens":1,"prompt_cache_hit_tokens":6,"prompt_tokens_details":{"cached_tokens":5}}}`, exact(Usage{Input: 10, CachedInput: 5, Output: 1}), ""},
		{"reasoning beside the completion", wire.Chat, `{"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":111,"completion_tokens_details":{"reasoning_tokens":100}}}`, exact(Usage{Input: 10, Output: 101, Reasoning: 100}), ""},
		{"output from the total", wire.Chat, `{"usage":{"prompt_tokens":10,"total_tokens":15}}`, exact(Usage{Input: 10, Output: 5}), ""},
		{"openrouter", wire.Chat, `{"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11,"cost":0.0012,"cost_details":{"upstream_inference_cost":null},"prompt_tokens_details":{"cached_tokens":2,"cache_write_tokens":3}}}`, exact(Usage{Input: 10, CachedInput: 2, CacheWrite: 3, Output: 1}), ""},
		{"S-USE-06 zeros", wire.Chat, `{"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`, exact(Usage{}), ""},
		{"S-USE-06 empty object", wire.Chat, `{"usage":{}}`, unknown, ""},
		{"negative", wire.Chat, `{"usage":{"prompt_tokens":-1,"completion_tokens":1}}`, unknown, ""},
		{"fraction", wire.Chat, `{"usage":{"prompt_tokens":1.5,"completion_tokens":1}}`, unknown, ""},
		{"absurd", wire.Chat, `{"usage":{"prompt_tokens":1000000000001,"completion_tokens":1}}`, unknown, ""},
		{"text", wire.Chat, `{"usage":{"prompt_tokens":"5","completion_tokens":1}}`, unknown, ""},
		{"negative part", wire.Chat, `{"usage":{"prompt_tokens":5,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":-3}}}`, exact(Usage{Input: 5, Output: 1}), ""},
		{"input alone", wire.Chat, `{"usage":{"prompt_tokens":5}}`, Usage{Input: 5, Quality: usagePartial}, ""},
		{"not JSON", wire.Chat, `<html>`, unknown, ""},
		{"cut", wire.Chat, `{"usage":{"prompt_tokens":5,"completion_tokens":1`, unknown, ""},
		{"nothing", wire.Chat, ``, unknown, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, id := ReadAnswer(tt.surface, []byte(tt.body), true)
			if diff := cmp.Diff(tt.want, got); diff != "" || id != tt.id {
				t.Errorf("ReadAnswer(%s) = id %q, want %q (-want +got):\n%s", tt.body, id, tt.id, diff)
			}
		})
	}
}

// Of a large answer only the end is known, cut anywhere before the usage.
func TestReadAnswerFromItsEnd(t *testing.T) {
	tests := []struct {
		name    string
		surface wire.Surface
		body    string
		from    string // the last text that may be cut off
		want    Usage
	}{
		{
			"chat", wire.Chat,
			`{"id":"x","choices":[{"message":{"content":"a \"usage\":{\"prompt_tokens\":9} [{ \\"}}],"usage":{"prompt_tokens":1,"completion_tokens":2},"service_tier":"flex","system_fingerprint":"}]"}`,
			`"usage":{"prompt_tokens":1`,
			Usage{Input: 1, Output: 2, ServiceTier: "flex"},
		},
		{
			"usage in later objects", wire.Responses,
			`{"id":"x","output":[],"service_tier":"flex","usage":{"input_tokens":1,"output_tokens":2},"user":{"usage":{"input_tokens":7,"output_tokens":7},"service_tier":"no"}}`,
			`"service_tier":"flex"`,
			Usage{Input: 1, Output: 2, ServiceTier: "flex"},
		},
		{
			"tool input", wire.Messages,
			`{"content":[{"type":"tool_use","input":{"usage":{"input_tokens":8,"output_tokens":8}}}],"usage":{"input_tokens":1,"output_tokens":2}}` + "\n",
			`"usage":{"input_tokens":1`,
			Usage{Input: 1, Output: 2},
		},
		{
			"embeddings", wire.Embeddings,
			`{"data":[{"embedding":[` + strings.Repeat("0.123,", 100) + `1]}],"usage":{"prompt_tokens":333,"total_tokens":333}}`,
			`"usage"`,
			Usage{Input: 333},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Quality = usageExact
			for at := 0; at <= strings.LastIndex(tt.body, tt.from); at++ {
				got, _ := ReadAnswer(tt.surface, []byte(tt.body[at:]), false)
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Fatalf("ReadAnswer(%s) (-want +got):\n%s", tt.body[at:], diff)
				}
			}
			if got, _ := ReadAnswer(tt.surface, []byte(tt.body[strings.LastIndex(tt.body, tt.from)+len(tt.from):]), false); tt.from[1] == 'u' && got.Quality != usageUnknown {
				t.Errorf("usage cut off, yet Quality = %s", got.Quality)
			}
		})
	}
	for _, cut := range []string{`…"}}],"x":{"usage":{"prompt_tokens":1,"completion_tokens":2}}}`, `text "usage":{"prompt_tokens":1,"completion_tokens":2}} and more`, `"usage":{"prompt_tokens":1,"completion_tokens":2}`} {
		if got, _ := ReadAnswer(wire.Chat, []byte(cut), false); got.Quality != usageUnknown {
			t.Errorf("ReadAnswer(%s) = %+v, want unknown", cut, got)
		}
	}
}

// Whatever stands around it, usage is read as encoding/json reads it, whole or from the end.
func TestPropertyUsageIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SampledFrom([]string{"usage", "id", "choices", "service_tiers", "a\"b", "\\", "é", "x"})
		var value func(depth int) any
		value = func(depth int) any {
			switch rapid.IntRange(0, 6-min(depth, 2)).Draw(t, "kind") {
			case 0:
				return nil
			case 1:
				return rapid.String().Draw(t, "string")
			case 2:
				return rapid.Float64().Draw(t, "number")
			case 3:
				return `"usage":{"prompt_tokens":5}}`
			case 4:
				return rapid.Bool().Draw(t, "bool")
			case 5:
				return []any{value(depth + 1), value(depth + 1)}
			}
			return map[string]any{keys.Draw(t, "key"): value(depth + 1), "usage": value(depth + 1)}
		}
		member := func() string {
			b, _ := json.Marshal(value(0))
			return string(b)
		}
		in, out := rapid.Int64Range(0, tokenLimit).Draw(t, "in"), rapid.Int64Range(0, tokenLimit).Draw(t, "out")
		before := fmt.Sprintf(`{"a":%s,"b":%s,`, member(), member())
		body := before + fmt.Sprintf(`"usage":{"z":%s,"prompt_tokens":%d,"completion_tokens":%d},"c":%s}`, member(), in, out, member())
		want := Usage{Input: in, Output: out, Quality: usageExact}
		if got, _ := ReadAnswer(wire.Chat, []byte(body), true); got != want {
			t.Fatalf("ReadAnswer(%s) = %+v, want %+v", body, got, want)
		}
		at := rapid.IntRange(0, len(before)).Draw(t, "cut")
		if got, _ := ReadAnswer(wire.Chat, []byte(body[at:]), false); got != want {
			t.Fatalf("ReadAnswer of the end %s = %+v, want %+v", body[at:], got, want)
		}
	})
}

// The cursor steps over exactly what encoding/json calls a value.
func FuzzCursor(f *testing.F) {
	f.Add([]byte(`{"a":[1,"\\\"",{"b":null}],"c":"12345678\"90"}`))
	f.Add([]byte(`[[],{},"",0]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := cursor{b: text}
		c.skip()
		if c.i > len(text) {
			t.Fatalf("stepped to %d of %d", c.i, len(text))
		}
		if !json.Valid(text) {
			return
		}
		if c.bad || c.peek() != 0 {
			t.Errorf("skip(%s) ends at %d, bad %v", text, c.i, c.bad)
		}
		c = cursor{b: text}
		for key, ok := walkTop(&c); ok; key, ok = c.key() {
			var s string
			if json.Unmarshal([]byte(`"`+string(key)+`"`), &s) != nil {
				t.Errorf("key %q of %s", key, text)
			}
			c.skip()
		}
		if c.bad || c.peek() != 0 {
			t.Errorf("walk(%s) ends at %d, bad %v", text, c.i, c.bad)
		}
	})
}

// walkTop steps into an object and returns its first key.
func walkTop(c *cursor) ([]byte, bool) {
	if !c.open('{') {
		return nil, false
	}
	return c.key()
}
