package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/config"
	"switchboard/internal/gateway"
	"switchboard/internal/health"
	"switchboard/internal/mem"
	"switchboard/internal/record"
	"switchboard/internal/signal"
)

// routing is one way to configure the name that the fleet asks for.
type routing struct {
	name string
	yaml string // of the virtual model
}

func routings() []routing {
	return []routing{
		{"`round_robin`, no affinity", "strategy: round_robin, session_affinity: false"},
		{"`round_robin`, affinity", "strategy: round_robin"},
		{"`adaptive`, `latency`", "strategy: adaptive, objective: latency"},
		{"`adaptive`, `balanced`", "strategy: adaptive, objective: balanced"},
		{"`adaptive`, `cost`", "strategy: adaptive, objective: cost"},
	}
}

const (
	seed      = 42
	instances = 4
	arriving  = 60 * time.Minute // in which the sessions begin
)

// configuration is what each instance of the fleet reads.
func configuration(r routing) string {
	var text, targets strings.Builder
	text.WriteString("auth: {mode: none}\nlog_level: error\nproviders:\n")
	for i, v := range vendors() {
		fmt.Fprintf(&text, "  %s: {type: openai, base_url: \"http://%s.test/v1\", api_keys: [sk-%s-0123456789], models: [{id: m, pricing: {input_per_mtok: %.2f, cached_input_per_mtok: %.3f, output_per_mtok: %.2f}}]}\n",
			v.name, strings.ToLower(v.name), v.name, v.input, v.input/10, 4*v.input)
		if i > 0 {
			targets.WriteString(", ")
		}
		fmt.Fprintf(&targets, "{model: %s/m}", v.name)
	}
	fmt.Fprintf(&text, "virtual_models:\n  - {source: smart, %s, targets: [%s]}\n", r.yaml, &targets)
	return text.String()
}

func load(t *testing.T, r routing) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "switchboard.yaml")
	if err := os.WriteFile(path, []byte(configuration(r)), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Source{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// fleet is the instances of switchboard: what they share is in memory here.
type fleet struct {
	gateways []*gateway.Gateway
	recorder mem.Recorder
}

func newFleet(t *testing.T, r routing, w *world) *fleet {
	t.Helper()
	cfg := load(t, r)
	f := &fleet{}
	logger, network := slog.New(slog.DiscardHandler), w.network()
	store, degraded, signals := &mem.Store{}, &mem.Cell{}, &mem.Cell{}
	for range instances {
		o, err := cfg.Gateway(logger, nil)
		if err != nil {
			t.Fatal(err)
		}
		o.Store, o.Aliases, o.Recorder, o.Transport = store, store, &f.recorder, network
		o.Board = health.NewShared(cfg.Degrade, degraded, cfg.KeyPrints(), logger)
		o.Signals = signal.NewShared(signals, logger)
		f.gateways = append(f.gateways, gateway.New(o))
	}
	return f
}

// play lets the sessions talk, and returns the events of all requests by their time. The same
// seed gives the same sessions, whatever the routing; each moment belongs to one request, so
// that the same code gives the same events.
func play(t *testing.T, r routing, sessions int) (events []record.Event) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := newFleet(t, r, newWorld(began, seed))
		var all sync.WaitGroup
		for s := range sessions {
			all.Go(func() { f.converse(s) })
		}
		all.Wait()
		events = f.recorder.Events()
	})
	slices.SortStableFunc(events, func(a, b record.Event) int { return int(a.CreatedAt - b.CreatedAt) })
	return events
}

// converse is one session: some 20 turns, each of which sends all that came before.
func (f *fleet) converse(s int) {
	chance := rand.New(rand.NewPCG(seed, uint64(s)))
	pause := func(limit time.Duration) { time.Sleep(time.Duration(chance.Int64N(int64(limit)))) }
	pause(arriving)
	t := turn{session: s, prompt: 4000 + chance.IntN(8000)}
	for t.turn = range 10 + chance.IntN(21) {
		t.output = 100 + chance.IntN(600)
		f.ask(t, chance.IntN(instances))
		t.prompt += t.output + 200 + chance.IntN(1800) // the answer, and what a tool or a person adds
		time.Sleep(2 * time.Second)
		pause(30 * time.Second)
	}
}

// ask sends one turn to an instance, and takes the answer.
func (f *fleet) ask(t turn, instance int) {
	request, err := http.NewRequest(http.MethodPost, "http://switchboard.test/v1/chat/completions", strings.NewReader(t.body()))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", "application/json")
	f.gateways[instance].ServeHTTP(&answer{header: http.Header{}}, request)
}

// answer is where an answer goes that nobody reads.
type answer struct {
	header http.Header
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(int)             {}
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
