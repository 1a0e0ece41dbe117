package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// A carrier's event may hold what no request line or header can carry, where a socket would
// have refused it. That is the request's own fault: no provider may be blamed for it, or
// three such requests would take a provider from everybody.
func TestWhatCannotBeSentBlamesNobody(t *testing.T) {
	var got http.Header
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"x"}`) //nolint:errcheck // the test sees what is missing
	}))
	defer upstream.Close()
	client := NewClient(NewTransport(time.Second), Timeouts{FirstByte: time.Minute, FirstByteUnary: time.Minute, Idle: time.Minute})
	open := func(query string, header http.Header) (*Answer, *Failure) {
		op := wire.Operation{Surface: wire.Chat, Path: "/x", Billed: true}
		request, err := wire.Decode(op, query, header, []byte(`{"model":"m"}`))
		if err != nil {
			t.Fatal(err)
		}
		return client.Open(t.Context(), request, Target{
			Provider: &provider.Provider{Type: "openai", BaseURL: upstream.URL}, Key: provider.Key{ID: "1", Text: "k"},
			Model: provider.Model{ID: "m", Upstream: "m"},
		})
	}
	for _, header := range []http.Header{
		{"Openai-Beta": {"a\r\nEvil: 1"}},
		{"Openai-Beta": {"a\x00b"}},
		{"User-Agent": {"a\x7f"}},
		{"Content-Type": {"a\n"}},
		{"Idempotency-Key": {"fine", "a\x01"}},
		{"X-Stainless-A b": {"c"}},
		{"X-Stainless-": {"c\x1f"}},
		{"X-Stainless-A:": {"c"}},
	} {
		header["Accept"] = []string{"text/\tplain \xff"} // may stay
		answer, failure := open("", header)
		if failure != nil {
			t.Errorf("%q: Open() = %v, %v, want an answer", header, failure.Class, failure.Cause)
			continue
		}
		answer.Close()
		if got.Get("Accept") == "" || got.Get("Evil") != "" || got.Get("Openai-Beta") != "" || got.Get("Idempotency-Key") != "" {
			t.Errorf("%q: upstream saw %v, want all but what cannot be sent", header, got)
		}
	}
	for _, query := range []string{"a=\x01", "a\r\nEvil: 1", "\x7f"} {
		answer, failure := open(query, http.Header{})
		if failure == nil {
			answer.Close()
			t.Errorf("query %q: an answer, want a refusal", query)
			continue
		}
		if failure.Class != health.Request || failure.Status != http.StatusBadRequest {
			t.Errorf("query %q: Open() = %v, status %d, want %v, 400", query, failure.Class, failure.Status, health.Request)
		}
	}
}
