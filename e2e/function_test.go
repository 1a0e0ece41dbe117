//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"switchboard/internal/fleettest"
	"switchboard/internal/functionurl"
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
	cloud  *fleettest.Cloud
	lambda *fleettest.Function
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
	f := &function{t: s.t, cloud: fleettest.NewCloud(s.t)}
	f.lambda = fleettest.StartFunction(s.t, functionurl.Options{
		Bootstrap: program, Environments: environments, Spread: true, Freeze: true,
		Env: append(f.cloud.Env(), "SWITCHBOARD_CONFIG="+s.path("switchboard.yaml")),
	})
	s.t.Cleanup(f.stop)
	s.kept = f
	return f
}

// stop looks whether all environments have lived to the end.
func (f *function) stop() {
	f.lambda.Stop()
	stats := f.lambda.Stats()
	for i, e := range stats.Environments {
		if e.ColdStarts > 1 {
			f.t.Errorf("environment %d was started %d times, want that it lives on\n%s", i, e.ColdStarts, f.tail())
		}
	}
	if stats.Throttled != 0 {
		f.t.Errorf("%d requests were throttled, want none", stats.Throttled)
	}
	for _, sign := range []string{`"msg":"panic"`, "undelivered_event"} {
		if strings.Contains(f.lambda.Log.String(), sign) {
			f.t.Errorf("%s in the log:\n%s", sign, f.tail())
		}
	}
}

func (f *function) url() string  { return f.lambda.URL }
func (f *function) tail() string { return f.lambda.Log.Tail() }

// lines are the events that Firehose has brought to S3.
func (f *function) lines() [][]byte {
	f.t.Helper()
	f.lambda.Rest()
	return f.cloud.Lines()
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
	for _, item := range f.items(fleettest.SessionTable) {
		list = append(list, asRow(f.t, item))
	}
	return list
}

func (f *function) items(table string) []map[string]any {
	f.t.Helper()
	f.lambda.Rest()
	items, err := f.cloud.Items(table)
	if err != nil {
		f.t.Fatal(err)
	}
	return items
}

func (f *function) texts() map[string]string {
	return map[string]string{
		"log":                  f.lambda.Log.String(),
		"events":               string(bytes.Join(f.lines(), []byte("\n"))),
		fleettest.SessionTable: fmt.Sprint(f.items(fleettest.SessionTable)),
		fleettest.StateTable:   fmt.Sprint(f.items(fleettest.StateTable)),
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
