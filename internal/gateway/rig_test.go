package gateway_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/auth"
	"switchboard/internal/config"
	"switchboard/internal/gateway"
	"switchboard/internal/health"
	"switchboard/internal/mem"
	"switchboard/internal/record"
	"switchboard/internal/session"
	"switchboard/internal/upstreamtest"
)

// clientKey is the key of the tests' client; testdata/rig.yaml knows its digest.
const clientKey = "ck-test-PPPPQQQQRRRRSSSS"

// setting is what a gateway is built from, wherever it runs: a configuration and scripted
// providers.
type setting struct {
	yaml    string // as the gateway reads it
	cfg     *config.Config
	network *upstreamtest.Network
	secrets []string // client keys and provider keys
}

// rig is a gateway over fakes: scripted providers, a memory store and a kept log.
type rig struct {
	*setting
	gateway  *gateway.Gateway
	store    *mem.Store
	recorder *mem.Recorder
	log      *syncBuffer
}

// rigOption changes the gateway's options before it is built.
type rigOption func(*gateway.Options)

func withTransport(rt http.RoundTripper) rigOption {
	return func(o *gateway.Options) { o.Transport = rt }
}

func withRecorder(r record.Recorder) rigOption {
	return func(o *gateway.Options) { o.Recorder = r }
}

func withStore(s affinity.Store) rigOption {
	return func(o *gateway.Options) { o.Store = s }
}

// rigYAML is the configuration that most cases share.
func rigYAML(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "rig.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var digestOf = regexp.MustCompile(`\{\{sha256 ([^}]*)\}\}`)

// newSetting reads a configuration as a user would write it, except that
// {{sha256 TEXT}} stands for the digest of a client key.
func newSetting(t testing.TB, yaml string) *setting {
	t.Helper()
	s := &setting{network: upstreamtest.NewNetwork(), secrets: []string{clientKey}}
	s.yaml = digestOf.ReplaceAllStringFunc(yaml, func(m string) string {
		text := digestOf.FindStringSubmatch(m)[1]
		s.secrets = append(s.secrets, text)
		digest := sha256.Sum256([]byte(text))
		return hex.EncodeToString(digest[:])
	})
	path := filepath.Join(t.TempDir(), "switchboard.yaml")
	if err := os.WriteFile(path, []byte(s.yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Source{Path: path, Getenv: func(name string) string { return testEnv()[name] }})
	if err != nil {
		t.Fatalf("configuration: %v", err)
	}
	for _, p := range cfg.Providers {
		for _, k := range p.Keys {
			s.secrets = append(s.secrets, k.Text)
		}
	}
	s.cfg = cfg
	return s
}

// testEnv is the environment that configurations may name.
func testEnv() map[string]string {
	return map[string]string{"KEY_FROM_ENV": "sk-env-EEEEFFFFGGGGHHHH"}
}

// newRig builds a gateway from a configuration as newSetting reads it.
func newRig(t testing.TB, yaml string, options ...rigOption) *rig {
	t.Helper()
	return rigOf(t, newSetting(t, yaml), options...)
}

func rigOf(t testing.TB, s *setting, options ...rigOption) *rig {
	t.Helper()
	r := &rig{setting: s, store: &mem.Store{}, recorder: &mem.Recorder{}, log: &syncBuffer{}}
	r.restart(t, options...)
	return r
}

// restart makes a fresh process over the same store: nothing in memory survives.
func (r *rig) restart(t testing.TB, options ...rigOption) {
	t.Helper()
	catalog, err := r.cfg.Catalog()
	if err != nil {
		t.Fatalf("catalog: %v", err)
	}
	identifier, err := session.New(r.cfg.Session, auth.Headers()...)
	if err != nil {
		t.Fatalf("session rules: %v", err)
	}
	o := gateway.Options{
		Catalog: catalog, Identifier: identifier, Auth: auth.New(r.cfg.Auth.Mode == "none", r.cfg.Auth.Keys),
		Store: r.store, Aliases: r.store, Recorder: r.recorder, Board: health.NewBoard(r.cfg.Degrade),
		Transport: r.network, Timeouts: r.cfg.Timeouts, MaxAttempts: r.cfg.MaxAttempts, MaxBody: r.cfg.MaxBody,
		IdleTTL: r.cfg.IdleTTL, OnlyVirtual: r.cfg.OnlyVirtual, Logger: slog.New(slog.NewJSONHandler(r.log, nil)),
	}
	for _, option := range options {
		option(&o)
	}
	r.gateway = gateway.New(o)
}

// post sends a request of the tests' client, with header lines "Name: value".
func (r *rig) post(path, body string, headers ...string) *answer {
	return r.do(context.Background(), post(path, body, headers...))
}

func post(path, body string, headers ...string) *http.Request {
	request, err := http.NewRequest(http.MethodPost, "http://switchboard.test"+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Authorization", "Bearer "+clientKey)
	request.Header.Set("Content-Type", "application/json")
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Add(name, value)
	}
	return request
}

// do runs a request through the handler as a server would.
func (r *rig) do(ctx context.Context, request *http.Request) *answer {
	a := &answer{header: http.Header{}}
	r.serve(a, request.WithContext(ctx))
	return a
}

// serve calls the handler and takes the panic that asks for a broken connection.
func (r *rig) serve(a *answer, request *http.Request) {
	began := time.Now()
	defer func() {
		a.took = time.Since(began)
		if cause := recover(); cause != nil {
			a.panicked = cause
			err, _ := cause.(error)
			a.aborted = errors.Is(err, http.ErrAbortHandler)
		}
	}()
	r.gateway.ServeHTTP(a, request)
}

// last is the newest event.
func (r *rig) last(t testing.TB) record.Event {
	t.Helper()
	events := r.recorder.Events()
	if len(events) == 0 {
		t.Fatal("no event was recorded")
	}
	return events[len(events)-1]
}

// pin puts a served row for a session into the store.
func (r *rig) pin(sessionID, model, provider, keyID string, switches int64) {
	r.store.Put(newPin(sessionID, model, provider, keyID, switches))
}

// newPin is a served row for a session.
func newPin(sessionID, model, provider, keyID string, switches int64) affinity.Pin {
	now := time.Now()
	return affinity.Pin{
		Ref:    affinity.Ref{SessionKey: sessionID, Model: model},
		Target: affinity.Target{Provider: provider, KeyID: keyID, Model: model},

		ClientSessionID: sessionID, AssignedAt: now.Add(-time.Hour).UTC().Truncate(time.Second),
		LastUsedAt: now.Add(-time.Minute).UTC().Truncate(time.Second), ExpiresAt: now.Add(5 * time.Hour).UTC().Truncate(time.Second),
		Served: true, Epoch: switches + 1, SwitchCount: switches,
	}
}

// row returns the stored pin of a session that the client named so.
func (r *rig) row(sessionID, model string) (affinity.Pin, bool) {
	for _, p := range r.store.Pins() {
		if p.ClientSessionID == sessionID && p.Ref.Model == model || p.Ref.SessionKey == sessionID && p.Ref.Model == model {
			return p, true
		}
	}
	return affinity.Pin{}, false
}

// answer is what a client received. It flushes, and keeps the chunks apart.
type answer struct {
	mu       sync.Mutex
	header   http.Header
	status   int
	sent     http.Header // as it was when the status left
	body     bytes.Buffer
	chunks   []string
	flushes  int
	took     time.Duration
	aborted  bool
	panicked any
	write    func(n int, b []byte) error // a fault of the client, before chunk n (from 1)
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status == 0 {
		a.status, a.sent = status, a.header.Clone()
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.write != nil {
		if err := a.write(len(a.chunks)+1, b); err != nil {
			return 0, err
		}
	}
	a.chunks = append(a.chunks, string(b))
	a.body.Write(b)
	return len(b), nil
}

func (a *answer) Flush() { a.flushes++ }

// text is the body so far.
func (a *answer) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.body.String()
}

// member returns a value of the JSON body by its path: "error.code".
func (a *answer) member(path string) any { return member(a.body.Bytes(), path) }

func member(document []byte, path string) any {
	var v any
	if err := json.Unmarshal(document, &v); err != nil {
		return "not JSON: " + err.Error()
	}
	for _, name := range strings.Split(path, ".") {
		switch node := v.(type) {
		case map[string]any:
			v = node[name]
		case []any:
			i := int(name[0] - '0')
			if i >= len(node) {
				return nil
			}
			v = node[i]
		default:
			return nil
		}
	}
	return v
}

// syncBuffer is a log that many requests write to.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// nowhere is a recorder that keeps nothing.
type nowhere struct{}

func (nowhere) Record(context.Context, *record.Event) error { return nil }
