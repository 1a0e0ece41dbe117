// Package demo is two providers on a loopback port that behave as real ones do where it
// matters here: each has a prompt cache of its own, reports what it read from it, and can
// be made to fail.
package demo

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Providers are both, running. They must be closed.
type Providers struct {
	server   *http.Server
	listener net.Listener
	stopped  chan struct{}
	one, two *provider
}

type provider struct {
	name    string
	failing atomic.Bool
	mu      sync.Mutex
	cache   map[uint64]int // opening of a conversation -> prompt tokens seen
}

// Start listens on a port that is free.
func Start() (*Providers, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("demo providers: %w", err)
	}
	d := &Providers{
		listener: listener, stopped: make(chan struct{}),
		one: &provider{name: "demo-one", cache: map[uint64]int{}},
		two: &provider{name: "demo-two", cache: map[uint64]int{}},
	}
	mux := http.NewServeMux()
	for _, p := range d.both() {
		mux.HandleFunc("POST /"+p.name+"/v1/chat/completions", p.answer(p.chat))
		mux.HandleFunc("POST /"+p.name+"/v1/responses", p.answer(p.responses))
		mux.HandleFunc("POST /"+p.name+"/v1/messages", p.answer(p.messages))
		mux.HandleFunc("POST /"+p.name+"/v1/messages/count_tokens", p.answer(p.countTokens))
		mux.HandleFunc("POST /"+p.name+"/v1/embeddings", p.answer(p.embeddings))
	}
	d.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(d.stopped)
		d.server.Serve(listener) //nolint:errcheck // always ErrServerClosed, by Close
	}()
	return d, nil
}

func (d *Providers) both() []*provider { return []*provider{d.one, d.two} }

// Close breaks off what is running and returns when the port is free.
func (d *Providers) Close() {
	d.server.Close() //nolint:errcheck // nothing of it is needed any more
	<-d.stopped
}

// Fail makes one of them answer 429 from now on; identity is its name in YAML.
func (d *Providers) Fail(identity string) {
	for _, one := range d.both() {
		if one.name == identity {
			one.failing.Store(true)
		}
	}
}

// YAML is the part of a configuration that uses both: the model "demo" of either, and the
// virtual model "smart" over the two.
func (d *Providers) YAML() string {
	var b strings.Builder
	b.WriteString("providers:\n")
	for _, p := range d.both() {
		fmt.Fprintf(&b, `  %s:
    type: openai
    base_url: http://%s/%s/v1
    surfaces: [openai-chat-completions, openai-responses, openai-embeddings, anthropic-messages]
    api_keys: [{id: main, key: %s-key-not-a-secret}]
    models:
      - id: demo
        pricing: {input_per_mtok: 2.00, cached_input_per_mtok: 0.20, output_per_mtok: 8.00}
`, p.name, d.listener.Addr(), p.name, p.name)
	}
	b.WriteString("virtual_models:\n  - {source: smart, strategy: round_robin, targets: [{model: demo-one/demo}, {model: demo-two/demo}]}\n")
	return b.String()
}
