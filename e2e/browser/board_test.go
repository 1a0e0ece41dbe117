//go:build browser

package browser

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/internal/fleettest"
)

const (
	adminKey  = "ak-browser-QQQQRRRRSSSSTTTT"
	clientKey = "ck-browser-AAAABBBBCCCCDDDD"
	otherKey  = "ck-browser-EEEEFFFFGGGGHHHH"
)

// configuration has two tenants and two providers of the same model, the first cheaper.
const configuration = `
auth:
  keys:
    - {name: app, sha256: "%x", user_path: /team/app}
    - {name: other, sha256: "%x", user_path: /team/other}
providers:
  openai-main:
    type: openai
    base_url: %s/v1
    api_keys: [{id: one, key: sk-main-0123456789abcdef}]
    models: [{id: m-big, pricing: {input_per_mtok: 1.10, cached_input_per_mtok: 0.275, output_per_mtok: 4.40}}]
  openai-backup:
    type: openai
    base_url: %s/v1
    api_keys: [{id: one, key: sk-back-0123456789abcdef}]
    models: [{id: m-big, pricing: {input_per_mtok: 2.00, cached_input_per_mtok: 0.50, output_per_mtok: 8.00}}, m-unpriced]
virtual_models:
  - {source: declared, targets: [{model: openai-main/m-big}]}
`

// The conversations of a filled board. Their ids are what a client can send.
const (
	movedSession   = "5d0c7a4e-1111-4222-8333-9f00aa00bb01"
	hostileSession = `<script>alert(1)</script>"' onx=1`
	formulaSession = "=1+1|'cmd'"
	singles        = 55 // sessions of one request: more than a page
)

// board is switchboard on one machine, with its providers.
type board struct {
	*testing.T
	url          string
	main, backup *fleettest.Provider
}

// writeConfiguration starts the providers and writes the configuration that has them.
func writeConfiguration(t *testing.T) (b *board, path string) {
	t.Helper()
	b = &board{T: t, main: fleettest.NewProvider(t, fleettest.Uses(1, 0, 1)), backup: fleettest.NewProvider(t, fleettest.Uses(1, 0, 1))}
	path = filepath.Join(t.TempDir(), "switchboard.yaml")
	text := fmt.Sprintf(configuration, sha256.Sum256([]byte(clientKey)), sha256.Sum256([]byte(otherKey)), b.main.URL, b.backup.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return b, path
}

// newBoard starts switchboard on one machine. It has served nothing yet.
func newBoard(t *testing.T) *board {
	t.Helper()
	b, path := writeConfiguration(t)
	command := exec.Command(fleettest.Program("switchboard"), "serve", "--config", path, "--session-db", filepath.Join(t.TempDir(), "sessions.db"), "--listen", "127.0.0.1:0")
	command.Dir = t.TempDir()
	command.Env = []string{"HOME=" + command.Dir, "SWITCHBOARD_ADMIN_KEY=" + adminKey}
	b.url = fleettest.StartProcess(t, command, fleettest.Stderr, fleettest.Listening).URL()
	return b
}

// fill makes a board that has something to show: a session of six requests that has moved,
// as many single ones as do not fit on a page, unknown prices, failures, hostile names.
func (b *board) fill() {
	b.Helper()
	for n := range singles {
		b.main.Does(fleettest.Uses(int64(900+37*n), int64(300+11*n), int64(20+n)))
		b.ask(clientKey, fmt.Sprintf("task-%02d", n), "m-big", 200)
	}
	b.ask(otherKey, movedSession, "m-big", 200) // another tenant's, of the same id
	for turn := range 4 {
		b.main.Does(fleettest.Uses(int64(2000*(turn+1)), int64(1800*turn), 150))
		b.ask(clientKey, movedSession, "m-big", 200)
	}
	b.main.Does(fleettest.Fails(http.StatusTooManyRequests)) // for ten minutes
	for turn := range 2 {
		b.backup.Does(fleettest.Uses(int64(2000*(turn+5)), int64(9000*turn), 150))
		b.ask(clientKey, movedSession, "m-big", 200)
	}
	b.ask(clientKey, "no-price", "m-unpriced", 200)
	b.ask(clientKey, hostileSession, "m-big", 200)
	b.ask(clientKey, formulaSession, "m-big", 200)
	b.ask(clientKey, "", "m-big", 200)
	b.ask(otherKey, "unknown-model", "nothing-like-it", 404)
	b.backup.Does(fleettest.Fails(http.StatusInternalServerError))
	b.ask(clientKey, "failing", "m-big", 503)
	b.settle(singles + 13)
}

// ask sends one request of a client and wants a status.
func (b *board) ask(key, session, model string, want int) {
	b.Helper()
	body, err := json.Marshal(map[string]any{"model": model, "messages": []any{map[string]string{"role": "system", "content": "be brief"}}})
	if err != nil {
		b.Fatal(err)
	}
	request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.url+"/v1/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	if session != "" {
		request.Header.Set("X-Session-Id", session)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != want {
		b.Fatalf("%s %s = %d, %v, want %d: %s", session, model, response.StatusCode, err, want, text)
	}
}

// settle waits until so many events are kept: they are written behind the answers.
func (b *board) settle(events int) {
	b.Helper()
	fleettest.Eventually(b.T, fmt.Sprint(events, " events"), func() bool {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, b.url+"/admin/usage/summary", http.NoBody)
		if err != nil {
			b.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+adminKey)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		defer response.Body.Close()
		var summary struct{ Requests int }
		return json.NewDecoder(response.Body).Decode(&summary) == nil && summary.Requests >= events
	})
}
