package translate_test

import (
	"fmt"
	"strings"
	"testing"

	"switchboard/internal/translate"
	"switchboard/internal/wire"
)

// history is a conversation of about size bytes with tool calls, as a coding agent has it.
func history(size int, chat bool) []byte {
	var b strings.Builder
	code := strings.Repeat(`func f() {\n\treturn \"x\"\n}\n`, 20)
	b.WriteString(`{"model":"m","max_tokens":4096,"stream":true,`)
	if chat {
		b.WriteString(`"tools":[{"type":"function","function":{"name":"read","description":"reads","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}}],"messages":[{"role":"system","content":"You fix code."}`)
	} else {
		b.WriteString(`"system":"You fix code.","tools":[{"name":"read","description":"reads","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}}],"messages":[{"role":"user","content":"begin"}`)
	}
	for i := 0; b.Len() < size; i++ {
		if chat {
			fmt.Fprintf(&b, `,{"role":"user","content":"please fix %d"},{"role":"assistant","content":null,"tool_calls":[{"id":"t%d","type":"function","function":{"name":"read","arguments":"{\"path\":\"a/b/%d.go\"}"}}]},{"role":"tool","tool_call_id":"t%d","content":"%s"},{"role":"assistant","content":"done"}`, i, i, i, i, code)
		} else {
			fmt.Fprintf(&b, `,{"role":"assistant","content":[{"type":"text","text":"I look"},{"type":"tool_use","id":"t%d","name":"read","input":{"path":"a/b/%d.go"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"%s"}]}`, i, i, i, code)
		}
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

// BenchmarkRequest is what a translated request costs on top of the relay; at most 1 ms for
// 100 KB. Compare commits with benchstat.
func BenchmarkRequest(b *testing.B) {
	for _, chat := range []bool{true, false} {
		from, to := direction(chat)
		body := history(100<<10, chat)
		b.Run(fmt.Sprintf("100KB %s", from), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, _, err := translate.Request(from, to, body, translate.Options{Cache: translate.DefaultCache()}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkChunk is what a content chunk of a translated stream costs; at most 5 µs.
func BenchmarkChunk(b *testing.B) {
	tests := []struct {
		name         string
		from, to     wire.Surface
		start, chunk string
	}{
		{"chat", wire.Chat, wire.Messages, "", `data: {"id":"chatcmpl-123456789012345678901234","object":"chat.completion.chunk","created":1700000000,"model":"gpt-x-2026-01-01","service_tier":"default","system_fingerprint":"fp_1234567890","choices":[{"index":0,"delta":{"content":" and then"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"abcdefgh"}` + "\n\n"},
		{"messages", wire.Messages, wire.Chat, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"c\"}}\n\n", "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" and then\"}}\n\n"},
		{"messages tool", wire.Messages, wire.Chat, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}}\n\n", "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"path\"}}\n\n"},
	}
	for _, tt := range tests {
		b.Run(tt.name, func(b *testing.B) {
			s := translate.NewStream(tt.from, tt.to, reply())
			s.Feed([]byte(tt.start))
			chunk := []byte(tt.chunk)
			b.ReportAllocs()
			for b.Loop() {
				if len(s.Feed(chunk)) == 0 {
					b.Fatal("nothing came out")
				}
			}
		})
	}
}
