package proxy

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// earlyAnswer answers before it has read the request, as an upstream that refuses does.
type earlyAnswer struct{ bodies []io.ReadCloser }

func (e *earlyAnswer) RoundTrip(r *http.Request) (*http.Response, error) {
	again, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	e.bodies = append(e.bodies, r.Body, again)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2,
	}, nil
}

// The gateway uses a request's memory again for the next one. A transport that is still
// sending when the answer is closed must not send what is in it then.
func TestClosedAnswerIsNoLongerSent(t *testing.T) {
	transport := &earlyAnswer{}
	client := NewClient(transport, Timeouts{FirstByte: time.Minute, FirstByteUnary: time.Minute, Idle: time.Minute})
	body := []byte(`{"model":"m","secret":"of one tenant"}`)
	request, err := wire.Decode(wire.Operation{Surface: wire.Chat, Path: "/chat/completions", Billed: true}, "", nil, body)
	if err != nil {
		t.Fatal(err)
	}
	to := Target{
		Provider: &provider.Provider{Type: "openai", BaseURL: "http://127.0.0.1:1/v1", NoAuth: true},
		Model:    provider.Model{ID: "m", Upstream: "m"},
	}
	answer, failure := client.Open(t.Context(), request, to)
	if failure != nil {
		t.Fatal(failure)
	}
	answer.Close()
	copy(body, `{"model":"m","secret":"of another!!"}`)
	for i, late := range transport.bodies {
		if sent, err := io.ReadAll(late); len(sent) != 0 || err == nil {
			t.Errorf("reader %d sent %q, %v after Close, want nothing and an error", i, sent, err)
		}
	}
}

// The memory is free while the answer goes on, but only once the upstream has it all.
func TestRequestIsReleasedWhenItIsSent(t *testing.T) {
	up := &upload{body: wire.Splice([]byte(`{"model":"m"}`))}
	reader := up.open()
	answer := &Answer{upload: upload{body: up.body, readers: up.readers}}
	if answer.ReleaseRequest() {
		t.Error("ReleaseRequest() before anything was sent = true")
	}
	if _, err := io.ReadFull(reader, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if answer.ReleaseRequest() {
		t.Error("ReleaseRequest() half-way = true")
	}
	if _, err := io.ReadAll(reader); err != nil {
		t.Fatal(err)
	}
	if !answer.ReleaseRequest() {
		t.Error("ReleaseRequest() when all is sent = false")
	}
	if n, err := reader.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("Read() behind the end of a released request = %d, %v, want EOF: anything else breaks the connection", n, err)
	}
}
