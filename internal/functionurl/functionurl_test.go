package functionurl

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// bin has the programs of testdata, built once.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "functionurl")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"wrapped", "faults"} {
		build := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", filepath.Join(dir, name, "bootstrap"), "./testdata/"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			panic(string(out))
		}
	}
	bin = dir
	return m.Run()
}

func bootstrap(name string) string { return filepath.Join(bin, name, "bootstrap") }

// output is a log that may be written and read at a time.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// started is a Function behind a server on loopback.
type started struct {
	*Function
	url    string
	client *http.Client
	logs   *output
}

func start(t testing.TB, program string, o Options) *started {
	t.Helper()
	logs := &output{}
	o.Bootstrap, o.Logs = bootstrap(program), logs
	o.Timeout = or(o.Timeout, 20*time.Second)
	f, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(f)
	t.Cleanup(func() {
		server.CloseClientConnections()
		f.Close()
		server.Close()
		if t.Failed() {
			t.Logf("logs:\n%s", logs)
		}
	})
	return &started{f, server.URL, server.Client(), logs}
}

// get answers with the status and the body, and whether the body came whole.
func (s *started) get(t testing.TB, path string) (int, string, error) {
	t.Helper()
	return s.send(t, http.MethodGet, path, nil)
}

func (s *started) send(t testing.TB, method, path string, body io.Reader) (int, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// until polls for something that a real process does in its own time.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	limit := time.After(10 * time.Second)
	for !holds() {
		select {
		case <-limit:
			t.Fatalf("not within 10 s: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestAnswers(t *testing.T) {
	f := start(t, "wrapped", Options{})
	for range 3 {
		if status, body, err := f.send(t, http.MethodPost, "/echo", bytes.NewReader([]byte("hello"))); status != 200 || body != "hello" || err != nil {
			t.Errorf("POST /echo = %d %q %v, want 200 hello", status, body, err)
		}
	}
	if s := f.Stats(); s.ColdStarts != 1 || s.Invocations != 3 {
		t.Errorf("Stats() = %+v, want 1 cold start, 3 invocations", s)
	}
}
