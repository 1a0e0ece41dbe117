package main

import (
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
	"switchboard/internal/virtual"
)

// A virtual model that an operator saves is served by every instance within ten seconds.
func TestFleetServesWhatWasSavedWithinTenSeconds(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds of real time")
	}
	f := newFleet(t, functionurl.Options{Environments: 2, Spread: true})
	env, err := awsclient.FromEnv(func(name string) string {
		return map[string]string{"AWS_ENDPOINT_URL": f.cloud.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	store := dynamo.New(dynamo.NewClient(env.Config("dynamodb")), fleettest.SessionTable, fleettest.StateTable, nil)
	models, err := virtual.New([]*provider.Provider{{Identity: "B", Models: []provider.Model{{ID: "m", Upstream: "m"}}}}, nil,
		store.Document(virtual.DocumentID).Current(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if r := f.atOnce([]string{"s1", "s2"}, ""); !r[0].whole() || !r[1].whole() { // both have looked
		t.Fatalf("before: %+v", r)
	}
	change, err := virtual.ParseChange([]byte(`{"source":"smart","target_model":"B/m"}`))
	if err == nil {
		_, err = models.Save(t.Context(), change)
	}
	if err != nil {
		t.Fatal(err)
	}
	for saved := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		asked, served := time.Since(saved), 0
		for range 4 {
			if f.status("smart") == http.StatusOK {
				served++
			}
		}
		if served == 4 {
			return
		}
		if asked > 10*time.Second {
			t.Fatalf("served %d of 4 times, %v after it was saved", served, asked)
		}
	}
}

// status is that of a request for a model.
func (f *fleet) status(model string) int {
	f.t.Helper()
	request, err := http.NewRequest(http.MethodPost, f.function.URL+"/v1/chat/completions",
		strings.NewReader(`{"model":"`+model+`","messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		f.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+clientKey)
	response, err := f.client.Do(request)
	if err != nil {
		f.t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}
