package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/gateway"
	"switchboard/internal/provider"
	"switchboard/internal/session"
	"switchboard/internal/sqlite"
)

const explainSecret = "sk-test-EEEEFFFFGGGGHHHH"

// explainDir is a configuration and, with a pin for s1 of /team/alpha, a database.
func explainDir(t *testing.T, pinned bool) (dir string, flags []string) {
	t.Helper()
	dir = t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cfg := write("sw.yaml", `
auth: {mode: none}
providers:
  main: {type: openai, base_url: "http://127.0.0.1:1/v1", api_keys: [`+explainSecret+`], models: [{id: m, pricing: {input_per_mtok: 1, output_per_mtok: 1}}]}
  backup: {type: openai, base_url: "http://127.0.0.1:2/v1", api_keys: [`+explainSecret+`2], models: [{id: m, pricing: {input_per_mtok: 2, output_per_mtok: 2}}]}
  claude: {type: anthropic, base_url: "http://127.0.0.1:3/v1", api_keys: [`+explainSecret+`3], models: [m]}
`)
	path := filepath.Join(dir, "state", "sessions.db")
	if pinned {
		db, err := sqlite.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.Assign(t.Context(), affinity.Pin{
			Ref: affinity.Ref{SessionKey: session.Scope("/team/alpha", "s1"), Model: "m"}, UserPath: "/team/alpha", ClientSessionID: "s1", Served: true,
			Target: affinity.Target{Provider: "backup", KeyID: "1", KeyPrint: provider.KeyPrint(explainSecret + "2"), Model: "m", Surface: "openai-chat-completions"},
		}, nil, time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return dir, []string{"explain", "--config", cfg, "--session-db", path}
}

func TestExplainAFile(t *testing.T) {
	const chat = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	for _, tt := range []struct {
		name, file string
		args       []string
		path       string
		first      string
		affinity   string
	}{
		{"HTTP", "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nx-session-id: s1\r\nAuthorization: Bearer ck-1\r\n\r\n" + chat, []string{"--user-path", "/team/alpha"}, "/v1/chat/completions", "backup", "pinned"},
		{"HTTP with bare line ends", "POST /v1/chat/completions\nX-Session-Id: s1\nContent-Length: 7\n\n" + chat + "\n", []string{"--user-path", "/team/alpha/"}, "/v1/chat/completions", "backup", "pinned"},
		{"another tenant", "POST http://localhost:8080/v1/chat/completions?x=1\nX-Session-Id: s1\n\n" + chat, nil, "/v1/chat/completions", "main", "none"},
		{"JSON", chat, nil, "/v1/chat/completions", "main", "none"},
		{"JSON with input", ` {"model":"m","input":"hi"}`, nil, "/v1/responses", "main", "none"},
		{"JSON with system", `{"model":"m","max_tokens":5,"system":"x","messages":[]}`, nil, "/v1/chat/completions", "main", "none"},
		{"JSON with --path", `{"model":"m","max_tokens":5,"system":"x","messages":[]}`, []string{"--path", "/v1/messages"}, "/v1/messages", "claude", "none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, args := explainDir(t, true)
			file := filepath.Join(dir, "request")
			if err := os.WriteFile(file, []byte(tt.file), 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, tt.args...)
			code, out, errs := command(t, nil, append(args, "--json", file)...)
			var e gateway.Explanation
			if err := json.Unmarshal([]byte(out), &e); code != 0 || err != nil || e.Request.Path != tt.path || len(e.Attempts) == 0 || e.Attempts[0].Provider != tt.first || e.Affinity != tt.affinity {
				t.Errorf("explain = %d, %s, %s, want %s first at %s", code, out, errs, tt.first, tt.path)
			}
			code, text, errs := command(t, nil, append(args, file)...)
			for _, want := range []string{"request ", "session ", "pin ", "decision ", "writes ", "place ", tt.first} {
				if code != 0 || !strings.Contains(text, want) {
					t.Errorf("explain = %d, %q, %q, want %q in it", code, text, errs, want)
				}
			}
			if strings.Contains(out+text+errs, explainSecret) || strings.Contains(out+text+errs, "ck-1") {
				t.Errorf("explain shows a key: %s %s %s", out, text, errs)
			}
		})
	}
}

// Explaining makes no file: no database means no pin.
func TestExplainMakesNoFile(t *testing.T) {
	for _, pinned := range []bool{false, true} {
		dir, args := explainDir(t, pinned)
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"switchboard"}, append(args, "-")...), process{
			getenv: func(string) string { return "" }, environ: func() []string { return nil },
			stdin: strings.NewReader(`{"model":"m","session_id":"s1","messages":[]}`), stdout: &out, stderr: &errs,
		})
		if code != 0 || !strings.Contains(out.String(), "s1, from body:session_id") || !strings.Contains(out.String(), "pin       none") {
			t.Errorf("explain = %d, %q, %q", code, &out, &errs)
		}
		var found []string
		filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
			if !d.IsDir() {
				found = append(found, filepath.Base(path))
			}
			return nil
		})
		if want := map[bool]string{false: "sw.yaml", true: "sessions.db sw.yaml"}[pinned]; strings.Join(found, " ") != want {
			t.Errorf("files %v, want %s", found, want)
		}
	}
}

func TestExplainRefusals(t *testing.T) {
	dir, args := explainDir(t, false)
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "request")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no file", nil, 2, "file"},
		{"missing file", []string{filepath.Join(dir, "none")}, 1, "none"},
		{"no request", []string{write("what is this")}, 2, "neither"},
		{"bad path", []string{"--user-path", "team", write("{}")}, 2, "--user-path"},
	} {
		if code, out, errs := command(t, nil, append(args, tt.args...)...); code != tt.code || !strings.Contains(errs, tt.says) {
			t.Errorf("%s: explain = %d, %q, %q, want %d and %q", tt.name, code, out, errs, tt.code, tt.says)
		}
	}
	// A request that the data plane refuses is explained, not an error.
	if code, out, errs := command(t, nil, append(args, write(`{"model":"nobody's\u001b[31m","messages":[]}`))...); code != 0 || !strings.Contains(out, "refused   404 model_not_found") || strings.Contains(out, "\x1b") {
		t.Errorf("explain = %d, %q, %q, want the refusal, in plain text", code, out, errs)
	}
}
