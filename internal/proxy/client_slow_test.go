package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// canned answers every call with one answer.
type canned struct {
	header http.Header
	body   string
}

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: c.header, ContentLength: -1, Body: io.NopCloser(strings.NewReader(c.body)),
	}, nil
}

// open calls a provider that gives the canned answer.
func (c canned) open(t *testing.T, surface wire.Surface, stream string) (*Answer, *Failure) {
	t.Helper()
	return c.openWithin(t.Context(), t, surface, stream)
}

func (c canned) openWithin(ctx context.Context, t *testing.T, surface wire.Surface, stream string) (*Answer, *Failure) {
	t.Helper()
	client := NewClient(c, Timeouts{FirstByte: time.Minute, FirstByteUnary: time.Minute, Idle: time.Minute})
	body := []byte(`{"model":"m","stream":` + stream + `}`)
	request, err := wire.Decode(wire.Operation{Surface: surface, Path: "/x", Billed: true}, "", nil, body)
	if err != nil {
		t.Fatal(err)
	}
	return client.Open(ctx, request, Target{
		Provider: &provider.Provider{Type: "openai", BaseURL: "http://127.0.0.1:1/v1"},
		Key:      provider.Key{ID: "1", Text: "sk-test-AAAABBBBCCCCDDDD1234"},
		Model:    provider.Model{ID: "m", Upstream: "m"},
	})
}

// slowClient takes a while for each write.
type slowClient struct {
	bytes.Buffer
	header http.Header
	pause  time.Duration
	limit  time.Time // the deadline of writes
}

func (s *slowClient) Header() http.Header { return s.header }
func (s *slowClient) WriteHeader(int)     {}

func (s *slowClient) Write(b []byte) (int, error) {
	timer := time.NewTimer(s.pause)
	defer timer.Stop()
	<-timer.C
	if !s.limit.IsZero() && time.Now().After(s.limit) {
		return 0, errors.New("i/o timeout")
	}
	return s.Buffer.Write(b)
}

func (s *slowClient) SetWriteDeadline(t time.Time) error {
	s.limit = t
	return nil
}

const event = `data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}` + "\n\n"

// S-AFF-06: what the client takes for reading is not the provider's silence.
func TestSlowClientIsNoSilentProvider(t *testing.T) {
	stream := strings.Repeat(event, 4000) + "data: [DONE]\n\n"
	for name, c := range map[string]canned{
		"stream": {http.Header{"Content-Type": {"text/event-stream"}}, stream},
		"unary":  {http.Header{"Content-Type": {"application/json"}}, `{"pad":"` + strings.Repeat("x", 3<<20) + `"}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			answer, failure := c.open(t, wire.Chat, map[string]string{"stream": "true", "unary": "false"}[name])
			if failure != nil {
				t.Fatalf("%s: %v", name, failure.Cause)
			}
			defer answer.Close()
			client := &slowClient{header: http.Header{}, pause: 50 * time.Second} // of the minute that is the limit
			if ending := answer.Copy(client); ending.Class != health.OK {
				t.Errorf("%s: Copy() = %v, %v, want ok", name, ending.Class, ending.Cause)
			}
			if got := client.String(); got != c.body {
				t.Errorf("%s: client got %d bytes, want %d", name, len(got), len(c.body))
			}
			if !client.limit.IsZero() {
				t.Errorf("%s: a write deadline is left on the connection", name)
			}
		})
	}
}

// A client that has stopped reading is given up, or it would hold its call for good.
func TestClientThatStoppedReadingIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := canned{http.Header{"Content-Type": {"text/event-stream"}}, strings.Repeat(event, 4000) + "data: [DONE]\n\n"}
		answer, failure := c.open(t, wire.Chat, "true")
		if failure != nil {
			t.Fatal(failure.Cause)
		}
		defer answer.Close()
		client := &slowClient{header: http.Header{}, pause: time.Hour}
		if ending := answer.Copy(client); ending.Class != health.ClientGone {
			t.Errorf("Copy() = %v, want client gone", ending.Class)
		}
	})
}

// A 200 that is no answer fails over like any other failure.
func TestSuccessWithoutAnAnswer(t *testing.T) {
	for _, one := range []struct {
		name, kind, body string
		surface          wire.Surface
		want             health.Class
	}{
		{"html", "text/html", "<html>welcome</html>", wire.Chat, health.ServerError},
		{"empty", "application/json", "", wire.Chat, health.ServerError},
		{"cut", "application/json", `{"id":`, wire.Messages, health.ServerError},
		{"list", "application/json", `[{"id":1}]`, wire.Embeddings, health.ServerError},
		{"failed response", "application/json", `{"id":"r","status":"failed","error":{"code":"rate_limit_exceeded","message":"slow"}}`, wire.Responses, health.RateLimited},
		{"failed response, spaced", "application/json", `{ "status" : "failed", "error" : {"code":"server_error","message":"no"}, "id":"r" }`, wire.Responses, health.ServerError},
	} {
		for _, stream := range []string{"true", "false"} {
			_, failure := canned{http.Header{"Content-Type": {one.kind}}, one.body}.open(t, one.surface, stream)
			if failure == nil || failure.Class != one.want {
				t.Errorf("%s, stream %s: Open() failure = %+v, want %s", one.name, stream, failure, one.want)
			}
		}
	}
}

// A word "failed" elsewhere does not make a response a failure.
func TestResponseThatSpeaksOfFailure(t *testing.T) {
	body := `{"id":"r","status":"completed","output":[{"type":"x","status":"failed"}],"usage":{"input_tokens":1,"output_tokens":2}}`
	answer, failure := canned{http.Header{"Content-Type": {"application/json"}}, body}.open(t, wire.Responses, "false")
	if failure != nil {
		t.Fatalf("Open() = %+v, want an answer", failure)
	}
	answer.Close()
}

// S-SEC-03: a header that would be passed on is not when our key is in it.
func TestHeadersThatShowOurKeyStayHere(t *testing.T) {
	from := http.Header{
		"Content-Type": {"application/json"}, "Retry-After": {"sk-test-AAAABBBBCCCCDDDD1234"},
		"Request-Id": {"req-BBBBCCCC-1"}, "X-Ratelimit-Reset": {"12s"},
	}
	to := http.Header{}
	CopyHeaders(to, from, "sk-test-AAAABBBBCCCCDDDD1234")
	if len(to) != 2 || to.Get("Content-Type") == "" || to.Get("X-Ratelimit-Reset") == "" {
		t.Errorf("CopyHeaders() = %v, want what shows no 8 characters of the key", to)
	}
}
