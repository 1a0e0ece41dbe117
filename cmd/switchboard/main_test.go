package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// command runs one command line with an environment and returns what it printed.
func command(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"switchboard"}, args...), process{
		getenv:  func(name string) string { return env[name] },
		environ: func() []string { return nil },
		stdout:  &out, stderr: &errs,
	})
	return code, out.String(), errs.String()
}

func TestDemoShowsOneSwitch(t *testing.T) {
	code, out, errs := command(t, nil, "demo")
	if code != 0 {
		t.Fatalf("demo = %d, %s", code, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	turns := lines[len(lines)-demoTurns:]
	for i, line := range turns {
		cells := strings.Fields(line)
		want := map[bool]string{true: "true", false: "false"}[i == demoFailure-1]
		if len(cells) != 10 || cells[7] != want {
			t.Errorf("turn %d = %q, want switched %s", i+1, line, want)
		}
	}
	if first, last := strings.Fields(turns[0])[1], strings.Fields(turns[demoTurns-1])[1]; first == last {
		t.Errorf("provider stayed %s, want a move", first)
	}
}

func TestCheckSaysWhatIsWrongAndWhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "switchboard.yaml")
	text := "auth: {mode: none}\nproviders:\n  a:\n    type: openai\n    base_ulr: http://127.0.0.1:1/v1\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs := command(t, nil, "check", "--config", path)
	if code != 2 || !strings.Contains(errs, path+":5:") || !strings.Contains(errs, "base_url") {
		t.Errorf("check = %d, %q, want 2 with file, line and the nearest key", code, errs)
	}
}

func TestCheckCountsWhatItFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "switchboard.yaml")
	text := "auth: {mode: none}\nproviders:\n  a: {type: openai, base_url: \"http://127.0.0.1:1/v1\", api_keys: [\"env:KEY\"], models: [m]}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := command(t, nil, "check", "--config", path)
	if code != 0 || !strings.Contains(out, "1 providers, 1 models") || !strings.Contains(errs, "KEY") {
		t.Errorf("check = %d, %q, %q, want ok with a warning about the empty KEY", code, out, errs)
	}
}

func TestKeyNewPrintsAMatchingDigest(t *testing.T) {
	code, out, _ := command(t, nil, "key", "new")
	found := regexp.MustCompile(`key +(\S+)\nsha256 +([0-9a-f]{64})\n`).FindStringSubmatch(out)
	if code != 0 || found == nil {
		t.Fatalf("key new = %d, %q", code, out)
	}
	if digest := sha256.Sum256([]byte(found[1])); hex.EncodeToString(digest[:]) != found[2] {
		t.Errorf("digest %s is not of the key", found[2])
	}
}

func TestWrongCommandLines(t *testing.T) {
	for _, args := range [][]string{{"nope"}, {"serve", "--nope"}, {"serve", "--config", "/does/not/exist.yaml"}, {"check", "--config", "/does/not/exist.yaml"}} {
		if code, _, errs := command(t, nil, args...); code != 2 || errs == "" {
			t.Errorf("%v = %d, %q, want 2 and a reason", args, code, errs)
		}
	}
	if code, out, _ := command(t, nil, "--help"); code != 0 || !strings.Contains(out, "serve") {
		t.Errorf("--help = %d, %q", code, out)
	}
}

// The demo serves, and stops when it is told to.
func TestServeDemoUntilStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"switchboard", "serve", "--demo", "--listen", "127.0.0.1:0"}, process{
			getenv: func(string) string { return "" }, environ: func() []string { return nil }, stdout: io.Discard, stderr: writer,
		})
		writer.Close() //nolint:errcheck // never fails
	}()
	address := ""
	var log bytes.Buffer
	for address == "" {
		chunk := make([]byte, 4096)
		n, err := reader.Read(chunk)
		if err != nil {
			t.Fatalf("serve ended early: %s", log.String())
		}
		log.Write(chunk[:n])
		if found := regexp.MustCompile(`"address":"([^"]+)"`).FindStringSubmatch(log.String()); found != nil {
			address = found[1]
		}
	}
	go io.Copy(io.Discard, reader) //nolint:errcheck // ends with the writer
	response, err := http.Post("http://"+address+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"smart","messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	response.Body.Close() //nolint:errcheck // read to its end
	if err != nil || response.StatusCode != http.StatusOK || !bytes.Contains(body, []byte("demo-")) {
		t.Errorf("answer = %d, %s, %v", response.StatusCode, body, err)
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("serve = %d, want 0", code)
	}
}
