package provider

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"switchboard/internal/sse"
	"switchboard/internal/wire"
)

// Compare with benchstat: go test -bench . -count 10 ./internal/provider | benchstat -
// The wanted order is 200 ns and no allocation for a content chunk of 310 bytes.

const (
	chatChunk = `{"id":"chatcmpl-CAbCdEfGhIjKlMnOpQrStUvWxYz01","object":"chat.completion.chunk","created":1790000000,` +
		`"model":"m-oai-2026-01-01","service_tier":"default","system_fingerprint":"fp_0123456789",` +
		`"choices":[{"index":0,"delta":{"content":" and so on"},"logprobs":null,"finish_reason":null}],` +
		`"usage":null,"obfuscation":"a1B2c"}`
	responsesDelta = `{"type":"response.output_text.delta","sequence_number":5,"item_id":"msg_0123456789abcdef0123456789abcdef",` +
		`"output_index":0,"content_index":0,"delta":" and so on","logprobs":[],"obfuscation":"a1B2c3D4"}`
	messagesDelta = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" and so on"}}`
)

func benchmarkStream(b *testing.B, surface wire.Surface, name, data string) {
	b.Helper()
	s := NewStream(surface)
	e := sse.Event{Name: []byte(name), Data: []byte(data)}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if s.Read(e) != Output {
			b.Fatal("not output")
		}
	}
}

func BenchmarkReadChat(b *testing.B) { benchmarkStream(b, wire.Chat, "", chatChunk) }

func BenchmarkReadChatToolArguments(b *testing.B) {
	args := strings.Repeat(`{\"path\":\"a/b.go\",\"n\":1}`, 400)
	benchmarkStream(b, wire.Chat, "",
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"`+args+`"}}]}}]}`)
}

func BenchmarkReadResponses(b *testing.B) {
	benchmarkStream(b, wire.Responses, "response.output_text.delta", responsesDelta)
}

func BenchmarkReadMessages(b *testing.B) {
	benchmarkStream(b, wire.Messages, "content_block_delta", messagesDelta)
}

func BenchmarkReadAnswer(b *testing.B) {
	body := []byte(`{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("word ", 2000) + `"},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306}}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		ReadAnswer(wire.Chat, body, true)
	}
}

func BenchmarkPrice(b *testing.B) {
	p := testPricing()["m-ant"]
	u := Usage{Input: 203000, CachedInput: 190000, CacheWrite: 8000, Output: 1000, Quality: usageExact}
	b.ReportAllocs()
	for b.Loop() {
		p.Price(u)
	}
}

func BenchmarkClassify(b *testing.B) {
	h := http.Header{"Retry-After": {"7"}}
	body := []byte(`{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}`)
	now := time.Unix(1_790_000_000, 0)
	b.ReportAllocs()
	for b.Loop() {
		Classify(429, h, body, now)
	}
}

func BenchmarkRedact(b *testing.B) {
	body := []byte(strings.Repeat("Incorrect something provided: nothing of interest. ", 1200))
	keys := []string{"sk-test-AAAABBBBCCCCDDDD1234", "sk-test-EEEEFFFFGGGGHHHH5678"}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		Redact(body, keys)
	}
}
