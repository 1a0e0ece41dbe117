//go:build e2e

// Package e2e proves switchboard from outside: real processes, real sockets, the official
// SDKs, on one machine and behind a local Function URL, and what it keeps read by another way
// than its own. `make test-e2e` sets up what it needs.
package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"switchboard/internal/fleettest"
)

// Keys of the rig. None of these texts may ever show up in a log or in the database.
const (
	clientKey = "ck-e2e-0123456789abcdef0123456789abcdef"
	userPath  = "/team/e2e"
)

func upstreamKeys(name string) []string {
	return []string{"sk-" + name + "-first-AAAABBBBCCCC", "sk-" + name + "-second-DDDDEEEEFFFF"}
}

// binaries are built once; the race detector watches the product too.
var binaries = sync.OnceValues(func() (string, error) {
	dir := os.Getenv("E2E_BIN")
	if dir == "" {
		return "", errors.New("TestMain sets E2E_BIN")
	}
	for _, build := range [][]string{
		{"build", "-race", "-o", dir + "/", "../cmd/switchboard"},
		{"build", "-o", dir + "/", "./upstream"},
	} {
		if out, err := exec.Command("go", build...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("go %s: %w\n%s", strings.Join(build, " "), err, out)
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "switchboard-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv("E2E_BIN", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// process is one running program of the rig.
type process struct {
	*fleettest.Process
	t *testing.T
}

func (p *process) url() string  { return p.URL() }
func (p *process) tail() string { return p.Log.Tail() }

// start runs a program until the test ends; found takes the address out of a line of out.
func start(t *testing.T, out fleettest.Output, found func(line []byte) string, name string, args ...string) *process {
	t.Helper()
	dir, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(filepath.Join(dir, name), args...)
	command.Dir = t.TempDir() // no switchboard.yaml there
	// The race detector sleeps for a second at every exit if it is not told otherwise.
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + command.Dir, "GORACE=atexit_sleep_ms=10"}
	return &process{fleettest.StartProcess(t, command, out, found), t}
}

// upstream is a running provider.
type upstream struct {
	*process
	name string
}

func startUpstream(t *testing.T, name string) *upstream {
	t.Helper()
	p := start(t, fleettest.Stdout, func(line []byte) string { return strings.TrimSpace(string(line)) },
		"upstream", "-name", name, "-keys", strings.Join(upstreamKeys(name), ","))
	return &upstream{p, name}
}

// control replaces the upstream's behaviour with a JSON object.
func (u *upstream) control(behaviour string) {
	u.t.Helper()
	response, err := http.Post(u.url()+"/ctl", "application/json", strings.NewReader(behaviour))
	if err != nil {
		u.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		u.t.Fatalf("ctl %s: %s", behaviour, response.Status)
	}
}

// seen is one request as the upstream saw it.
type seen struct {
	Path, Key, Model, Body string // of a large body the beginning
	Size                   int    // of the body in bytes
	Stream, Cancelled      bool
	Status                 int
	Header                 http.Header
}

func (u *upstream) requests() []seen {
	u.t.Helper()
	response, err := http.Get(u.url() + "/log")
	if err != nil {
		u.t.Fatal(err)
	}
	defer response.Body.Close()
	var list []seen
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		u.t.Fatal(err)
	}
	return list
}

// stack is switchboard with its providers: a and b speak OpenAI and serve the same models,
// n speaks Anthropic, c is there to fail.
type stack struct {
	t          *testing.T
	dir        string
	a, b, n, c *upstream
	boards     []*process
	kept       ledger // what the gateways leave; a database, unless a function was started
}

func newStack(t *testing.T) *stack {
	t.Helper()
	s := &stack{
		t: t, dir: t.TempDir(),
		a: startUpstream(t, "a"), b: startUpstream(t, "b"), n: startUpstream(t, "n"), c: startUpstream(t, "c"),
	}
	s.kept = database{s}
	digest := sha256.Sum256([]byte(clientKey))
	replace := []string{"{{DIGEST}}", hex.EncodeToString(digest[:]), "{{USER_PATH}}", userPath}
	for _, u := range s.upstreams() {
		keys := upstreamKeys(u.name)
		replace = append(replace, "{{"+u.name+"}}", u.url()+"/v1",
			"{{"+u.name+" keys}}", fmt.Sprintf("[{id: one, key: %s}, {id: two, key: %s}]", keys[0], keys[1]))
	}
	template, err := os.ReadFile("testdata/switchboard.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path("switchboard.yaml"), []byte(strings.NewReplacer(replace...).Replace(string(template))), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.checkSecrets)
	return s
}

func (s *stack) upstreams() []*upstream  { return []*upstream{s.a, s.b, s.n, s.c} }
func (s *stack) path(name string) string { return filepath.Join(s.dir, name) }
func (s *stack) provider(p string) *upstream {
	s.t.Helper()
	for _, u := range s.upstreams() {
		if u.name == p {
			return u
		}
	}
	s.t.Fatalf("no provider %q", p)
	return nil
}

// board starts one more switchboard on the stack's database.
func (s *stack) board() *process {
	s.t.Helper()
	p := start(s.t, fleettest.Stderr, fleettest.Listening, "switchboard", "serve",
		"--config", s.path("switchboard.yaml"), "--session-db", s.path("sessions.db"), "--listen", "127.0.0.1:0")
	s.boards = append(s.boards, p)
	waitHealthy(s.t, p)
	return p
}

func waitHealthy(t *testing.T, p *process) {
	t.Helper()
	fleettest.Eventually(t, "/health of "+p.Address, func() bool {
		response, err := http.Get(p.url() + "/health")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

// checkSecrets looks for any key in what the processes have left: logs and database.
func (s *stack) checkSecrets() {
	var secrets []string
	for _, u := range s.upstreams() {
		secrets = append(secrets, upstreamKeys(u.name)...)
	}
	secrets = append(secrets, clientKey)
	for place, text := range s.kept.texts() {
		for _, secret := range secrets {
			if at := strings.Index(text, secret); at >= 0 {
				s.t.Errorf("a key is in %s: …%s…", place, text[max(0, at-60):at])
			}
		}
	}
}
