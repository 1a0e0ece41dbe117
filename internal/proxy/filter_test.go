package proxy

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// theKey is ours; error events of the tests quote it.
const theKey = "sk-test-AAAABBBBCCCCDDDD1234"

// filtered is all that a filter tells of a stream.
type filtered struct {
	Out     string
	Marks   provider.Mark
	Usage   provider.Usage
	ID      string
	Output  bool
	Ended   bool
	Partial bool
}

// run feeds the chunks one after the other. Each is overwritten once it has been used, as
// the relay's buffer is.
func run(surface wire.Surface, hide bool, chunks ...string) filtered {
	observer := provider.NewStream(surface)
	var f filter
	f.start(&observer, hide, []string{theKey})
	var out bytes.Buffer
	var marks provider.Mark
	for _, c := range chunks {
		chunk := []byte(c)
		b, m := f.feed(chunk)
		out.Write(b)
		marks |= m
		for i := range chunk {
			chunk[i] = '!'
		}
	}
	b, m := f.close()
	out.Write(b)
	return filtered{out.String(), marks | m, observer.Usage(), observer.ResponseID(), f.output, f.ended, f.partial}
}

// streams are what each surface may send, an event each; some of each make a stream.
var streams = map[wire.Surface][]string{
	wire.Chat: {
		": OPENROUTER PROCESSING\n\n",
		"data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"北京 🙂\"}}],\"usage\":null}\n\n",
		"data:{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\\\":1}\"}}]}}]}\n\n",
		"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n",
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":31,\"completion_tokens\":4,\"total_tokens\":35}}\n\n",
		"data:{\"choices\":[],\ndata: \"usage\":{\"prompt_tokens\":5,\ndata:  \"completion_tokens\":1,\"total_tokens\":6}}\n\n",
		"data: {\"id\":\"no choices\"}\n\n",
		"data: [DONE]\n\n",
		"\n",
		"id: 7\nretry: 10\ndata: plain text\n\n",
		"data: {\"error\":{\"message\":\"key " + theKey + " is bad\",\"type\":\"server_error\"}}\n\n",
		"data: {\"id\":\"chatcmpl-0123456789\",\"object\":\"chat.completion.chunk\",\"error\":{\"code\":502,\"message\":\"" + theKey + "\"},\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\n",
		"event: error\ndata: " + theKey + "\n\n",
	},
	wire.Messages: {
		"event: ping\ndata: {\"type\":\"ping\"}\n\n",
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n",
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"héllo\"}}\n\n",
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":15}}\n\n",
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		": keep-alive\n\n",
		"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"" + theKey + "\"}}\n\n",
		"data: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"x " + theKey + "\"}}\n\n",
	},
	wire.Responses: {
		"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"status\":\"in_progress\"}}\n\n",
		"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"北\"}\n\n",
		"data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n",
		"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"usage\":{\"input_tokens\":9,\"output_tokens\":3}}}\n\n",
		"event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"resp_1\",\"error\":{\"code\":\"server_error\",\"message\":\"" + theKey + "\"}}}\n\n",
		"event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"" + theKey + "\"}\n\n",
		": c\n\n",
	},
}

// drawStream draws events of a surface, with one kind of line end, perhaps cut at its end.
func drawStream(t *rapid.T, surface wire.Surface) string {
	text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(streams[surface]), 1, 8).Draw(t, "events"), "")
	text = strings.ReplaceAll(text, "\n", rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "line end"))
	if rapid.Bool().Draw(t, "truncated") {
		text = text[:rapid.IntRange(0, len(text)).Draw(t, "length")]
	}
	return text
}

// drawCuts cuts a text into chunks, some of them a byte long.
func drawCuts(t *rapid.T, text string) []string {
	var chunks []string
	for len(text) > 0 {
		n := rapid.OneOf(rapid.IntRange(1, 3), rapid.IntRange(1, 300)).Draw(t, "chunk")
		n = min(n, len(text))
		chunks, text = append(chunks, text[:n]), text[n:]
	}
	return chunks
}

// Any way of cutting a stream's bytes gives the same bytes, usage and ending (S-SSE-01,
// S-SSE-02), and no cut lets a key through (S-SEC-03).
func TestFilterCutsMakeNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		surface := rapid.SampledFrom([]wire.Surface{wire.Chat, wire.Messages, wire.Responses}).Draw(t, "surface")
		hide := surface == wire.Chat && rapid.Bool().Draw(t, "hide")
		text := drawStream(t, surface)
		whole := run(surface, hide, text)
		if diff := cmp.Diff(whole, run(surface, hide, drawCuts(t, text)...)); diff != "" {
			t.Fatalf("cut differs from whole (-whole +cut):\n%s", diff)
		}
		checkFiltered(t, text, hide, whole)
	})
}

// The same for each single cut and for single bytes: what random cuts may miss.
func TestFilterEveryCut(t *testing.T) {
	for surface, events := range streams {
		for _, lineEnd := range []string{"\n", "\r\n", "\r"} {
			for _, hide := range []bool{false, true} {
				for i, event := range events {
					text := strings.ReplaceAll(events[1]+event+events[(i+1)%len(events)], "\n", lineEnd)
					want := run(surface, hide, text)
					name := fmt.Sprintf("%s, event %d, line end %q, hide %v", surface, i, lineEnd, hide)
					for cut := 1; cut < len(text); cut++ {
						if diff := cmp.Diff(want, run(surface, hide, text[:cut], text[cut:])); diff != "" {
							t.Fatalf("%s, cut at %d (-whole +cut):\n%s", name, cut, diff)
						}
					}
					if diff := cmp.Diff(want, run(surface, hide, strings.Split(text, "")...)); diff != "" {
						t.Fatalf("%s, character by character (-whole +cut):\n%s", name, diff)
					}
				}
			}
		}
	}
}

type fataler interface{ Fatalf(string, ...any) }

// checkFiltered checks what holds of any one filtered stream.
func checkFiltered(t fataler, text string, hide bool, got filtered) {
	for i := 0; i+8 <= len(theKey); i++ {
		if strings.Contains(got.Out, theKey[i:i+8]) && strings.Contains(text, "rror") {
			t.Fatalf("the client sees %q of the key in %q", theKey[i:i+8], got.Out)
		}
	}
	switch {
	case got.Marks&provider.Error == 0 && !hide && got.Out != withoutKey(text):
		t.Fatalf("out = %q, want the stream %q", got.Out, text)
	case hide && got.Marks&provider.UsageOnly != 0 && strings.Contains(got.Out, `"prompt_tokens"`):
		t.Fatalf("the client sees usage that it did not ask for: %q", got.Out)
	}
}

// withoutKey is text as it may reach a client when the end of the stream has cut an
// error in it: without the key.
func withoutKey(text string) string { return string(provider.Redact([]byte(text), []string{theKey})) }

// A large event is passed on before it has ended, and a small one that cannot be content
// is not.
func TestFilterHoldsOnlyWhatMayHaveToGo(t *testing.T) {
	tests := []struct{ name, chunk, want string }{
		{"S-SSE-02 first half of a character", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xe5", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xe5"},
		{"S-SSE-03 megabytes on one line", `data: {"b64":"` + strings.Repeat("a", maxCarry), `data: {"b64":"` + strings.Repeat("a", maxCarry)},
		{"usage", `data: {"choices":[],"usage":`, ""},
		{"an error", "event: error\ndata: {", ""},
		{"whole and half", "data: 1\n\ndata: {\"err", "data: 1\n\n"},
		{"responses delta", "event: response.output_text.delta\ndata: {", "event: response.output_text.delta\ndata: {"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			observer := provider.NewStream(wire.Chat)
			var f filter
			f.start(&observer, true, nil)
			out, _ := f.feed([]byte(tt.chunk))
			if string(out) != tt.want {
				t.Errorf("feed(%.80q) = %.80q, want %.80q", tt.chunk, out, tt.want)
			}
		})
	}
}

// Nothing after an error event reaches the client: it is the end (decision 6).
func TestFilterEndsAfterError(t *testing.T) {
	text := "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n" +
		"data: {\"error\":{\"message\":\"busy\"}}\n\ndata: [DONE]\n\n"
	got := run(wire.Chat, false, text)
	if want := strings.TrimSuffix(text, "data: [DONE]\n\n"); got.Out != want || !got.Ended {
		t.Errorf("out = %q, ended %v, want %q", got.Out, got.Ended, want)
	}
}

func FuzzFilter(f *testing.F) {
	for surface, events := range streams {
		for i := range events {
			f.Add(string(surface), strings.Join(events[:i+1], ""), []byte{byte(i), 1, 40}, i%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, surface, text string, cuts []byte, hide bool) {
		var chunks []string
		rest := text
		for _, n := range cuts {
			n := min(int(n), len(rest))
			chunks, rest = append(chunks, rest[:n]), rest[n:]
		}
		chunks = append(chunks, rest)
		whole, cut := run(wire.Surface(surface), hide, text), run(wire.Surface(surface), hide, chunks...)
		if whole.Marks&provider.Error == 0 && !hide && whole.Out != withoutKey(text) && whole.Out != text {
			t.Errorf("out = %q, want the stream %q", whole.Out, text)
		}
		// An event that lies about being content may show more when it is cut; never less.
		if whole.Marks&provider.Error == 0 && withoutKey(text) == text && len(cut.Out) < len(whole.Out) {
			t.Errorf("cut gives %q, whole gives %q", cut.Out, whole.Out)
		}
		whole.Out, cut.Out = "", ""
		if diff := cmp.Diff(whole, cut); diff != "" {
			t.Errorf("cut differs from whole (-whole +cut):\n%s", diff)
		}
	})
}
