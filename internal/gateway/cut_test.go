package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"switchboard/internal/record"
	"switchboard/internal/upstreamtest"
	"switchboard/internal/wire"
)

// stream is a whole answer of a surface with what must be read from it.
type stream struct {
	surface wire.Surface
	path    string
	body    string
	text    string
	want    string // what the client sees of it; text when empty
	end     string // the text from which on the answer is complete
	input   int64
}

func wholeStreams() []stream {
	return []stream{
		{
			surface: wire.Chat, path: "/v1/chat/completions", body: streamBody, input: 11,
			text: ": hi\n\ndata: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"北京\"}}],\"usage\":null}\n\n" +
				"data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n" +
				"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":2,\"total_tokens\":13}}\n\ndata: [DONE]\n\n",
			end: "\"finish_reason\":\"stop\"}]}",
		},
		{
			surface: wire.Chat, path: "/v1/chat/completions", input: 11,
			body: `{"model":"m-oai","stream":true,"messages":[]}`,
			text: "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n" +
				"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":2,\"total_tokens\":13}}\n\ndata: [DONE]\n\n",
			want: "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
			end:  "\"finish_reason\":\"stop\"}]}",
		},
		{
			surface: wire.Messages, path: "/v1/messages", body: `{"model":"m-ant","stream":true,"messages":[]}`, input: 25,
			text: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n" +
				"event: ping\ndata: {\"type\":\"ping\"}\n\n" +
				"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"é\"}}\n\n" +
				"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":15}}\n\n" +
				"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
			end: "{\"type\":\"message_stop\"}",
		},
		{
			surface: wire.Responses, path: "/v1/responses", body: `{"model":"m-oai","stream":true,"input":"x"}`, input: 9,
			text: "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r1\"}}\n\n" +
				"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n" +
				"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r1\",\"status\":\"completed\",\"usage\":{\"input_tokens\":9,\"output_tokens\":3}}}\n\n",
			end: "\"output_tokens\":3}}}",
		},
	}
}

// S-SSE-01, S-SSE-02: whatever two writes a stream arrives in, and with whichever line ends,
// the client gets its bytes and the event its usage.
func TestSSSEEveryCut(t *testing.T) {
	for _, s := range wholeStreams() {
		for _, lineEnd := range []string{"\n", "\r\n"} {
			r := newRig(t, rigYAML(t))
			text, want := s.text, s.want
			if want == "" {
				want = text
			}
			text, want = strings.ReplaceAll(text, "\n", lineEnd), strings.ReplaceAll(want, "\n", lineEnd)
			for cut := 1; cut < len(text); cut++ {
				reply := upstreamtest.Always(upstreamtest.Stream(text[:cut], text[cut:]))
				r.network.Set("A", reply)
				r.network.Set("N", reply)
				a := r.post(s.path, s.body)
				e := r.last(t)
				if a.text() != want || e.InputTokens == nil || *e.InputTokens != s.input || e.UsageQuality != record.UsageExact || e.Outcome != record.OutcomeOK {
					t.Fatalf("%s, line end %q, cut at %d: got %q, input %v (%s), outcome %s", s.surface, lineEnd, cut, a.text(), e.InputTokens, e.UsageQuality, e.Outcome)
				}
			}
		}
	}
}

// S-SSE-07: wherever a stream breaks off, nothing is made up. Before any output another
// provider serves; after it the client sees what came, and one error unless the answer was
// complete; there is no second call.
func TestSSSE07EveryEnd(t *testing.T) {
	for _, s := range wholeStreams() {
		for _, cut := range []bool{false, true} {
			for n := 0; n < len(s.text); n++ {
				name := fmt.Sprintf("%s after %d bytes, connection broken %v", s.surface, n, cut)
				r := newRig(t, rigYAML(t))
				reply := upstreamtest.Stream(s.text[:n]).Then(upstreamtest.Step{Cut: cut})
				r.network.Set("A", upstreamtest.Always(reply))
				r.network.Set("N", upstreamtest.Always(reply))
				whole := upstreamtest.Always(upstreamtest.Stream(s.text))
				r.network.Set("B", whole)
				r.network.Set("P", whole)
				a, calls := r.post(s.path, s.body), r.network.Calls()
				checkEnd(t, name, s, n, a, len(calls), r.last(t))
			}
		}
	}
}

func checkEnd(t *testing.T, name string, s stream, n int, a *answer, calls int, e record.Event) {
	t.Helper()
	want := s.want
	if want == "" {
		want = s.text
	}
	if calls == 2 {
		if a.text() != want || e.DecisionReason != "fallback" || e.Outcome != record.OutcomeOK {
			t.Fatalf("%s: failed over to %q, outcome %s", name, a.text(), e.Outcome)
		}
		return
	}
	if marker := strings.Index(s.text, "event: message_stop"); marker >= 0 && n > marker && n < marker+len("event: message_stop\ndata: ")+1 {
		return // the name alone may count as the end: nothing of the answer is missing
	}
	complete := n >= strings.Index(s.text, s.end)+len(s.end)
	text, failed := a.text(), strings.Contains(a.text(), "upstream_cut") || strings.Contains(a.text(), `"type":"api_error"`)
	switch {
	case complete && (failed || e.Outcome != record.OutcomeOK):
		t.Fatalf("%s: complete, but client got %q, outcome %s", name, text, e.Outcome)
	case !complete && (!failed || e.Outcome != record.OutcomeUpstreamError):
		t.Fatalf("%s: broken off, but client got %q, outcome %s", name, text, e.Outcome)
	}
	if n < len(s.text)-2 && strings.HasSuffix(s.text, "[DONE]\n\n") && strings.Contains(text, "[DONE]") {
		t.Fatalf("%s: client got an end marker that never came: %q", name, text)
	}
	if s.want == "" && !strings.HasPrefix(text, s.text[:n]) {
		t.Fatalf("%s: client got %q", name, text)
	}
}

// The same for an answer that is not streamed: a body that is shorter than announced is no
// answer, and another provider can still serve.
func TestUnaryCutFailsOver(t *testing.T) {
	for _, announced := range []bool{false, true} {
		for n := 0; n < len(chatAnswer); n += 7 {
			r := newRig(t, rigYAML(t))
			reply := upstreamtest.JSON(200, chatAnswer[:n]).Then(upstreamtest.Step{Cut: true})
			if announced {
				reply = reply.With("Content-Length", fmt.Sprint(len(chatAnswer)))
			}
			r.network.Set("A", upstreamtest.Always(reply))
			r.network.Set("B", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
			if a := r.post("/v1/chat/completions", chatBody); a.status != 200 || a.text() != chatAnswer || r.network.Order(0) != "A,B" {
				t.Fatalf("cut after %d bytes: %d %q from %s", n, a.status, a.text(), r.network.Order(0))
			}
		}
	}
}

// Each chunk leaves as it comes and is flushed: no event waits for the next one.
func TestSSSEChunksAreNotHeldBack(t *testing.T) {
	r := newRig(t, rigYAML(t))
	chunks := []string{chunk1, chunk2, chunk1, chunk2}
	r.network.Set("A", upstreamtest.Always(upstreamtest.Stream(append(chunks, finish)...)))
	a := r.post("/v1/chat/completions", streamBody)
	if len(a.chunks) != 5 || a.flushes != 5 {
		t.Errorf("%d writes, %d flushes, want 5 of each: %q", len(a.chunks), a.flushes, a.chunks)
	}
}
