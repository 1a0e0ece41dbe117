package upstreamtest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/upstreamtest"
)

func TestParse(t *testing.T) {
	got, err := upstreamtest.Parse([]byte("after 3s\n200\nContent-Type: text/event-stream\nX-Odd: \"a\\tb\"\n\n" +
		": hi\n\ndata: 1\n@flush\n\n@wait 10s\n\"data: 2\\r\\n\"\n\"\\r\\n\"\n@cut\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := upstreamtest.Reply{
		Wait: 3 * time.Second, Status: 200,
		Header: http.Header{"Content-Type": {"text/event-stream"}, "X-Odd": {"a\tb"}},
		Steps: []upstreamtest.Step{
			{Bytes: []byte(": hi\n\n")},
			{Bytes: []byte("data: 1\n")},
			{Bytes: []byte("\n")},
			{Wait: 10 * time.Second},
			{Bytes: []byte("data: 2\r\n")},
			{Bytes: []byte("\r\n")},
			{Cut: true},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"teapot\n", "200\nno header\n\n", "200\n\n@later\n", "after x\n200\n", "200\n\n@wait x\n"} {
		if _, err := upstreamtest.Parse([]byte(bad)); err == nil {
			t.Errorf("Parse(%q) has no error", bad)
		}
	}
}

// Both carriers must play the same script alike, else a case proves one of them only.
func TestNetwork(t *testing.T) {
	for _, carrier := range []string{"memory", "socket"} {
		t.Run(carrier, func(t *testing.T) {
			n := upstreamtest.NewNetwork()
			var transport http.RoundTripper = n
			if carrier == "socket" {
				transport = n.Listen(t, &http.Transport{})
			}
			n.Set("A", upstreamtest.InTurn(
				upstreamtest.JSON(429, `{}`).With("Retry-After", "7"),
				upstreamtest.Stream("data: 1\n\n", "data: 2\n\n").Then(upstreamtest.Step{Cut: true}),
				upstreamtest.Reply{Fail: upstreamtest.ErrRefused},
			))
			post := func() (*http.Response, error) {
				r, err := http.NewRequest("POST", "http://a.test/v1/x?y=1", strings.NewReader("body"))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer k1")
				return transport.RoundTrip(r)
			}
			response, err := post()
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if response.StatusCode != 429 || string(body) != "{}" || response.ContentLength != 2 || response.Header.Get("Retry-After") != "7" {
				t.Errorf("first answer = %d %q, length %d, want 429 {} of 2", response.StatusCode, body, response.ContentLength)
			}
			response, err = post()
			if err != nil {
				t.Fatal(err)
			}
			body, err = io.ReadAll(response.Body)
			response.Body.Close()
			if string(body) != "data: 1\n\ndata: 2\n\n" || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("cut stream = %q, %v, want both events and an unexpected end", body, err)
			}
			if _, err := post(); err == nil {
				t.Error("refused call has no error")
			}
			if _, err := post(); err == nil {
				t.Error("unscripted call has no error")
			}
			calls := n.Calls()
			for i, want := range []bool{false, false, false, true} {
				if calls[i].Unscripted != want {
					t.Errorf("call %d: Unscripted = %v, want %v", i+1, calls[i].Unscripted, want)
				}
			}
			if c := calls[0]; n.Order(0) != "A,A,A,A" || c.Path != "/v1/x" || c.Query != "y=1" || string(c.Body) != "body" || c.Credential() != "k1" {
				t.Errorf("calls = %q, first %+v", n.Order(0), c)
			}
		})
	}
}

func TestNetworkHonoursContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := upstreamtest.NewNetwork()
		n.Set("A", upstreamtest.InTurn(
			upstreamtest.Reply{Silent: true},
			upstreamtest.Stream("data: 1\n\n").Then(upstreamtest.Step{Hang: true}),
		))
		for _, when := range []string{"header", "body"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			r, _ := http.NewRequestWithContext(ctx, "POST", "http://a.test/", http.NoBody)
			response, err := n.RoundTrip(r)
			if err == nil {
				_, err = io.ReadAll(response.Body)
				response.Body.Close()
			}
			if err == nil {
				t.Errorf("%s: no error at the end of the context", when)
			}
			cancel()
		}
		for _, c := range n.Calls() {
			if !c.Cancelled() {
				t.Errorf("call %d is not cancelled", c.N)
			}
		}
	})
}

func TestScript(t *testing.T) {
	var s upstreamtest.Script
	s.Set("", 0, upstreamtest.JSON(200, "rest"))
	s.Set("", 1, upstreamtest.JSON(503, "first"))
	s.Set("k2", 0, upstreamtest.JSON(401, "k2"))
	got := func(key string) int {
		return s.Answer(upstreamtest.Call{Header: http.Header{"X-Api-Key": {key}}}).Status
	}
	for i, want := range []int{503, 200, 200} {
		if g := got("k1"); g != want {
			t.Errorf("answer %d = %d, want %d", i, g, want)
		}
	}
	if g := got("k2"); g != 401 {
		t.Errorf("answer for k2 = %d, want 401", g)
	}
}
