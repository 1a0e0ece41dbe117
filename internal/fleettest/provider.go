package fleettest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Provider is a provider that does as it is told, on a socket until the test ends.
type Provider struct {
	URL string

	mu     sync.Mutex
	answer http.HandlerFunc
	calls  int
}

// NewProvider starts a provider.
func NewProvider(t testing.TB, answer http.HandlerFunc) *Provider {
	t.Helper()
	p := &Provider{answer: answer}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.calls++
	answer := p.answer
	p.mu.Unlock()
	answer(w, r)
}

// Does changes what it answers from now on.
func (p *Provider) Does(answer http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

// Calls is how often it was asked.
func (p *Provider) Calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// Uses answers at once, and says how many tokens that has used: of in, cached were read from a
// cache. Without any it does not say.
func Uses(in, cached, out int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // its caller may have gone
		answer := map[string]any{
			"id": "c-1", "object": "chat.completion",
			"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": "hi"}}},
		}
		if in != 0 || out != 0 {
			answer["usage"] = map[string]any{
				"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out,
				"prompt_tokens_details": map[string]any{"cached_tokens": cached},
			}
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer) //nolint:errcheck // its caller may have gone
	}
}

// Fails answers with a status, and asks to be left alone for ten minutes.
func Fails(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // its caller may have gone
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(status)
	}
}

// Drips sends pieces until its caller has gone.
func Drips(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) //nolint:errcheck // its caller may have gone
	w.Header().Set("Content-Type", "text/event-stream")
	for r.Context().Err() == nil {
		io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n") //nolint:errcheck // its caller may have gone
		w.(http.Flusher).Flush()                                                                    //nolint:forcetypeassert // net/http's writer is one
		select {
		case <-r.Context().Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}
