package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/fleettest"
	"switchboard/internal/functionurl"
	"switchboard/internal/record"
)

const clientKey = "ck-fleet-PPPPQQQQRRRRSSSS"

// TestMain builds the function once, as it is deployed except for the machine it is for.
func TestMain(m *testing.M) { os.Exit(fleettest.Main(m, "functions/route")) }

// fleet is the function in several execution environments, with its providers and AWS.
type fleet struct {
	t         *testing.T
	cloud     *fleettest.Cloud
	function  *fleettest.Function
	providers map[string]*fleettest.Provider
	client    *http.Client
}

// newFleet starts AWS, providers A (cheaper) and B, and the function in environments processes.
func newFleet(t *testing.T, o functionurl.Options) *fleet {
	t.Helper()
	f := &fleet{t: t, cloud: fleettest.NewCloud(t), providers: map[string]*fleettest.Provider{}}
	yaml := fmt.Sprintf("auth:\n  keys: [{name: t, sha256: \"%x\"}]\nproviders:\n", sha256.Sum256([]byte(clientKey)))
	for name, price := range map[string]string{"A": "1.00", "B": "2.00"} {
		f.providers[name] = fleettest.NewProvider(t, serves(name))
		yaml += fmt.Sprintf("  %s:\n    type: openai\n    base_url: %s/v1\n    api_keys: [sk-%s-00112233]\n    models: [{id: m, pricing: {input_per_mtok: %s, output_per_mtok: 8}}]\n", name, f.providers[name].URL, name, price)
	}
	path := filepath.Join(t.TempDir(), "switchboard.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Bootstrap = fleettest.Program("route")
	o.Env = append(append(o.Env, "SWITCHBOARD_CONFIG="+path), f.cloud.Env()...)
	f.function = fleettest.StartFunction(t, o)
	transport := &http.Transport{MaxIdleConnsPerHost: 500}
	f.client = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	return f
}

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
	request, err := http.NewRequest(http.MethodPost, f.function.URL+"/v1/chat/completions",
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

// events are what is in S3, by event_id, and how many records there were.
func (f *fleet) events() (map[string]record.Event, int) {
	f.t.Helper()
	f.function.Rest()
	lines := f.cloud.Lines()
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
	items, err := f.cloud.Items(fleettest.SessionTable)
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
