package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// reply is an upstream that answers so.
type reply struct {
	kind, encoding, body string
}

func (r reply) RoundTrip(request *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, request.Body) //nolint:errcheck // memory
	header := http.Header{"Content-Type": {r.kind}}
	if r.encoding != "" {
		header.Set("Content-Encoding", r.encoding)
	}
	return &http.Response{StatusCode: 200, Header: header, ContentLength: -1, Body: io.NopCloser(strings.NewReader(r.body))}, nil
}

func openTranslated(t *testing.T, upstream http.RoundTripper, stream string) (*Answer, *Failure) {
	t.Helper()
	r, err := wire.Decode(wire.Operation{Surface: wire.Messages, Path: "/messages", Billed: true}, "beta=true", http.Header{},
		[]byte(`{"model":"m","max_tokens":9,"stream":`+stream+`,"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	to := Target{
		Provider: &provider.Provider{Type: "openai", BaseURL: "http://a.test/v1", NoAuth: true, StreamOptions: true, Surfaces: []wire.Surface{wire.Chat}},
		Model:    provider.Model{ID: "m", Upstream: "m"}, As: wire.Chat,
	}
	return NewClient(upstream, Timeouts{Idle: 1e9, FirstByte: 1e9, FirstByteUnary: 1e9}).Open(context.Background(), r, to)
}

// What cannot be translated is the provider's failure while nothing has been sent.
func TestWhatIsNoAnswerFailsOver(t *testing.T) {
	for name, upstream := range map[string]reply{
		"not an answer":                {kind: "application/json", body: `{"hello":1}`},
		"compressed by surprise":       {kind: "application/json", encoding: "br", body: "xxxx"},
		"a compressed stream":          {kind: "text/event-stream", encoding: "br", body: "xxxx"},
		"larger than can be had whole": {kind: "application/json", body: `{"choices":[{"message":{"content":"` + strings.Repeat("x", maxTranslated) + `"}}]}`},
	} {
		answer, failure := openTranslated(t, upstream, "false")
		if answer != nil {
			answer.Close()
			t.Errorf("%s: an answer, want a failure", name)
			continue
		}
		if failure.Class != health.ServerError || failure.Translated != "anthropic-messages->openai-chat-completions" {
			t.Errorf("%s: %s, translated %q, want %s", name, failure.Class, failure.Translated, health.ServerError)
		}
	}
}

// An answer larger than what is kept of others is still had whole.
func TestALargeAnswerIsTranslated(t *testing.T) {
	text := strings.Repeat("x", 3*maxUnary)
	answer, failure := openTranslated(t, reply{kind: "application/json", body: `{"choices":[{"message":{"content":"` + text + `"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`}, "false")
	if failure != nil {
		t.Fatal(failure.Cause)
	}
	defer answer.Close()
	w := httptest.NewRecorder()
	answer.WriteHeader(w)
	ending := answer.Copy(w)
	if ending.Class != health.OK || !strings.Contains(w.Body.String(), text) || answer.Usage().Input != 3 {
		t.Errorf("ending %v, %d bytes, input %d, want OK, all of it, 3", ending, w.Body.Len(), answer.Usage().Input)
	}
}

// An event that is too large ends the stream with an error, which is the provider's failure.
func TestAnEventTooLargeBreaksTheStream(t *testing.T) {
	first := "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n"
	answer, failure := openTranslated(t, reply{kind: "text/event-stream", body: first + `data: {"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", 17<<20) + "\"}}]}\n\ndata: [DONE]\n\n"}, "true")
	if failure != nil {
		t.Fatal(failure.Cause)
	}
	defer answer.Close()
	w := httptest.NewRecorder()
	ending := answer.Copy(w)
	if ending.Class != health.ServerError || !strings.Contains(w.Body.String(), "event: error") || strings.Contains(w.Body.String(), "message_stop") {
		t.Errorf("ending %v: %s", ending, w.Body.String())
	}
}
