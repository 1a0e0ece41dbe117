//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/internal/fleettest"
)

// Bad input is a clear error in the caller's shape, leaves an event, and leaves the process
// alive.
func TestBadInput(t *testing.T) { onEachTarget(t, badInput) }

func badInput(t *testing.T, s *stack, board gateway, on target) {
	const chat, responses, messages, embeddings = "/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings"
	shapes := map[string]string{chat: "openai", responses: "openai", embeddings: "openai", messages: "anthropic"}
	events := 0
	for _, tt := range []struct {
		name, body, key string
		status          int
	}{
		{"not JSON", `{"model":`, "", 400},
		{"empty", ` `, "", 400},
		{"an array", `[]`, "", 400},
		{"text after the end", `{"model":"m-oai"} x`, "", 400},
		{"two models", `{"model":"m-oai","model":"m-ant","messages":[]}`, "", 400},
		{"two streams", `{"model":"m-oai","stream":true,"stream":false}`, "", 400},
		{"two session ids", `{"model":"m-oai","session_id":"a","session_id":"b"}`, "", 400},
		{"an escaped twin", `{"model":"m-oai","mod\u0065l":"m-ant"}`, "", 400},
		{"no model", `{"messages":[]}`, "", 400},
		{"model is a number", `{"model":7}`, "", 400},
		{"unknown model", `{"model":"m-nope"}`, "", 404},
		{"wrong key", `{"model":"m-oai"}`, clientKey + "x", 401},
		{"key in capitals", `{"model":"m-oai"}`, strings.ToUpper(clientKey), 401},
		{"too large", `{"model":"m-oai","x":"` + strings.Repeat("x", on.tooLarge[0]) + `"}`, "", 413},
	} {
		for path, shape := range shapes {
			t.Run(tt.name+" "+path, func(t *testing.T) {
				a := request{board: board, path: path, body: tt.body, key: tt.key}.do(t)
				_, got := errorType(t, a.body)
				if a.status != tt.status || got != shape {
					t.Errorf("status %d in %s's shape, want %d in %s's: %s", a.status, got, tt.status, shape, a.body)
				}
			})
			events++
		}
	}
	fleettest.Eventually(t, "an event of every refusal", func() bool { return len(s.kept.events()) == events })
	if n := count(s.kept.events(), "outcome", "refused"); n != events {
		t.Errorf("%d events say refused, want all %d", n, events)
	}
	for _, u := range s.upstreams() {
		if n := len(u.requests()); n != 0 {
			t.Errorf("%d requests reached %s, want none", n, u.name)
		}
	}
	request{board: board}.ok(t)
}

// The probes of clients, and what is not there.
func TestPathsAndMethods(t *testing.T) { onEachTarget(t, pathsAndMethods) }

func pathsAndMethods(t *testing.T, s *stack, board gateway, _ target) {
	for _, tt := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/", 200, ""},
		{"HEAD", "/", 200, ""},
		{"GET", "/health", 200, ""},
		{"GET", "/v1/nope", 404, ""},
		{"HEAD", "/api/hello", 404, ""},
		{"DELETE", "/v1/messages", 405, "POST"},
		{"GET", "/v1/chat/completions", 405, "POST"},
		{"POST", "/v1/models", 405, "GET, HEAD"},
		{"GET", "/v1/models", 401, ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, board.url()+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != tt.status || response.Header.Get("Allow") != tt.allow {
			t.Errorf("%s %s = %d Allow %q, want %d %q", tt.method, tt.path, response.StatusCode, response.Header.Get("Allow"), tt.status, tt.allow)
		}
		if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
			t.Errorf("%s %s: Content-Type %q, want JSON", tt.method, tt.path, kind)
		}
	}
	if n := len(s.kept.events()); n != 0 {
		t.Errorf("%d events of probes, want none", n)
	}
}

// A client that speaks half a request and leaves breaks nothing.
func TestHalfARequest(t *testing.T) {
	s := newStack(t)
	board := s.board()
	for range 3 {
		conn, err := net.Dial("tcp", board.Address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\n{\"model\":", clientKey)
		conn.Close()
	}
	request{board: board, session: "after"}.ok(t)
	s.thread("after", 1)
}

// What stops the start says what, where, and with which exit code.
func TestStartRefused(t *testing.T) {
	dir, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	s := newStack(t)
	for _, tt := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"no such file", []string{"serve", "--config", s.path("none.yaml")}, 2, []string{"none.yaml"}},
		{"unknown flag", []string{"serve", "--nope"}, 2, []string{"--nope"}},
		{"database is a folder", []string{"serve", "--config", s.path("switchboard.yaml"), "--session-db", s.dir}, 1, []string{s.dir}},
		{"not loopback without keys", []string{"serve", "--listen", "0.0.0.0:0"}, 2, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "switchboard"), tt.args...)
			cmd.Dir, cmd.Env = t.TempDir(), []string{"HOME=" + t.TempDir()}
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != tt.code {
				t.Errorf("exit code %d, want %d: %s", code, tt.code, out)
			}
			for _, say := range tt.says {
				if !strings.Contains(string(out), say) {
					t.Errorf("no %q in: %s", say, out)
				}
			}
		})
	}
	check := exec.CommandContext(t.Context(), filepath.Join(dir, "switchboard"), "check", "--config", s.path("switchboard.yaml"))
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("check of a good file: %v: %s", err, out)
	}
}
