package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/emulator"
	"switchboard/internal/functionurl"
	"switchboard/internal/record"
)

const clientKey = "ck-fleet-PPPPQQQQRRRRSSSS"

// TestMain builds the function once, as it is deployed except for the machine it is for.
func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "route-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", filepath.Join(dir, "bootstrap"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		return 1
	}
	os.Setenv("ROUTE_TEST_BOOTSTRAP", filepath.Join(dir, "bootstrap")) //nolint:errcheck // a plain name
	return m.Run()
}

// fleet is the function in several execution environments, with its providers and AWS.
type fleet struct {
	t         *testing.T
	cloud     *emulator.Cloud
	function  *functionurl.Function
	front     *httptest.Server
	providers map[string]*fake
	logs      *lockedBuffer
	client    *http.Client
}

// fake is a provider that does as it is told.
type fake struct {
	mu     sync.Mutex
	answer http.HandlerFunc
	calls  int
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.calls++
	answer := f.answer
	f.mu.Unlock()
	answer(w, r)
}

func (f *fake) does(answer http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newFleet starts AWS, providers A (cheaper) and B, and the function in environments processes.
func newFleet(t *testing.T, o functionurl.Options) *fleet {
	t.Helper()
	f := &fleet{t: t, cloud: emulator.New(emulator.Options{}), providers: map[string]*fake{}, logs: &lockedBuffer{}}
	t.Cleanup(func() { f.cloud.Close(context.Background()) }) //nolint:errcheck // nothing is read any more
	aws := httptest.NewServer(f.cloud)
	t.Cleanup(aws.Close)
	if err := errors.Join(
		f.cloud.CreateTable("session_affinity", "session_id", "model_name", "expires_at"),
		f.cloud.CreateTable("switchboard_state", "id", "", "expires_at"),
		f.cloud.CreateBucket("events"),
		f.cloud.CreateStream(emulator.Stream{Name: "events", Bucket: "events", Interval: 15 * time.Minute, GZIP: true}),
	); err != nil {
		t.Fatal(err)
	}
	yaml := fmt.Sprintf("auth:\n  keys: [{name: t, sha256: \"%x\"}]\nproviders:\n", sha256.Sum256([]byte(clientKey)))
	for name, price := range map[string]string{"A": "1.00", "B": "2.00"} {
		f.providers[name] = &fake{answer: serves(name)}
		server := httptest.NewServer(f.providers[name])
		t.Cleanup(server.Close)
		yaml += fmt.Sprintf("  %s:\n    type: openai\n    base_url: %s/v1\n    api_keys: [sk-%s-00112233]\n    models: [{id: m, pricing: {input_per_mtok: %s, output_per_mtok: 8}}]\n", name, server.URL, name, price)
	}
	path := filepath.Join(t.TempDir(), "switchboard.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Bootstrap, o.Logs, o.Queue = os.Getenv("ROUTE_TEST_BOOTSTRAP"), f.logs, true
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	o.Env = append(o.Env,
		"SWITCHBOARD_CONFIG="+path, "SESSION_TABLE=session_affinity", "STATE_TABLE=switchboard_state", "EVENTS_STREAM=events",
		"AWS_ENDPOINT_URL="+aws.URL, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test")
	var err error
	if f.function, err = functionurl.Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	f.front = httptest.NewServer(f.function)
	transport := &http.Transport{MaxIdleConnsPerHost: 500}
	f.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		f.front.Close()
		if err := f.function.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if t.Failed() {
			t.Logf("log, its end:\n%s", tail(f.logs.String(), 4000))
		}
	})
	return f
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// serves is a provider that answers at once.
func serves(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // its caller may have gone
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c-%s","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}`, name)
	}
}

// fails is a provider that is down.
func fails(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) //nolint:errcheck // its caller may have gone
	w.WriteHeader(http.StatusServiceUnavailable)
}

// streams is a provider that sends count chunks, pause apart.
func streams(count int, pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // its caller may have gone
		w.Header().Set("Content-Type", "text/event-stream")
		for n := range count {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%d\"}}]}\n\n", n)
			w.(http.Flusher).Flush()
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
				return
			}
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5,\"total_tokens\":15}}\n\ndata: [DONE]\n\n")
	}
}

// reply is what a client got.
type reply struct {
	status    int
	requestID string
	provider  string
	body      string
	took      time.Duration // to the last byte
	err       error         // the connection broke
}

func (r reply) whole() bool { return r.err == nil && r.status == http.StatusOK }

func (f *fleet) ask(session, rest string) reply {
	request, err := http.NewRequest(http.MethodPost, f.front.URL+"/v1/chat/completions",
		strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}]`+rest+`}`))
	if err != nil {
		return reply{err: err}
	}
	request.Header.Set("Authorization", "Bearer "+clientKey)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Session-Id", session)
	began := time.Now()
	response, err := f.client.Do(request)
	if err != nil {
		return reply{err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return reply{
		response.StatusCode, response.Header.Get("X-Request-Id"), response.Header.Get("X-Switchboard-Provider"),
		string(body), time.Since(began), err,
	}
}

// atOnce sends one request for each session, all at the same time.
func (f *fleet) atOnce(sessions []string, rest string) []reply {
	replies := make([]reply, len(sessions))
	var group sync.WaitGroup
	for i, session := range sessions {
		group.Go(func() { replies[i] = f.ask(session, rest) })
	}
	group.Wait()
	return replies
}

// rest waits until no invocation is under way: what a request leaves is then written.
func (f *fleet) rest() {
	f.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		busy := false
		for _, e := range f.function.Stats().Environments {
			busy = busy || e.State == functionurl.Busy || e.State == functionurl.Starting || e.State == functionurl.Ending
		}
		if !busy {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatal("an invocation does not end")
		}
	}
}

// events are what is in S3, by event_id, and how many records there were.
func (f *fleet) events() (map[string]record.Event, int) {
	f.t.Helper()
	f.rest()
	if err := f.cloud.FlushStreams(); err != nil {
		f.t.Fatal(err)
	}
	lines, err := f.cloud.Events("events")
	if err != nil {
		f.t.Fatal(err)
	}
	events := map[string]record.Event{}
	for _, line := range lines {
		var e record.Event
		if err := json.Unmarshal(line, &e); err != nil {
			f.t.Fatalf("event %s: %v", line, err)
		}
		events[e.EventID] = e
	}
	return events, len(lines)
}

// row is a session's item.
func (f *fleet) row(session string) map[string]any {
	f.t.Helper()
	items, err := f.cloud.Items("session_affinity")
	if err != nil {
		f.t.Fatal(err)
	}
	for _, item := range items {
		if item["client_session_id"] == session {
			return item
		}
	}
	return nil
}
