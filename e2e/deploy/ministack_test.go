//go:build deploy

// Package deploy deploys template.yaml for real: `sam validate`, `sam build`, `sam deploy`
// and an update, against MiniStack, an emulator of AWS that needs no Docker, and then calls
// the deployed Function URLs. MiniStack enforces IAM here, so that the functions work with
// the rights of the template alone.
//
// Not here: streaming (MiniStack buffers the answer of a Function URL; internal/functionurl
// does not), delivery in batches and compressed (MiniStack's Firehose writes each record at
// once; internal/emulator does not), arm64, and AWS itself.
package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"switchboard/internal/athena/athenatest"
)

const (
	repository = "../.."
	region     = "us-east-1"
	account    = "000000000000"
	patience   = 60 * time.Second // of a wait for a process; it only ends failing tests
	samTimeout = 4 * time.Minute  // of one sam command; a first build compiles everything
)

// ministack is a running emulator.
type ministack struct {
	t        *testing.T
	endpoint string // http://127.0.0.1:PORT
	venv     string
	dir      string // what tools write
	log      *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) tail(lines int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := strings.Split(strings.TrimSpace(l.b.String()), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// venv is where sam and ministack are: AWS_VENV, or where `make test-deploy` puts them.
func venv(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("AWS_VENV")
	if dir == "" {
		dir = filepath.Join(repository, ".cache", "aws-venv")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"sam", "ministack"} {
		if _, err := os.Stat(filepath.Join(dir, "bin", tool)); err != nil {
			t.Fatalf("%v; make test-deploy installs it, or set AWS_VENV to a venv with e2e/deploy/requirements.txt", err)
		}
	}
	return dir
}

// start runs an emulator of its own until the test ends.
func start(t *testing.T) *ministack {
	t.Helper()
	m := &ministack{t: t, venv: venv(t), dir: t.TempDir(), log: &lockedBuffer{}}
	// Another process may take the port before MiniStack does; then it ends, and the next try has another.
	for attempt := range 3 {
		address := freeAddress(t)
		m.endpoint = "http://" + address
		exited := m.run(address)
		err := m.healthy(exited)
		if err == nil {
			return m
		}
		t.Logf("MiniStack, attempt %d: %v\n%s", attempt+1, err, m.log.tail(20))
	}
	t.Fatal("MiniStack does not start")
	return nil
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func (m *ministack) run(address string) (exited chan struct{}) {
	m.t.Helper()
	_, port, _ := net.SplitHostPort(address)
	home := filepath.Join(m.dir, "ministack")
	if err := os.MkdirAll(home, 0o755); err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(m.venv, "bin", "ministack"))
	cmd.Dir = home
	front := m.front(address)
	cmd.Env = []string{
		"PATH=" + filepath.Join(m.venv, "bin") + ":" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home,
		"GATEWAY_PORT=" + port, "BIND_HOST=127.0.0.1", "S3_DATA_DIR=" + filepath.Join(home, "s3"),
		"AUTH=true",             // roles have the rights of their policies and no others
		"LAMBDA_EXECUTOR=local", // bootstrap runs as a process
		"IOT_MTLS_ENABLED=0",    // would take a fixed port
		"MINISTACK_REGION=" + region,
		"AWS_ENDPOINT_URL=http://" + address, // functions inherit it
		"AWS_ENDPOINT_URL_S3=" + front, "AWS_ENDPOINT_URL_ATHENA=" + front,
	}
	cmd.Stdout, cmd.Stderr = m.log, m.log
	// Its own group, so that the functions it runs end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	exited = make(chan struct{})
	go func() {
		defer close(exited)
		cmd.Wait()
	}()
	m.t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(5 * time.Second):
		}
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-exited
		if m.t.Failed() {
			m.t.Logf("MiniStack's last lines:\n%s", m.log.tail(40))
		}
	})
	return exited
}

// front is where functions find S3 and Athena: MiniStack's, as over TLS, which the bucket's
// policy wants, and with what DuckDB lacks.
func (m *ministack) front(address string) string {
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: address})
			r.Out.Host = r.In.Host
			r.Out.Header.Set("X-Forwarded-Proto", "https")
		},
		Transport: asAthena{m.t},
	})
	m.t.Cleanup(front.Close)
	return front.URL
}

// asAthena makes Athena of MiniStack's: a statement is started as the function has sent it, so that
// its role is asked for its rights, and then, signed by the account's owner, with what DuckDB
// lacks. The other calls are signed by the owner too: they name a query, and MiniStack does not
// know which workgroup that is of, so that no role of one workgroup may do them.
type asAthena struct{ t *testing.T }

func (a asAthena) RoundTrip(r *http.Request) (*http.Response, error) {
	switch target := r.Header.Get("X-Amz-Target"); {
	case target == "AmazonAthena.StartQueryExecution":
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil || response.StatusCode != http.StatusOK {
			return response, err
		}
		response.Body.Close()
		r.Body = io.NopCloser(bytes.NewReader(body))
		return athenatest.WithFunctions{RoundTripper: signer(a)}.RoundTrip(r)
	case strings.HasPrefix(target, "AmazonAthena."):
		return signer(a).RoundTrip(r)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// signer signs anew what was changed.
type signer struct{ t *testing.T }

func (s signer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.Header.Del("X-Amz-Security-Token")
	sign(s.t, r, "athena", body)
	return http.DefaultTransport.RoundTrip(r)
}

func (m *ministack) healthy(exited chan struct{}) error {
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	for {
		response, err := http.Get(m.endpoint + "/_ministack/health")
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-exited:
			return errors.New("ended")
		case <-ctx.Done():
			return fmt.Errorf("does not answer: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// sam runs a command of AWS's tool in the repository, against the emulator and nothing else.
func (m *ministack) sam(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), samTimeout)
	defer cancel()
	began := time.Now()
	cmd := exec.CommandContext(ctx, filepath.Join(m.venv, "bin", "sam"), args...)
	cmd.Dir = repository
	cmd.Env = m.toolEnvironment()
	// sam starts make, and make starts go: all of them end with the test.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out, diagnostics bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diagnostics
	if err := cmd.Run(); err != nil {
		t.Fatalf("sam %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), diagnostics.String())
	}
	t.Logf("sam %s: %.1f s", strings.Join(args[:min(2, len(args))], " "), time.Since(began).Seconds())
	return out.String()
}

// toolEnvironment is the caller's without its AWS account: whatever goes wrong, nothing is
// deployed to a real one.
func (m *ministack) toolEnvironment() []string {
	environment := slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "AWS_") || strings.HasPrefix(s, "SAM_") || strings.HasPrefix(s, "LAMBDA_ARCH=") || strings.HasPrefix(s, "PATH=")
	})
	nothing := filepath.Join(m.dir, "no-such-file")
	return append(environment,
		"PATH="+filepath.Join(m.venv, "bin")+":"+os.Getenv("PATH"),
		"AWS_ENDPOINT_URL="+m.endpoint, "AWS_DEFAULT_REGION="+region, "AWS_REGION="+region,
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE="+nothing, "AWS_SHARED_CREDENTIALS_FILE="+nothing,
		"SAM_CLI_TELEMETRY=0", "__SAM_CLI_APP_DIR="+filepath.Join(m.dir, "sam"),
		"LAMBDA_ARCH="+architecture(),
	)
}

// architecture is this machine's in Lambda's words: bootstrap runs here.
func architecture() string {
	if runtime.GOARCH == "amd64" {
		return "x86_64"
	}
	return runtime.GOARCH
}
