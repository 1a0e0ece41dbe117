package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/record"
	"switchboard/internal/upstreamtest"
)

// An answer too large to keep whole is copied as it comes; its usage stands in its tail. When
// it breaks off, only a broken connection can tell the client.
func TestLargeUnaryAnswer(t *testing.T) {
	large := `{"id":"c1","choices":[{"index":0,"message":{"content":"` + strings.Repeat("a", 3<<20) + `"}}],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}`
	for _, cut := range []bool{false, true} {
		r := newRig(t, rigYAML(t))
		reply := upstreamtest.JSON(200, large)
		if cut {
			reply = upstreamtest.JSON(200, large[:2<<20]).Then(upstreamtest.Step{Cut: true}).With("Content-Length", fmt.Sprint(len(large)))
		}
		r.network.Set("A", upstreamtest.Always(reply))
		r.network.Set("B", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
		a, e := r.post("/v1/chat/completions", chatBody), r.last(t)
		switch {
		case cut && (!a.aborted || e.Outcome != record.OutcomeUpstreamError || r.network.Order(0) != "A"):
			t.Errorf("cut: aborted %v, outcome %s, calls %s, want a broken connection after A", a.aborted, e.Outcome, r.network.Order(0))
		case !cut && (a.aborted || a.text() != large || e.InputTokens == nil || *e.InputTokens != 10 || e.Outcome != record.OutcomeOK):
			t.Errorf("whole: aborted %v, %d bytes, input %v, outcome %s", a.aborted, a.body.Len(), e.InputTokens, e.Outcome)
		}
	}
}

// S-SSE-09: events are not held back by a decompressor until the end.
func TestSSSE09CompressedChunksArriveInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigYAML(t))
		r.network.Set("A", upstreamtest.Always(upstreamtest.Stream(chunk1).With("Content-Encoding", "gzip").
			Then(upstreamtest.Step{Wait: 30 * time.Second, Bytes: []byte(chunk2)}, upstreamtest.Step{Wait: 30 * time.Second, Bytes: []byte(finish)})))
		began := time.Now()
		at := map[time.Duration]string{}
		a := &answer{header: http.Header{}, write: func(_ int, b []byte) error {
			at[time.Since(began)] += string(b)
			return nil
		}}
		r.serve(a, post("/v1/chat/completions", streamBody, "Accept-Encoding: gzip"))
		if at[0] != chunk1 || at[30*time.Second] != chunk2 || at[time.Minute] != finish || a.sent.Get("Content-Encoding") != "" {
			t.Errorf("chunks %q, Content-Encoding %q", at, a.sent.Get("Content-Encoding"))
		}
		if e := r.last(t); *e.InputTokens != 7 || e.Outcome != record.OutcomeOK {
			t.Errorf("input %d, outcome %s, want 7, ok", *e.InputTokens, e.Outcome)
		}
	})
}

// S-SSE-09: an encoding that we cannot undo goes out with its label and its bytes.
func TestSSSE09UnknownEncodingIsPassedOn(t *testing.T) {
	for _, reply := range []upstreamtest.Reply{
		upstreamtest.Stream("\x0b\x02\x80", "binary\x03").With("Content-Encoding", "br"),
		upstreamtest.JSON(200, "\x0b\x02\x80binary\x03").With("Content-Encoding", "br"),
	} {
		r := newRig(t, rigYAML(t))
		r.network.Set("A", upstreamtest.Always(reply))
		a := r.post("/v1/chat/completions", streamBody)
		if e := r.last(t); a.text() != "\x0b\x02\x80binary\x03" || a.sent.Get("Content-Encoding") != "br" || e.Outcome != record.OutcomeOK || e.UsageQuality != record.UsageUnknown {
			t.Errorf("got %q labelled %q, outcome %s, usage %s", a.text(), a.sent.Get("Content-Encoding"), e.Outcome, e.UsageQuality)
		}
	}
}

// S-SSE-06 for what else clients write into stream_options: our member is added to theirs,
// and all other bytes stay.
func TestSSSE06StreamOptionsOfClients(t *testing.T) {
	tests := []struct{ options, want string }{
		{``, `"stream_options":{"include_usage":true}`},
		{`,"stream_options":null`, `"stream_options":{"include_usage":true}`},
		{`,"stream_options":{}`, `"stream_options":{"include_usage":true}`},
		{`,"stream_options":{"include_usage":null}`, `"stream_options":{"include_usage":true}`},
		{`,"stream_options":{"include_obfuscation":false}`, `"include_obfuscation":false`},
		{`,"stream_options": { "include_usage" : false , "x":1}`, `"stream_options": { "include_usage" : true , "x":1}`},
	}
	for _, tt := range tests {
		r := newRig(t, rigYAML(t))
		r.network.Set("A", upstreamtest.Always(upstreamtest.Stream(chunk1, finish)))
		a := r.post("/v1/chat/completions", `{"model":"m-oai","zz":[1.0],"stream":true`+tt.options+`,"messages":[]}`)
		sent := string(r.network.Calls()[0].Body)
		compact := strings.NewReplacer(" ", "", "\n", "").Replace(sent)
		if !strings.Contains(sent, tt.want) || strings.Count(compact, `"include_usage":true`) != 1 || !strings.Contains(sent, `"zz":[1.0],"stream":true`) {
			t.Errorf("with %q upstream got %s", tt.options, sent)
		}
		if strings.Contains(a.text(), "prompt_tokens") || !strings.HasSuffix(a.text(), "data: [DONE]\n\n") || *r.last(t).InputTokens != 7 {
			t.Errorf("with %q client got %q", tt.options, a.text())
		}
	}
}

// Usage on a chunk that has choices is the provider's own way, and stays.
func TestSSSE06UsageBesideChoicesStays(t *testing.T) {
	r := newRig(t, rigYAML(t))
	text := "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1,\"total_tokens\":8}}\n\ndata: [DONE]\n\n"
	r.network.Set("A", upstreamtest.Always(upstreamtest.Stream(text)))
	a := r.post("/v1/chat/completions", `{"model":"m-oai","stream":true,"messages":[]}`)
	if e := r.last(t); a.text() != text || e.InputTokens == nil || *e.InputTokens != 7 {
		t.Errorf("client got %q, input %v", a.text(), e.InputTokens)
	}
}

// S-SEC-03: no way of quoting the key back gets it to the client, the log or the event: not
// in a header, not in an error answer of any status, not in an event cut anywhere.
func TestSSEC03KeysAreNeverShown(t *testing.T) {
	const key = "sk-a-AAAABBBBCCCCDDDD"
	quoted := `{"error":{"message":"no: ` + key + ` or AAAABBBB","type":"x","code":"` + key + `"}}`
	var replies []upstreamtest.Reply
	for _, status := range []int{400, 401, 402, 403, 404, 409, 413, 422, 429, 500, 502, 503, 529} {
		for _, kind := range []string{"application/json", "text/html", "text/plain; " + key} {
			replies = append(replies, upstreamtest.Text(status, kind, quoted).With("X-Goog-Api-Key", key).With("X-Request-Id", key).With("Set-Cookie", key))
		}
	}
	event := "data: " + quoted + "\n\n"
	for cut := 1; cut < len(event); cut++ {
		replies = append(replies, upstreamtest.Stream(chunk1, event[:cut], event[cut:]), upstreamtest.Stream(event[:cut], event[cut:]),
			upstreamtest.Stream(chunk1, event[:cut]).Then(upstreamtest.Step{Cut: true}))
	}
	for i, reply := range replies {
		r := newRig(t, rigYAML(t))
		r.network.Set("A", upstreamtest.Always(reply))
		r.network.Set("B", upstreamtest.Always(reply))
		a := r.post("/v1/chat/completions", streamBody)
		shown := a.text() + fmt.Sprint(a.sent) + r.log.String() + fmt.Sprintf("%+v", r.last(t))
		if run := sharedRun(shown, key); run != "" {
			t.Fatalf("reply %d (status %d): %q of the key is shown in %s", i, reply.Status, run, shown)
		}
	}
}

// S-SEC-03 for errors of the transport, which quote what they could not read.
func TestSSEC03TransportErrorsAreRedacted(t *testing.T) {
	const key = "sk-a-AAAABBBBCCCCDDDD"
	r := newRig(t, rigYAML(t))
	reply := upstreamtest.Always(upstreamtest.Reply{Fail: fmt.Errorf("malformed HTTP response %q", "HTTP/9 "+key)})
	r.network.Set("A", reply)
	r.network.Set("B", upstreamtest.Always(upstreamtest.JSON(400, `{"error":{"message":"no"}}`)))
	a := r.post("/v1/chat/completions", chatBody)
	if run := sharedRun(a.text()+r.log.String(), key); run != "" || !strings.Contains(r.log.String(), "malformed HTTP response") {
		t.Errorf("%q of the key is shown, or the cause is not, in %s", run, r.log.String())
	}
}
