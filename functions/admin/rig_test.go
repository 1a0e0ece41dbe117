package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/internal/fleettest"
	"switchboard/internal/functionurl"
)

const (
	adminKey = "ak-admin-QQQQRRRRSSSSTTTT"
	alphaKey = "ck-alpha-AAAABBBBCCCCDDDD"
	betaKey  = "ck-beta-EEEEFFFFGGGGHHHH"
)

// TestMain builds both functions once.
func TestMain(m *testing.M) { os.Exit(fleettest.Main(m, "functions/route", "functions/admin")) }

// configuration has two tenants and three providers: A is cheaper than B for m, B alone has a model
// without a price, and C is there to fail.
const configuration = `
auth:
  keys:
    - {name: alpha, sha256: "%x", user_path: /team/alpha}
    - {name: beta, sha256: "%x", user_path: /team/beta}
providers:
  A:
    type: openai
    base_url: %s/v1
    api_keys: [sk-a-0123456789abcdef]
    models: [{id: m, pricing: {input_per_mtok: 1.10, cached_input_per_mtok: 0.275, output_per_mtok: 4.40}}]
  B:
    type: openai
    base_url: %s/v1
    api_keys: [sk-b-0123456789abcdef]
    models: [{id: m, pricing: {input_per_mtok: 2.00, cached_input_per_mtok: 0.50, output_per_mtok: 8.00}}, unpriced]
  C:
    type: openai
    base_url: %s/v1
    api_keys: [sk-c-0123456789abcdef]
    models: [m-down]
`

// stack is both functions on one AWS, with providers that are told what to answer.
type stack struct {
	*testing.T
	cloud        *fleettest.Cloud
	route, admin *fleettest.Function
	a, b, c      *fleettest.Provider
}

func newStack(t *testing.T, o functionurl.Options) *stack {
	t.Helper()
	s := &stack{
		T: t, cloud: fleettest.NewCloud(t),
		a: fleettest.NewProvider(t, uses(tokens{})), b: fleettest.NewProvider(t, uses(tokens{})), c: fleettest.NewProvider(t, fleettest.Fails(http.StatusInternalServerError)),
	}
	path := filepath.Join(t.TempDir(), "switchboard.yaml")
	text := fmt.Sprintf(configuration, sha256.Sum256([]byte(alphaKey)), sha256.Sum256([]byte(betaKey)), s.a.URL, s.b.URL, s.c.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(s.cloud.Env(), "SWITCHBOARD_CONFIG="+path)
	o.Bootstrap, o.Env = fleettest.Program("route"), env
	s.route = fleettest.StartFunction(t, o)
	s.admin = fleettest.StartFunction(t, functionurl.Options{
		Bootstrap: fleettest.Program("admin"), Env: append([]string{"SWITCHBOARD_ADMIN_KEY=" + adminKey}, env...),
	})
	return s
}

// flush brings the events of all requests to the bucket.
func (s *stack) flush() {
	s.Helper()
	s.route.Rest()
	s.cloud.Flush()
}

// tokens are what a provider says that it has used.
type tokens struct{ in, cached, out int64 }

func uses(n tokens) http.HandlerFunc { return fleettest.Uses(n.in, n.cached, n.out) }

// turn is one request of a client.
type turn struct{ key, session, model, more string }

func (s *stack) begin(ask turn) *http.Response {
	s.Helper()
	if ask.key == "" {
		ask.key = alphaKey
	}
	if ask.model == "" {
		ask.model = "m"
	}
	header := []string{"Authorization", "Bearer " + ask.key}
	if ask.session != "" {
		header = append(header, "X-Session-Id", ask.session)
	}
	// Without a user's turn no session is detected.
	return s.send(http.MethodPost, s.route.URL+"/v1/chat/completions",
		`{"model":"`+ask.model+`","messages":[{"role":"system","content":"be brief"}]`+ask.more+`}`, header...)
}

// serve sends a turn and wants it answered with a status, by a provider if one is named.
func (s *stack) serve(ask turn, status int, provider string) {
	s.Helper()
	response := s.begin(ask)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if got := response.Header.Get("X-Switchboard-Provider"); err != nil || response.StatusCode != status || provider != "" && got != provider {
		s.Fatalf("%+v = %d of %q, %v, want %d of %q: %s", ask, response.StatusCode, got, err, status, provider, body)
	}
}

// send sends a request as it is, and follows no redirect.
func (s *stack) send(method, address, body string, header ...string) *http.Response {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, address, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		s.Fatalf("%s %s: %v", method, address, err)
	}
	return response
}

// ask asks the admin function with its key, and wants a status.
func (s *stack) ask(status int, method, path, body string) []byte {
	s.Helper()
	response := s.send(method, s.admin.URL+path, body, "Authorization", "Bearer "+adminKey, "Content-Type", "application/json")
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status {
		s.Fatalf("%s %s = %d, %v, want %d: %s", method, path, response.StatusCode, err, status, got)
	}
	return got
}

// get reads an answer in JSON into a value.
func (s *stack) get(into any, path string, query ...string) {
	s.Helper()
	values := url.Values{}
	for i := 0; i < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	if text := s.ask(http.StatusOK, http.MethodGet, path+"?"+values.Encode(), ""); json.Unmarshal(text, into) != nil {
		s.Fatalf("%s is no such JSON: %s", path, text)
	}
}

// usd is an amount in JSON or CSV, in nano-USD; it must be a whole number of them.
type usd int64

const unknown usd = -1

func (u *usd) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*u = unknown
		return nil
	}
	r, ok := new(big.Rat).SetString(string(text))
	if !ok {
		return fmt.Errorf("%s is no number", text)
	}
	if r.Mul(r, big.NewRat(1_000_000_000, 1)); !r.IsInt() {
		return fmt.Errorf("%s is finer than a nano-USD", text)
	}
	*u = usd(r.Num().Int64())
	return nil
}
