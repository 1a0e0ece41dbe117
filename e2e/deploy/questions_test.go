//go:build deploy

package deploy

import (
	"encoding/json"
	"math/big"
	"net/url"
	"strings"
	"testing"

	"switchboard/internal/athena/athenatest"
	"switchboard/internal/record"
)

// Usage of each answer of the upstream, and its price by the configuration, in nano-USD.
const (
	inputTokens, cachedTokens, outputTokens = 1000, 800, 20
	costNanoUSD                             = 200*2000 + 800*500 + 20*8000
)

// testQuestions asks the deployed admin function about sessions that have ended, whatever its
// engine is: counts and money are what the upstream has reported.
func (d *deployed) testQuestions(t *testing.T, key string) {
	defer func() {
		if t.Failed() {
			t.Logf("log of the admin function:\n%s", strings.Join(d.logged(t, "/switchboard/"+stackName+"/admin"), "\n"))
		}
	}()
	ask := func(into any, path, session string) {
		t.Helper()
		got := d.do(t, request{output: "AdminUrl", method: "GET", path: path + "?" + url.Values{"session_id": {session}, "user_path": {userPath}}.Encode(), key: key})
		decoder := json.NewDecoder(strings.NewReader(got.body))
		decoder.UseNumber()
		if err := decoder.Decode(into); err != nil || got.status != 200 {
			t.Fatalf("%s of %s: %d, %v: %s", path, session, got.status, err, got.body)
		}
	}
	for session, want := range map[string]struct{ requests, switches int64 }{"s2": {6, 0}, "moved": {7, 1}} {
		var summary struct {
			Requests, Switches, Sessions int64
			Input                        int64       `json:"input_tokens"`
			Cached                       int64       `json:"cached_input_tokens"`
			Output                       int64       `json:"output_tokens"`
			Cost                         json.Number `json:"total_cost"`
			Unpriced                     int64       `json:"unpriced_requests"`
			Complete                     bool
		}
		eventually(t, "a complete answer", func() bool { ask(&summary, "/admin/usage/summary", session); return summary.Complete })
		cost, ok := new(big.Rat).SetString(summary.Cost.String())
		if n := want.requests; !ok || summary.Requests != n || summary.Switches != want.switches || summary.Sessions != 1 || summary.Unpriced != 0 ||
			summary.Input != n*inputTokens || summary.Cached != n*cachedTokens || summary.Output != n*outputTokens || cost.Cmp(big.NewRat(n*costNanoUSD, 1e9)) != 0 {
			t.Errorf("summary of %s: %+v, want %d requests at %d nano-USD each, %d switches", session, summary, n, int64(costNanoUSD), want.switches)
		}
		var threads struct {
			Total    int64
			Sessions []struct {
				Count  int64 `json:"request_count"`
				Latest record.Event
			}
		}
		ask(&threads, "/admin/audit/sessions", session)
		if threads.Total != 1 || len(threads.Sessions) != 1 || threads.Sessions[0].Count != want.requests || threads.Sessions[0].Latest.SessionID != session {
			t.Errorf("threads of %s: %+v, want one of %d requests", session, threads, want.requests)
		}
		var log struct{ Entries []record.Event }
		ask(&log, "/admin/audit/log", session)
		switched := int64(0)
		for i := range log.Entries {
			if log.Entries[i].Switched {
				switched++
			}
		}
		if int64(len(log.Entries)) != want.requests || switched != want.switches {
			t.Errorf("log of %s: %d entries, %d switched, want %d, %d", session, len(log.Entries), switched, want.requests, want.switches)
		}
	}
}

// putPattern lets DuckDB know the columns.
func (d *deployed) putPattern(t *testing.T) {
	t.Helper()
	event := athenatest.Pattern()
	text, err := json.Marshal(&event)
	if err != nil {
		t.Fatal(err)
	}
	d.send(t, "s3", "PUT", "/"+d.outputs["EventsBucketName"]+"/events/"+athenatest.PatternKey, "", "", append(text, '\n'))
}
