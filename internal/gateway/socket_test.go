package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/proxy"
	"switchboard/internal/record"
	"switchboard/internal/upstreamtest"
)

// signalling is a recorder that tells when an event has come.
type signalling chan record.Event

func (s signalling) Record(_ context.Context, e *record.Event) error {
	s <- *e
	return nil
}

// overSockets serves a rig to real clients, from upstreams behind real sockets.
func overSockets(t *testing.T) (r *rig, base string, events signalling) {
	r = newRig(t, rigYAML(t))
	events = make(signalling, 1000)
	r.restart(t, withTransport(r.network.Listen(t, proxy.NewTransport(time.Second))), withRecorder(events))
	server := httptest.NewServer(r.gateway)
	t.Cleanup(server.Close)
	return r, server.URL, events
}

func send(ctx context.Context, base, path, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+clientKey)
	return http.DefaultClient.Do(request)
}

// S-LAM-07, S-AFF-06 on a machine: a client that closes its connection in mid-stream ends the
// upstream call at once.
func TestSocketHangUpEndsUpstreamCall(t *testing.T) {
	r, base, events := overSockets(t)
	r.network.Set("A", upstreamtest.Always(upstreamtest.Stream(chunk1).Then(upstreamtest.Step{Hang: true})))
	ctx, cancel := context.WithCancel(t.Context())
	response, err := send(ctx, base, "/v1/chat/completions", streamBody)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if line, err := bufio.NewReader(response.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: {") {
		t.Fatalf("first line = %q, %v: the stream is held back", line, err)
	}
	cancel()
	if e := <-events; e.Outcome != record.OutcomeCancelled || e.ResponseStatus != 200 {
		t.Errorf("outcome %q with %d, want client_cancelled with 200", e.Outcome, e.ResponseStatus)
	}
	<-r.network.Calls()[0].Ended() // or the test does not end
}

// An answer that was announced longer than it came must reach the client as broken.
func TestSocketBrokenAnswerIsNotWhole(t *testing.T) {
	r, base, events := overSockets(t)
	reply := upstreamtest.JSON(200, `{"a":"`+strings.Repeat("a", 2<<20)).Then(upstreamtest.Step{Cut: true}).With("Content-Length", fmt.Sprint(3<<20))
	r.network.Set("A", upstreamtest.Always(reply))
	response, err := send(t.Context(), base, "/v1/chat/completions", chatBody)
	if err == nil {
		defer response.Body.Close()
		_, err = io.ReadAll(response.Body)
	}
	if err == nil {
		t.Error("the client takes a broken answer for a whole one")
	}
	if e := <-events; e.Outcome != record.OutcomeUpstreamError {
		t.Errorf("outcome %q, want upstream_error", e.Outcome)
	}
}

// Many streams at once, over pooled connections and pooled buffers: each client gets its own
// bytes and nobody else's.
func TestSocketStreamsStayApart(t *testing.T) {
	r, base, events := overSockets(t)
	r.network.Set("A", func(c upstreamtest.Call) upstreamtest.Reply {
		_, mark, _ := strings.Cut(string(c.Body), `"content":"`)
		mark, _, _ = strings.Cut(mark, `"`)
		reply := upstreamtest.Stream()
		for i := range 40 {
			text := fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", strings.Repeat(mark, 1+i*7))
			reply = reply.Then(upstreamtest.Step{Bytes: []byte(text[:len(text)/2])}, upstreamtest.Step{Bytes: []byte(text[len(text)/2:])})
		}
		return reply.Then(upstreamtest.Step{Bytes: []byte(finish)})
	})
	const clients, rounds = 16, 4
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			mark := fmt.Sprintf("<%d>", i)
			for range rounds {
				body := fmt.Sprintf(`{"model":"m-oai","stream":true,"messages":[{"role":"user","content":%q}]}`, mark)
				response, err := send(t.Context(), base, "/v1/chat/completions", body)
				if err != nil {
					t.Error(err)
					return
				}
				text, err := io.ReadAll(response.Body)
				response.Body.Close()
				rest := strings.ReplaceAll(string(text), mark, "")
				if want := 40 + 7*(39*40/2); err != nil || strings.Count(string(text), mark) != want || strings.Contains(rest, ">") || strings.Contains(rest, "usage") || !strings.HasSuffix(rest, "[DONE]\n\n") {
					t.Errorf("client %s got %d marks (%d wanted), %v: %.300q", mark, strings.Count(string(text), mark), want, err, rest)
					return
				}
			}
		})
	}
	all.Wait()
	for range clients * rounds {
		if e := <-events; e.Outcome != record.OutcomeOK || *e.InputTokens != 7 {
			t.Errorf("outcome %q", e.Outcome)
		}
	}
}
