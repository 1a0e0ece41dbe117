package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"switchboard/internal/awsclient"
	"switchboard/internal/dynamo"
	"switchboard/internal/fleettest"
	"switchboard/internal/functionurl"
	"switchboard/internal/provider"
	"switchboard/internal/signal"
	"switchboard/internal/virtual"
)

// adapts saves an adaptive virtual model that hides the plain name m.
func (f *fleet) adapts() {
	f.t.Helper()
	env, err := awsclient.FromEnv(func(name string) string {
		for _, set := range f.cloud.Env() {
			if value, ok := strings.CutPrefix(set, name+"="); ok {
				return value
			}
		}
		return ""
	})
	if err != nil {
		f.t.Fatal(err)
	}
	store := dynamo.New(dynamo.NewClient(env.Config("dynamodb")), fleettest.SessionTable, fleettest.StateTable, slog.New(slog.DiscardHandler))
	var providers []*provider.Provider
	for name := range f.providers {
		providers = append(providers, &provider.Provider{Identity: name, Models: []provider.Model{{ID: "m", Upstream: "m"}}})
	}
	models, err := virtual.New(providers, nil, store.Document(virtual.DocumentID).Current(), slog.New(slog.DiscardHandler))
	if err != nil {
		f.t.Fatal(err)
	}
	change, err := virtual.ParseChange([]byte(`{"source":"m","strategy":"adaptive","objective":"latency","targets":[{"model":"A/m"},{"model":"B/m"}]}`))
	if err == nil {
		_, err = models.Save(f.t.Context(), change)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// document is what is shared under an id.
func (f *fleet) document(id string) string {
	f.t.Helper()
	items, err := f.cloud.Items(fleettest.StateTable)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, item := range items {
		if name, _ := item["id"].(string); strings.Contains(name, id) {
			return fmt.Sprintf("%s", item["data"])
		}
	}
	return ""
}

// slowly is an answer after a while.
func slowly(wait time.Duration, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // its caller may have gone
		time.Sleep(wait)
		answer(w, r)
	}
}

// calls are those of DynamoDB since the last ask for them.
func (f *fleet) calls() (n int, what string) {
	f.t.Helper()
	f.function.Rest()
	for operation, count := range f.cloud.Calls() {
		if strings.HasPrefix(operation, "DynamoDB.") {
			n += count
			what += fmt.Sprint(operation, " ", count, "; ")
		}
	}
	f.cloud.ResetCalls()
	return n, what
}

// Signals ride along with the pin: a request that follows it makes two calls of DynamoDB, also
// when everything that is shared is due. Whoever needs a decision tells, and another
// environment knows.
func TestFleetSharesSignalsForNoMoreCalls(t *testing.T) {
	f := newFleet(t, functionurl.Options{Environments: 2, Spread: true})
	f.adapts()
	f.providers["A"].Does(slowly(700*time.Millisecond, serves("A")))
	f.providers["B"].Does(serves("B"))
	for i := range 4 { // both environments, at both providers
		if r := f.ask(fmt.Sprint("warm-", i), ""); !r.whole() {
			t.Fatalf("warm: %+v", r)
		}
	}
	home := f.ask("pinned", "")
	f.calls()
	const n = 4
	for i := range n {
		time.Sleep(2100 * time.Millisecond) // everything that rides along is due
		if r := f.ask("pinned", ""); r.provider != home.provider {
			t.Errorf("request %d: served by %s, want %s", i, r.provider, home.provider)
		}
	}
	if calls, what := f.calls(); calls != 2*n || strings.Contains(what, "PutItem") {
		t.Errorf("%d requests that follow a pin made %s; want two calls each, and nothing told", n, what)
	}
	document := f.document(signal.DocumentID)
	if !strings.Contains(document, `"B/m":[`) {
		t.Errorf("the shared signals are %q, want B in them", document)
	}
	slowest := 0
	for i := range 10 {
		if f.ask(fmt.Sprint("new-", i), "").provider == "A" {
			slowest++
		}
	}
	if slowest > 2 {
		t.Errorf("%d of 10 new sessions went to the slow provider", slowest)
	}
}
