package gateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"switchboard/internal/record"
	"switchboard/internal/upstreamtest"
	"switchboard/internal/wire"
)

// leavesOneEvent checks what holds for every request whatever it was: one routing event, a
// known outcome, no unscripted call, one whole answer.
func (c *conversation) leavesOneEvent(name, method, target string, times int, x *exchanged) {
	c.t.Helper()
	path, _, _ := strings.Cut(target, "?")
	want := 0
	if _, ok := wire.Operations()[path]; ok && method == http.MethodPost {
		want = times
	}
	if len(x.events) != want {
		c.t.Errorf("%s left %d events, want %d", name, len(x.events), want)
	}
	outcomes := []string{record.OutcomeOK, record.OutcomeCancelled, record.OutcomeUpstreamError, record.OutcomeTimeout, record.OutcomeRefused}
	for _, e := range x.events {
		if !slices.Contains(outcomes, e.Outcome) || len(e.EventID) != 26 || e.CreatedAt == 0 {
			c.t.Errorf("%s left an event with id %q, time %d, outcome %q", name, e.EventID, e.CreatedAt, e.Outcome)
		}
		if e.Outcome == record.OutcomeOK && e.ResponseStatus/100 != 2 {
			c.t.Errorf("%s: outcome ok with status %d", name, e.ResponseStatus)
		}
	}
	for _, a := range x.all {
		if a.panicked != nil && !a.aborted {
			c.t.Errorf("%s: the handler panicked: %v", name, a.panicked)
		}
		if a.status >= 400 && method != http.MethodHead {
			checkErrorShape(c.t, name, path, a)
		}
		if a.sent.Get("X-Request-Id") == "" && a.status != 0 {
			c.t.Errorf("%s: no X-Request-Id", name)
		}
		if length := a.sent.Get("Content-Length"); length != "" && length != fmt.Sprint(a.body.Len()) && !a.aborted && method != http.MethodHead {
			c.t.Errorf("%s: Content-Length %s with a body of %d bytes", name, length, a.body.Len())
		}
	}
	for _, call := range x.calls {
		checkCall(c.t, call)
		if call.Unscripted {
			c.t.Errorf("%s: a call to %s that the script does not foresee", name, call.Upstream)
		}
	}
}

// checkErrorShape checks that an error is JSON in the shape of the caller's surface.
func checkErrorShape(t testing.TB, name, path string, a *answer) {
	t.Helper()
	if a.status == 499 {
		return
	}
	if kind := a.sent.Get("Content-Type"); kind != "application/json" {
		t.Errorf("%s: error with Content-Type %q", name, kind)
	}
	if _, ok := a.member("error").(map[string]any); !ok {
		t.Errorf("%s: no error object in %.300q", name, a.text())
	}
	if anthropic := a.member("type") == "error"; anthropic != strings.HasPrefix(path, "/v1/messages") {
		t.Errorf("%s: error of another surface's shape: %.300q", name, a.text())
	}
}

// checkCall checks what holds for every upstream call: exactly one credential, ours, and
// nothing of the client's own.
func checkCall(t testing.TB, call upstreamtest.Call) {
	t.Helper()
	for header, values := range call.Header {
		for _, v := range values {
			if strings.Contains(v, clientKey) {
				t.Errorf("the client's key went to %s in %s", call.Upstream, header)
			}
		}
	}
	credentials := 0
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Proxy-Authorization", "Cookie", "X-Amz-Security-Token"} {
		credentials += len(call.Header.Values(name))
	}
	if credentials > 1 {
		t.Errorf("%s was sent %d credentials: %v", call.Upstream, credentials, call.Header)
	}
}

// keepsSecrets looks for 8 characters in a row of any key in what clients, log and events
// show (S-SEC-03), and that the log is JSON lines.
func (c *conversation) keepsSecrets() {
	c.t.Helper()
	shown := map[string]string{"log": c.world.end()}
	events, err := json.Marshal(c.world.events())
	if err != nil {
		c.t.Fatal(err)
	}
	shown["events"] = string(events)
	for name, x := range c.exchanges {
		shown["answer to "+name] = fmt.Sprint(x.answer.sent) + x.answer.text()
	}
	for where, text := range shown {
		for _, secret := range c.secrets {
			if run := sharedRun(text, secret); run != "" {
				c.t.Errorf("%s shows %q of a key", where, run)
			}
		}
	}
	if err := jsonLines(shown["log"]); err != nil {
		c.t.Errorf("log: %v", err)
	}
}

// sharedRun returns 8 characters that text and secret share, or "".
func sharedRun(text, secret string) string {
	for i := 0; i+8 <= len(secret); i++ {
		if strings.Contains(text, secret[i:i+8]) {
			return secret[i : i+8]
		}
	}
	return ""
}

func jsonLines(text string) error {
	for line := range strings.Lines(text) {
		if !json.Valid([]byte(line)) {
			return errors.New("not a JSON line: " + line)
		}
	}
	return nil
}
