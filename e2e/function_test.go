//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/emulator"
	"switchboard/internal/functionurl"
)

// Names of what the function uses on AWS.
const (
	sessionTable = "session_affinity"
	stateTable   = "switchboard_state"
	eventsBucket = "events"
)

// environments is more than one, so that no turn of a session can count on its process.
const environments = 3

// bootstrap builds the route function once, as `sam build` does but for this processor.
var bootstrap = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(os.Getenv("E2E_BIN"), "route")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	architecture := map[string]string{"amd64": "x86_64"}[runtime.GOARCH]
	if architecture == "" {
		architecture = runtime.GOARCH
	}
	build := exec.Command("make", "-C", "..", "build-RouteFunction", "ARTIFACTS_DIR="+dir, "LAMBDA_ARCH="+architecture)
	build.Env = append(os.Environ(), "MAKEFLAGS=") // those of a make that runs this test
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build of functions/route: %w\n%s", err, out)
	}
	return filepath.Join(dir, "bootstrap"), nil
})

// function is the route function behind a Function URL, in several environments that are
// frozen between requests, over AWS in this process.
type function struct {
	t      *testing.T
	cloud  *emulator.Cloud
	lambda *functionurl.Function
	front  *httptest.Server
	log    lockedBuffer
}

// function starts the stack's gateway as a function; the stack's ledger is then its AWS.
func (s *stack) function() *function {
	s.t.Helper()
	if runtime.GOOS != "linux" {
		s.t.Skip("the function is built for Linux")
	}
	program, err := bootstrap()
	if err != nil {
		s.t.Fatal(err)
	}
	f := &function{t: s.t, cloud: emulator.New(emulator.Options{})}
	s.t.Cleanup(func() { f.cloud.Close(context.Background()) }) //nolint:errcheck // nothing is read any more
	if err := errors.Join(
		f.cloud.CreateTable(sessionTable, "session_id", "model_name", "expires_at"),
		f.cloud.CreateTable(stateTable, "id", "", "expires_at"),
		f.cloud.CreateBucket(eventsBucket),
		f.cloud.CreateStream(emulator.Stream{Name: "events", Bucket: eventsBucket, Interval: 15 * time.Minute, GZIP: true}),
	); err != nil {
		s.t.Fatal(err)
	}
	aws := httptest.NewServer(f.cloud)
	s.t.Cleanup(aws.Close)
	f.lambda, err = functionurl.Start(context.WithoutCancel(s.t.Context()), functionurl.Options{
		Bootstrap: program, Environments: environments, Queue: true, Spread: true, Freeze: true,
		Timeout: time.Minute, Logs: &f.log,
		Env: []string{
			"SWITCHBOARD_CONFIG=" + s.path("switchboard.yaml"),
			"SESSION_TABLE=" + sessionTable, "STATE_TABLE=" + stateTable, "EVENTS_STREAM=events", "AWS_ENDPOINT_URL=" + aws.URL,
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	f.front = httptest.NewServer(f.lambda)
	s.t.Cleanup(f.stop)
	s.kept = f
	return f
}

// stop looks whether all environments have lived to the end.
func (f *function) stop() {
	f.front.CloseClientConnections()
	f.front.Close()
	stats := f.lambda.Stats()
	for i, e := range stats.Environments {
		if e.ColdStarts > 1 {
			f.t.Errorf("environment %d was started %d times, want that it lives on\n%s", i, e.ColdStarts, f.tail())
		}
	}
	if stats.Throttled != 0 {
		f.t.Errorf("%d requests were throttled, want none", stats.Throttled)
	}
	if err := f.lambda.Close(); err != nil {
		f.t.Error(err)
	}
	for _, sign := range []string{`"msg":"panic"`, "undelivered_event"} {
		if strings.Contains(f.log.String(), sign) {
			f.t.Errorf("%s in the log:\n%s", sign, f.tail())
		}
	}
}

func (f *function) url() string  { return f.front.URL }
func (f *function) tail() string { return lastLines(f.log.String()) }

// rest waits until no invocation runs: all that a request leaves is then written.
func (f *function) rest() {
	f.t.Helper()
	eventually(f.t, "rest of all environments", func() bool {
		return !slices.ContainsFunc(f.lambda.Stats().Environments, func(e functionurl.Environment) bool {
			return e.State != functionurl.Empty && e.State != functionurl.Idle && e.State != functionurl.Frozen
		})
	})
}

// lines are the events that Firehose has brought to S3.
func (f *function) lines() [][]byte {
	f.t.Helper()
	f.rest()
	if err := f.cloud.FlushStreams(); err != nil {
		f.t.Fatal(err)
	}
	lines, err := f.cloud.Events(eventsBucket)
	if err != nil {
		f.t.Fatal(err)
	}
	return lines
}

func (f *function) events() []row {
	f.t.Helper()
	var list []row
	for _, line := range f.lines() {
		var event map[string]any
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.UseNumber()
		if err := decoder.Decode(&event); err != nil {
			f.t.Fatalf("event %s: %v", line, err)
		}
		list = append(list, asRow(f.t, event))
	}
	slices.SortFunc(list, func(a, b row) int { return strings.Compare(a["event_id"], b["event_id"]) })
	if n := distinct(list, "event_id"); n != len(list) {
		f.t.Errorf("%d events of which %d differ, want each once", len(list), n)
	}
	return list
}

func (f *function) pins() []row {
	f.t.Helper()
	var list []row
	for _, item := range f.items(sessionTable) {
		list = append(list, asRow(f.t, item))
	}
	return list
}

func (f *function) items(table string) []map[string]any {
	f.t.Helper()
	f.rest()
	items, err := f.cloud.Items(table)
	if err != nil {
		f.t.Fatal(err)
	}
	return items
}

func (f *function) texts() map[string]string {
	return map[string]string{
		"log":        f.log.String(),
		"events":     string(bytes.Join(f.lines(), []byte("\n"))),
		sessionTable: fmt.Sprint(f.items(sessionTable)),
		stateTable:   fmt.Sprint(f.items(stateTable)),
	}
}

// asRow writes values as the database does: 0 and 1 for booleans, lists as JSON.
func asRow(t *testing.T, values map[string]any) row {
	t.Helper()
	r := row{}
	for name, value := range values {
		switch value := value.(type) {
		case nil:
		case string:
			r[name] = value
		case json.Number:
			r[name] = value.String()
		case bool:
			r[name] = map[bool]string{false: "0", true: "1"}[value]
		default:
			text, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			r[name] = string(text)
		}
	}
	return r
}
