package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// endless is a stream of the same chunk, n times, and then its end.
type endless struct {
	chunk []byte
	n     int
	end   string
}

func (e *endless) Read(p []byte) (int, error) {
	if e.n > 0 {
		e.n--
		return copy(p, e.chunk), nil
	}
	if e.end == "" {
		return 0, io.EOF
	}
	n := copy(p, e.end)
	e.end = e.end[n:]
	return n, nil
}

// RoundTrip makes the stream the body of every answer.
func (e *endless) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, ContentLength: -1, Body: io.NopCloser(e),
		Header: http.Header{"Content-Type": {"text/event-stream"}},
	}, nil
}

// discard is a client that reads and forgets.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) WriteHeader(int)             {}
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) Flush()                      {}

// contents are content chunks of each surface as providers send them.
var contents = map[wire.Surface]string{
	wire.Chat: `data: {"id":"chatcmpl-A1b2C3d4E5f6","object":"chat.completion.chunk","created":1790000000,"model":"gpt-5",` +
		`"service_tier":"default","system_fingerprint":"fp_0123456789","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n",
	wire.Messages: "event: content_block_delta\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word"}}` + "\n\n",
	wire.Responses: "event: response.output_text.delta\n" +
		`data: {"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" word","logprobs":[]}` + "\n\n",
}

// relayOnce opens a stream of n chunks and copies it.
func relayOnce(t testing.TB, surface wire.Surface, hide bool, chunk string, n int) {
	source := &endless{chunk: []byte(chunk), n: n, end: "data: [DONE]\n\n"}
	client := NewClient(source, Timeouts{FirstByte: time.Minute, FirstByteUnary: time.Minute, Idle: time.Minute})
	body := `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`
	if hide {
		body = `{"model":"m","stream":true}`
	}
	request := decoded(t, wire.Operation{Surface: surface, Path: "/x", Billed: true}, body)
	target := Target{
		Provider: &provider.Provider{Type: "openai", BaseURL: "http://a.test/v1", StreamOptions: true},
		Key:      provider.Key{Text: theKey}, Model: provider.Model{Upstream: "m"},
	}
	answer, failure := client.Open(context.Background(), request, target)
	if failure != nil {
		t.Fatal(failure.Cause)
	}
	answer.Copy(discard{http.Header{}})
	answer.Close()
}

// The relay of a chunk allocates nothing: a stream of 10 000 chunks costs what one of 100 does.
func TestRelayAllocatesNothingPerChunk(t *testing.T) {
	for surface, chunk := range contents {
		for _, hide := range []bool{false, true} {
			cost := func(n int) float64 {
				return testing.AllocsPerRun(10, func() { relayOnce(t, surface, hide, chunk, n) })
			}
			few, many := cost(100), cost(10_000)
			if perChunk := (many - few) / 9900; perChunk > 0.001 {
				t.Errorf("%s, hide %v: %.4f allocations per chunk (%v for 100 chunks, %v for 10000), want 0", surface, hide, perChunk, few, many)
			}
		}
	}
}

// Neither does a chunk that arrives in two reads.
func TestSplitChunkAllocatesNothing(t *testing.T) {
	for surface, text := range contents {
		observer := provider.NewStream(surface)
		var f filter
		f.start(&observer, true, []string{theKey})
		a, b := []byte(text[:30]), []byte(text[30:])
		cost := testing.AllocsPerRun(1000, func() {
			f.feed(a)
			f.feed(b)
		})
		if cost > 0 {
			t.Errorf("%s: %v allocations per split chunk, want 0", surface, cost)
		}
	}
}

// BenchmarkFilter is the cost of looking at a chunk. Compare commits with benchstat.
func BenchmarkFilter(b *testing.B) {
	for surface, text := range contents {
		b.Run(string(surface), func(b *testing.B) {
			observer := provider.NewStream(surface)
			var f filter
			f.start(&observer, true, []string{theKey})
			chunk := []byte(text)
			b.SetBytes(int64(len(chunk)))
			b.ReportAllocs()
			for b.Loop() {
				f.feed(chunk)
			}
		})
	}
}

// BenchmarkRelay is a whole stream of 1000 chunks through Open and Copy.
func BenchmarkRelay(b *testing.B) {
	for surface, text := range contents {
		b.Run(string(surface), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				relayOnce(b, surface, false, text, 1000)
			}
		})
	}
}

// BenchmarkLargeLine is one line of 5 MiB in reads of 32 KiB.
func BenchmarkLargeLine(b *testing.B) {
	part := bytes.Repeat([]byte("a"), bufferSize)
	b.SetBytes(160 * bufferSize)
	b.ReportAllocs()
	for b.Loop() {
		observer := provider.NewStream(wire.Chat)
		var f filter
		f.start(&observer, false, nil)
		f.feed([]byte(`data: {"choices":[{"index":0,"delta":{"content":"`))
		for range 160 {
			f.feed(part)
		}
		f.feed([]byte("\"}}]}\n\n"))
	}
}
