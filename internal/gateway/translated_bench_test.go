package gateway_test

import (
	"log/slog"
	"strings"
	"testing"

	"switchboard/internal/gateway"
)

// BenchmarkTranslated is BenchmarkGateway for requests that are translated: a history of 100 KB,
// and a stream of 50 chunks. What it costs on top is the difference to "stream 100KB same",
// whose client speaks the provider's surface. Compare commits with benchstat.
func BenchmarkTranslated(b *testing.B) {
	say := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hello there\"}}\n\n"
	upstream := instant{"text/event-stream", []byte(
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"model\":\"m-ant\",\"usage\":{\"input_tokens\":80,\"output_tokens\":1}}}\n\n" +
			strings.Repeat(say, 50) +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")}
	body := strings.Replace(conversationBody(100<<10, `"stream":true,"max_tokens":9,`), "m-oai", "m-ant", 1)
	for _, tt := range []struct{ name, path string }{{"stream 100KB same", "/v1/messages"}, {"stream 100KB", "/v1/chat/completions"}} {
		b.Run(tt.name, func(b *testing.B) {
			r := newRig(b, rigYAML(b))
			r.restart(b, withTransport(upstream), withRecorder(nowhere{}), func(o *gateway.Options) { o.Logger = slog.New(slog.DiscardHandler) })
			header := post("/", "", "X-Session-Id: s1").Header
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				request := post(tt.path, body)
				request.Header = header
				w := &answer{header: map[string][]string{}}
				r.gateway.ServeHTTP(w, request)
				if !strings.HasPrefix(w.sent.Get("Content-Type"), "text/event-stream") {
					b.Fatalf("%d %s", w.status, w.text())
				}
			}
		})
	}
}
