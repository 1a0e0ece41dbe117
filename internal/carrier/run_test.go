package carrier

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
)

func TestRunTellsWhyAStartFailed(t *testing.T) {
	api := newRuntimeAPI(t)
	var log bytes.Buffer
	code := Run(t.Context(), api.getenv, &log, func() (http.Handler, string, error) {
		return nil, "", errors.New("switchboard.yaml:3:1: nope: unknown key")
	})
	var line struct{ Msg, Cause string }
	if err := json.Unmarshal(log.Bytes(), &line); code != 1 || err != nil || line.Msg != "start failed" || line.Cause != "switchboard.yaml:3:1: nope: unknown key" {
		t.Errorf("Run() = %d, log %s, want 1 and the cause", code, log.String())
	}
	if got, want := wait(t, api.inits), `{"errorMessage":"switchboard.yaml:3:1: nope: unknown key","errorType":"Runtime.InitError"}`; got != want {
		t.Errorf("init error = %s, want %s", got, want)
	}
}

func TestRunOffLambdaNeedsAnAddress(t *testing.T) {
	var log bytes.Buffer
	code := Run(t.Context(), func(string) string { return "" }, &log, func() (http.Handler, string, error) {
		return http.NotFoundHandler(), "not an address", nil
	})
	if code != 1 || !bytes.Contains(log.Bytes(), []byte(`"msg":"stopped"`)) {
		t.Errorf("Run() = %d, log %s, want 1 and stopped", code, log.String())
	}
}
