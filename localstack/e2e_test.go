//go:build unix

package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"switchboard/internal/emulator"
)

// upBudget is how long building and starting may take on a slow machine.
const upBudget = 3 * time.Minute

// place is where a running stack says that it stands.
type place struct{ cloud, route, admin string }

// awaitPlace reads the output until the stack stands.
func awaitPlace(t *testing.T, out io.Reader) place {
	t.Helper()
	address := regexp.MustCompile(`^(AWS|Route|Admin) +(http://127\.0\.0\.1:\d+)`)
	var at place
	var all bytes.Buffer
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Fprintln(&all, lines.Text())
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			switch m[1] {
			case "AWS":
				at.cloud = m[2]
			case "Route":
				at.route = m[2]
			case "Admin":
				at.admin = m[2]
			}
		}
		if strings.HasPrefix(lines.Text(), "Ctrl-C") {
			return at
		}
	}
	t.Fatalf("it never stood: %s", all.String())
	return at
}

// chat sends one streamed turn of a session and returns the whole answer.
func chat(t *testing.T, route, session string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, route+"/v1/chat/completions",
		strings.NewReader(`{"model":"smart","stream":true,"messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+clientKey)
	request.Header.Set("X-Session-Id", session)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

// eventually asks until it is answered: tails and processes take their time.
func eventually(t *testing.T, what string, ask func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-tick.C {
		if ask() {
			return
		}
	}
	t.Fatalf("%s: not within 30 s", what)
}

// events reads the events of a session from the bucket.
func events(t *testing.T, c *clients, session string) (found []map[string]any) {
	t.Helper()
	list, err := c.s3.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("switchboard-eventsbucket"), Prefix: aws.String("events/dt=")})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range list.Contents {
		got, err := c.s3.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("switchboard-eventsbucket"), Key: object.Key})
		if err != nil {
			t.Fatal(err)
		}
		unzipped, err := gzip.NewReader(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(unzipped); lines.Scan(); {
			var event map[string]any
			if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
				t.Fatalf("%s: %v", lines.Bytes(), err)
			}
			if event["session_id"] == session {
				found = append(found, event)
			}
		}
		got.Body.Close()
	}
	return found
}

// TestUpWithRealProcesses is `go run ./localstack --demo --freeze` from start to Ctrl-C.
func TestUpWithRealProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the real functions")
	}
	binary := filepath.Join(t.TempDir(), "localstack")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), upBudget)
	defer cancel()
	args := []string{"--demo", "--environments=2", "--listen=127.0.0.1:0", "--route=127.0.0.1:0", "--admin=127.0.0.1:0"}
	if runtime.GOOS == "linux" || runtime.GOOS == "darwin" {
		args = append(args, "--freeze")
	}
	command := exec.CommandContext(ctx, binary, args...)
	command.Env = without(os.Environ(), "AWS_ENDPOINT_URL", "SWITCHBOARD_ADMIN_KEY")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	at := awaitPlace(t, stdout)
	c := newClients(at.cloud, region, func(string) string { return "" })

	first, text := chat(t, at.route, "e2e-1")
	if first.StatusCode != http.StatusOK || !strings.HasPrefix(first.Header.Get("Content-Type"), "text/event-stream") || !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Errorf("chat = %d %v %s", first.StatusCode, first.Header, text)
	}
	second, _ := chat(t, at.route, "e2e-1")
	if a, b := first.Header.Get("X-Switchboard-Provider"), second.Header.Get("X-Switchboard-Provider"); a == "" || a != b {
		t.Errorf("the session went from %q to %q", a, b)
	}
	eventually(t, "the row counts both requests", func() bool {
		row, err := c.dynamo.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("switchboard-SessionTable"), Key: map[string]types.AttributeValue{
			"session_id": &types.AttributeValueMemberS{Value: "e2e-1"}, "model_name": &types.AttributeValueMemberS{Value: "smart"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		total, _ := row.Item["total_requests"].(*types.AttributeValueMemberN)
		return total != nil && total.Value == "2"
	})
	eventually(t, "both events are in the bucket", func() bool {
		flush(t, at.cloud)
		return len(events(t, c, "e2e-1")) == 2
	})
	if response, _ := ask(t, at.admin+"/admin/providers", adminKey); response != http.StatusOK {
		t.Errorf("admin with its key = %d, want 200", response)
	}
	if response, _ := ask(t, at.admin+"/admin/providers", clientKey); response != http.StatusUnauthorized && response != http.StatusForbidden {
		t.Errorf("admin with a client key = %d, want 401 or 403", response)
	}
	end(t, command, stdout, &stderr)
}

// end interrupts the program as Ctrl-C does and looks for what it left behind.
func end(t *testing.T, command *exec.Cmd, stdout io.Reader, stderr *bytes.Buffer) {
	t.Helper()
	children := childrenOf(command.Process.Pid)
	if runtime.GOOS == "linux" && len(children) == 0 {
		t.Error("no process of a function runs")
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil || !bytes.Contains(rest, []byte("stopping")) {
		t.Errorf("after Ctrl-C: %v, %s, stderr %s", err, rest, stderr)
	}
	for _, pid := range children {
		eventually(t, fmt.Sprintf("process %d is gone", pid), func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	}
}

// childrenOf lists child processes; on other systems than Linux, none.
func childrenOf(pid int) (children []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for field := range strings.FieldsSeq(string(text)) {
			var child int
			fmt.Sscan(field, &child)
			children = append(children, child)
		}
	}
	return children
}

func without(environ []string, names ...string) (out []string) {
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		drop := false
		for _, n := range names {
			drop = drop || n == name
		}
		if !drop {
			out = append(out, variable)
		}
	}
	return out
}

func flush(t *testing.T, cloud string) {
	t.Helper()
	response, err := http.Post(cloud+"/_switchboard/flush", "", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		t.Errorf("flush = %d", response.StatusCode)
	}
}

func ask(t *testing.T, url, key string) (status int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// TestFunctionsHereAgainstAnotherEndpoint: with AWS_ENDPOINT_URL no emulator starts.
func TestFunctionsHereAgainstAnotherEndpoint(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the real functions")
	}
	cloud := emulator.New(emulator.Options{})
	server := httptest.NewServer(cloud)
	defer server.Close()
	defer cloud.Close(context.Background())
	out, in := io.Pipe()
	p := process{stdout: in, stderr: io.Discard, getenv: os.Getenv, environ: os.Environ}
	t.Setenv("AWS_ENDPOINT_URL", server.URL)
	t.Setenv("SWITCHBOARD_ADMIN_KEY", "")
	ctx, cancel := context.WithTimeout(t.Context(), upBudget)
	defer cancel()
	done := make(chan int, 1)
	go func() {
		defer in.Close()
		done <- run(ctx, []string{"--demo", "--functions=local", "--environments=1", "--route=127.0.0.1:0", "--admin=127.0.0.1:0", "--listen=127.0.0.1:1", "--secret", "ssm:/switchboard/x=1"}, p)
	}()
	at := awaitPlace(t, out)
	go io.Copy(io.Discard, out)
	if at.cloud != server.URL {
		t.Errorf("AWS is at %s, want %s", at.cloud, server.URL)
	}
	if response, text := chat(t, at.route, "other"); response.StatusCode != http.StatusOK {
		t.Errorf("chat = %d %s", response.StatusCode, text)
	}
	eventually(t, "the event arrives", func() bool {
		if err := cloud.FlushStreams(); err != nil {
			t.Fatal(err)
		}
		lines, err := cloud.Events("switchboard-eventsbucket")
		if err != nil {
			t.Fatal(err)
		}
		return len(lines) == 1
	})
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("exit code = %d, want 0", code)
	}
	if calls := cloud.Calls(); calls["SSM.PutParameter"] != 1 || calls["Firehose.PutRecord"] != 1 {
		t.Errorf("Calls = %v", calls)
	}
}

// TestFunctionThatDoesNotStart has no provider: that must end the start, not show in the
// first request.
func TestFunctionThatDoesNotStart(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the real functions")
	}
	var out bytes.Buffer
	p := quiet(nil)
	p.environ = func() []string {
		var kept []string
		for _, name := range []string{"PATH", "HOME", "GOCACHE", "GOMODCACHE", "GOPATH", "GOFLAGS", "GOPROXY"} {
			kept = append(kept, name+"="+os.Getenv(name))
		}
		return kept
	}
	p.stderr = &out
	ctx, cancel := context.WithTimeout(t.Context(), upBudget)
	defer cancel()
	code := run(ctx, []string{"--environments=1", "--route=127.0.0.1:0", "--admin=127.0.0.1:0", "--listen=127.0.0.1:0"}, p)
	if code != 1 || !strings.Contains(out.String(), "RouteFunction does not start") || !strings.Contains(out.String(), "OPENAI_API_KEY") {
		t.Errorf("run = %d, %s", code, out.String())
	}
}
