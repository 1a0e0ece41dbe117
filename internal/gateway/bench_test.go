package gateway_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"switchboard/internal/gateway"
)

// instant is a provider that answers at once with the same bytes, at no cost of its own.
type instant struct {
	kind string
	body []byte
}

func (i instant) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // memory
	}
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {i.kind}},
		ContentLength: int64(len(i.body)), Body: io.NopCloser(bytes.NewReader(i.body)),
	}, nil
}

// sink is a client that forgets what it reads.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) Flush()                      {}

// conversationBody is a request of about size bytes, as a coding agent sends it in mid-session.
func conversationBody(size int, rest string) string {
	turn := `{"role":"user","content":"` + strings.Repeat("please fix the test, ", 20) + `"},{"role":"assistant","content":"done"},`
	return `{"model":"m-oai",` + rest + `"messages":[` + strings.Repeat(turn, max(1, size/len(turn))) + `{"role":"user","content":"thanks"}]}`
}

// BenchmarkGateway is what one request costs in the gateway: everything but the network. The
// session is pinned. Compare commits with benchstat.
func BenchmarkGateway(b *testing.B) {
	streamed := instant{"text/event-stream", []byte(strings.Repeat(chunk1, 50) + finish)}
	unary := instant{"application/json", []byte(chatAnswer)}
	tests := []struct {
		name     string
		body     string
		headers  []string
		upstream instant
	}{
		{"unary 2KB", conversationBody(2<<10, ""), []string{"X-Session-Id: s1"}, unary},
		{"unary 100KB", conversationBody(100<<10, ""), []string{"X-Session-Id: s1"}, unary},
		{"stream 2KB", conversationBody(2<<10, `"stream":true,`), []string{"X-Session-Id: s1"}, streamed},
		{"stream 100KB auto", conversationBody(100<<10, `"stream":true,`), nil, streamed},
	}
	for _, tt := range tests {
		b.Run(tt.name, func(b *testing.B) {
			r := newRig(b, rigYAML(b))
			r.restart(b, withTransport(tt.upstream), withRecorder(nowhere{}), func(o *gateway.Options) { o.Logger = slog.New(slog.DiscardHandler) })
			header := post("/", "", tt.headers...).Header
			b.SetBytes(int64(len(tt.body)))
			b.ReportAllocs()
			for b.Loop() {
				request := post("/v1/chat/completions", tt.body)
				request.Header = header
				r.gateway.ServeHTTP(&sink{http.Header{}}, request)
			}
		})
	}
}

// requestCeiling is how many allocations a pinned request may cost in the gateway, the test's
// own request included. It is a ceiling against creep: lower it when the number falls.
const requestCeiling = 100

func TestRequestAllocations(t *testing.T) {
	r := newRig(t, rigYAML(t))
	r.restart(t, withTransport(instant{"application/json", []byte(chatAnswer)}), withRecorder(nowhere{}),
		func(o *gateway.Options) { o.Logger = slog.New(slog.DiscardHandler) })
	body := conversationBody(2<<10, "")
	got := testing.AllocsPerRun(200, func() {
		r.gateway.ServeHTTP(&sink{http.Header{}}, post("/v1/chat/completions", body, "X-Session-Id: s1"))
	})
	if got > requestCeiling {
		t.Errorf("a request costs %v allocations, want at most %d", got, requestCeiling)
	}
	t.Logf("%v allocations per request", got)
}
