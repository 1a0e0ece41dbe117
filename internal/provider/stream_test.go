package provider

import (
	"fmt"
	"strings"
	"testing"

	"switchboard/internal/health"
	"switchboard/internal/sse"
	"switchboard/internal/wire"

	"github.com/google/go-cmp/cmp"
)

func TestReadMarks(t *testing.T) {
	type event struct {
		name, data string
		want       Mark
	}
	d := func(data string, want Mark) event { return event{"", data, want} }
	choice := func(inner string, want Mark) event { return d(`{"choices":[{"index":0,`+inner+`}]}`, want) }
	chat, responses, messages := wire.Chat, wire.Responses, wire.Messages
	tests := []struct {
		surface wire.Surface
		event
	}{
		{chat, choice(`"delta":{"role":"assistant","content":""},"finish_reason":null`, 0)},
		{chat, choice(`"delta":{"role":"assistant","content":null,"refusal":null,"tool_calls":[]}`, 0)},
		{chat, choice(`"delta":{}`, 0)},
		{chat, choice(`"delta":{"content":"a"}`, Output)},
		{chat, choice(`"delta":{"content":"\""}`, Output)},
		{chat, choice(`"delta" : { "content" : "北京" }`, Output)},
		{chat, choice(`"delta":{"refusal":"no"}`, Output)},
		{chat, choice(`"delta":{"reasoning":"hm"}`, Output)},
		{chat, choice(`"delta":{"content":"","reasoning_content":"hm"}`, Output)},
		{chat, choice(`"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]}`, Output)},
		{chat, choice(`"delta":{"function_call":{"name":"f"}}`, Output)},
		{chat, choice(`"delta":{"audio":{"data":"AA"}}`, Output)},
		{chat, choice(`"text":"legacy"`, Output)},
		{chat, choice(`"text":""`, 0)},
		{chat, choice(`"delta":{},"finish_reason":"stop"`, Output|End)},
		{chat, choice(`"finish_reason":"tool_calls","delta":{}`, Output|End)},
		{chat, choice(`"delta":{},"finish_reason":""`, 0)},
		{chat, choice(`"delta":{},"finish_reason":"error"`, Output)},
		{chat, choice(`"delta":{"content":"a"}}],"usage":null,"x":[{"y":1`, Output)},
		{chat, d(`{"choices":[{"index":0,"delta":{"content":"\"usage\":{\"prompt_tokens\":1} \"error\":{}"}}]}`, Output)},
		{chat, d(`{"choices":[{"index":0,"delta":{}},{"index":1,"delta":{"content":"b"}}]}`, Output)},
		{chat, d(`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, UsageOnly)},
		{chat, d(`{"usage":{"prompt_tokens":1,"completion_tokens":1},"choices" : [ ] }`, UsageOnly)},
		{chat, d(`{"usage":{"prompt_tokens":1,"completion_tokens":1}}`, UsageOnly)},
		{chat, d(`{"choices":[],"usage":null}`, 0)},
		{chat, d(`{"choices":[],"prompt_filter_results":[{"prompt_index":0}]}`, 0)},
		{chat, d(`{"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, Output)},
		{chat, d(`{}`, 0)},
		{chat, d(`{"choices":null}`, 0)},
		{chat, d(`{"choices":7,"usage":"x"}`, 0)},
		{chat, d(` [DONE] `, End|Done)},
		{chat, d(`{"error":{"message":"m"}}`, Error)},
		{chat, d(`{"error":"text"}`, Error)},
		{chat, d(`{"error":null,"choices":[{"index":0,"delta":{"content":"x"}}]}`, Output)},
		{chat, d(`{"id":"x","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":"m"}}`, Error)},
		{chat, d(`{"object":"error","message":"m","code":400}`, Error)},
		{chat, event{"error", `{"message":"m"}`, Error}},
		{chat, event{"error", `plain text`, Error}},
		{chat, d(`hello`, 0)},
		{chat, d(``, 0)},
		{chat, d(`{"choices":[{"index":0,"delta":{"content":"cut`, 0)},

		{responses, d(`{"type":"response.created","response":{"id":"r"}}`, 0)},
		{responses, d(`{"type":"response.in_progress","response":{"id":"r"}}`, 0)},
		{responses, d(`{"type":"response.queued","response":{"id":"r"}}`, 0)},
		{responses, d(`{"type":"response.output_item.added","item":{"type":"message"}}`, 0)},
		{responses, d(`{"type":"response.content_part.added","part":{"text":""}}`, 0)},
		{responses, d(`{"type":"response.output_text.delta","delta":"a"}`, Output)},
		{responses, d(`{"delta":"a","sequence_number":3,"type":"response.output_text.delta"}`, Output)},
		{responses, event{"response.output_text.delta", `{"delta":"a"}`, Output}},
		{responses, d(`{"type":"response.function_call_arguments.delta","delta":"{"}`, Output)},
		{responses, d(`{"type":"response.reasoning_summary_text.delta","delta":"x"}`, Output)},
		{responses, d(`{"type":"response.output_text.done","text":"a"}`, Output)},
		{responses, d(`{"type":"response.output_item.done","item":{}}`, Output)},
		{responses, d(`{"type":"response.web_search_call.searching"}`, 0)},
		{responses, d(`{"type":"response.completed","response":{"id":"r","error":null}}`, Output|End|Done)},
		{responses, d(`{"type":"response.incomplete","response":{"id":"r"}}`, Output|End|Done)},
		{responses, d(`{"type":"response.failed","response":{"id":"r","error":{"code":"server_error","message":"m"}}}`, Error|End|Done)},
		{responses, d(`{"type":"error","code":"rate_limit_exceeded","message":"m"}`, Error)},
		{responses, d(`{"error":{"message":"m"}}`, Error)},
		{responses, d(`[DONE]`, End|Done)},

		{messages, event{"message_start", `{"type":"message_start","message":{"usage":{"input_tokens":1}}}`, 0}},
		{messages, event{"ping", `{"type":"ping"}`, 0}},
		{messages, d(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, 0)},
		{messages, d(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}`, Output)},
		{messages, d(`{"type":"content_block_start","content_block":{"type":"tool_use","id":"t","name":"n","input":{}}}`, 0)},
		{messages, d(`{"type":"content_block_start","content_block":{"type":"thinking","thinking":"","signature":""}}`, 0)},
		{messages, d(`{"type":"content_block_start","content_block":{"type":"server_tool_use","id":"t","name":"web_search","input":{}}}`, 0)},
		{messages, d(`{"type":"content_block_start","content_block":{"type":"redacted_thinking","data":"AA"}}`, Output)},
		{messages, d(`{"type":"content_block_start","content_block":{"type":"web_search_tool_result","content":[{}]}}`, Output)},
		{messages, d(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`, Output)},
		{messages, event{"content_block_delta", `{"index":0,"delta":{"text":"a"}}`, Output}},
		{messages, d(`{"type":"content_block_stop","index":0}`, 0)},
		{messages, d(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}`, Output)},
		{messages, d(`{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":5}}`, 0)},
		{messages, d(`{"type":"message_stop"}`, End|Done)},
		{messages, event{"message_stop", ``, End | Done}},
		{messages, d(`{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`, Error)},
		{messages, event{"error", `{"type":"error","error":{"type":"overloaded_error"}}`, Error}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %s %.60s", tt.surface, tt.name, tt.data), func(t *testing.T) {
			s := NewStream(tt.surface)
			e := sse.Event{Name: []byte(tt.name), Data: []byte(tt.data)}
			if got := s.Read(e); got != tt.want {
				t.Errorf("Read(%s %s) = %05b, want %05b", tt.name, tt.data, got, tt.want)
			}
			again := NewStream(tt.surface)
			again.Read(e)
			if got := again.Read(e); got != tt.want {
				t.Errorf("second Read(%s %s) = %05b, want %05b", tt.name, tt.data, got, tt.want)
			}
		})
	}
}

func TestCommentsAreNothing(t *testing.T) {
	for _, surface := range []wire.Surface{wire.Chat, wire.Responses, wire.Messages} {
		s := NewStream(surface)
		if got := s.Read(sse.Event{Comment: true}); got != 0 {
			t.Errorf("Read(comment) on %s = %b, want 0", surface, got)
		}
	}
}

// seen is what a stream's observer knows at its end.
type seen struct {
	Marks  []Mark
	Usage  Usage
	ID     string
	Class  health.Class
	Status int
}

// observe reads a stream in chunks.
func observe(surface wire.Surface, chunks ...string) seen {
	var scanner sse.Scanner
	s := NewStream(surface)
	var got seen
	take := func(e sse.Event) { got.Marks = append(got.Marks, s.Read(e)) }
	for _, c := range chunks {
		scanner.Feed([]byte(c))
		for {
			e, ok := scanner.Next()
			if !ok {
				break
			}
			take(e)
		}
	}
	if e, ok := scanner.Close(); ok {
		take(e)
	}
	f, status := s.Failure()
	got.Usage, got.ID, got.Class, got.Status = s.Usage(), s.ResponseID(), f.Class, status
	return got
}

func (s seen) any() (m Mark) {
	for _, x := range s.Marks {
		m |= x
	}
	return m
}

func TestStreams(t *testing.T) {
	exact := func(u Usage) Usage { u.Quality = usageExact; return u }
	partial := func(u Usage) Usage { u.Quality = usagePartial; return u }
	unknown := Usage{Quality: usageUnknown}
	chunk := func(inner string) string { return "data: {\"choices\":[{\"index\":0," + inner + "}]}\n\n" }
	tests := []struct {
		name    string
		surface wire.Surface
		stream  string
		want    Usage
		id      string
		marks   Mark // over the stream
	}{
		{
			"S-SSE-01 CRLF", wire.Chat,
			"data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\r\n\r\n" +
				"data: {\"id\":\"c1\",\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":2,\"total_tokens\":13}}\r\n\r\n" +
				"data: [DONE]\r\n\r\n",
			exact(Usage{Input: 11, Output: 2}), "", Output | UsageOnly | End | Done,
		},
		{
			"S-SSE-04 several data lines", wire.Chat,
			": OPENROUTER PROCESSING\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n" +
				"data:{\"choices\":[],\ndata: \"usage\":{\"prompt_tokens\":5,\ndata:  \"completion_tokens\":1,\"total_tokens\":6}}\n\ndata: [DONE]\n\n",
			exact(Usage{Input: 5, Output: 1}), "", UsageOnly | End | Done,
		},
		{
			"S-SSE-05 usage null first", wire.Chat,
			"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\n" +
				"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n" +
				"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":31,\"completion_tokens\":4,\"total_tokens\":35,\"prompt_tokens_details\":{\"cached_tokens\":24}}}\n\n" +
				"data: [DONE]\n\n",
			exact(Usage{Input: 31, CachedInput: 24, Output: 4}), "", Output | UsageOnly | End | Done,
		},
		{"S-SSE-07 a: cut", wire.Chat, chunk(`"delta":{"content":"a"}`) + chunk(`"delta":{"content":"b"}`), unknown, "", Output},
		{"S-SSE-07 a: cut within an event", wire.Chat, chunk(`"delta":{"content":"a"}`) + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"st`, unknown, "", Output},
		{
			"S-SSE-07 b: no DONE", wire.Responses,
			"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r1\",\"usage\":null,\"service_tier\":\"auto\"}}\n\n" +
				"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\n" +
				"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r1\",\"status\":\"completed\",\"service_tier\":\"flex\",\"usage\":{\"input_tokens\":9,\"output_tokens\":3}}}\n\n",
			exact(Usage{Input: 9, Output: 3, ServiceTier: "flex"}), "r1", Output | End | Done,
		},
		{"S-SSE-07 c: finish_reason without DONE", wire.Chat, chunk(`"delta":{"content":"a"}`) + chunk(`"delta":{},"finish_reason":"stop"`), unknown, "", Output | End},
		{"S-SSE-07 cut at a brace", wire.Chat, chunk(`"delta":{"content":"a"}`) + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}`, unknown, "", Output},
		{"S-SSE-07 completed, cut at a brace", wire.Responses, `data: {"type":"response.completed","response":{"id":"r2","output":[{}`, unknown, "r2", 0},
		{"one of two choices finished", wire.Chat, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}},{\"index\":1,\"delta\":{\"content\":\"b\"}}]}\n\n" + chunk(`"delta":{},"finish_reason":"stop"`), unknown, "", Output},
		{"responses cut", wire.Responses, "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\"}}\n\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\n", unknown, "resp_1", Output},
		{"completed without line end", wire.Responses, `data: {"type":"response.completed","response":{"id":"r2","usage":{"input_tokens":1,"output_tokens":2}}}`, exact(Usage{Input: 1, Output: 2}), "r2", Output | End | Done},
		{
			"usage in every chunk, the last wins", wire.Chat,
			"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\n\n" +
				"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\n",
			exact(Usage{Input: 7, Output: 2}), "", Output | End,
		},
		{
			"usage in every chunk, cut", wire.Chat,
			"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\n\n",
			partial(Usage{Input: 7, Output: 1}), "", Output,
		},
		{
			"S-USE-05 tier of the chunks", wire.Chat,
			"data: {\"service_tier\":\"flex\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n" +
				"data: {\"service_tier\":\"flex\",\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n",
			exact(Usage{Input: 1, Output: 1, ServiceTier: "flex"}), "", Output | UsageOnly | End,
		},
		{
			"S-USE-01 anthropic", wire.Messages,
			"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"content\":[],\"usage\":{\"input_tokens\":12,\"cache_read_input_tokens\":18000,\"cache_creation_input_tokens\":2400,\"cache_creation\":{\"ephemeral_5m_input_tokens\":400,\"ephemeral_1h_input_tokens\":2000},\"output_tokens\":1,\"service_tier\":\"standard\"}}}\n\n" +
				"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"a\"}}\n\n" +
				"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":350}}\n\n" +
				"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
			exact(Usage{Input: 20412, CachedInput: 18000, CacheWrite: 2400, CacheWrite1h: 2000, Output: 350}), "", Output | End | Done,
		},
		{
			"anthropic cut", wire.Messages,
			"data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":12,\"cache_read_input_tokens\":8,\"output_tokens\":2}}}\n\n" +
				"data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"a\"}}\n\n",
			partial(Usage{Input: 20, CachedInput: 8, Output: 2}), "", Output,
		},
		{
			"anthropic input only at the end", wire.Messages,
			"data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":0,\"output_tokens\":0}}}\n\n" +
				"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"input_tokens\":40,\"cache_read_input_tokens\":2,\"output_tokens\":5}}\n\n" +
				"data: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"input_tokens\":0,\"output_tokens\":6}}\n\n" +
				"data: {\"type\":\"message_stop\"}\n\n",
			exact(Usage{Input: 42, CachedInput: 2, Output: 6}), "", Output | End | Done,
		},
		{"S-USE-06 no usage", wire.Chat, chunk(`"delta":{"content":"a"},"finish_reason":"stop"`) + "data: [DONE]\n\n", unknown, "", Output | End | Done},
		{"S-USE-06 all zero", wire.Chat, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":0,\"completion_tokens\":0,\"total_tokens\":0}}\n\n", exact(Usage{}), "", UsageOnly},
		{
			"S-AFF-07 error first", wire.Messages,
			": hi\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n",
			unknown, "", Error,
		},
		{
			"response of megabytes", wire.Responses,
			"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"output\":[{\"result\":\"" +
				strings.Repeat("A", 2<<20) + "\"}],\"service_tier\":\"flex\",\"tools\":[{\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}],\"usage\":{\"input_tokens\":9,\"output_tokens\":3},\"user\":null}}\n\n",
			exact(Usage{Input: 9, Output: 3, ServiceTier: "flex"}), "", Output | End | Done,
		},
		{
			"S-SSE-03 tool arguments of megabytes", wire.Chat,
			chunk(`"delta":{"tool_calls":[{"index":0,"function":{"arguments":"`+strings.Repeat("a", 5<<20)+`"}}]}`) +
				"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":9}}\n\ndata: [DONE]\n\n",
			exact(Usage{Input: 3, Output: 9}), "", Output | UsageOnly | End | Done,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := observe(tt.surface, tt.stream)
			if diff := cmp.Diff(tt.want, got.Usage); diff != "" {
				t.Errorf("Usage() (-want +got):\n%s", diff)
			}
			if got.ID != tt.id {
				t.Errorf("ResponseID() = %q, want %q", got.ID, tt.id)
			}
			if got.any() != tt.marks {
				t.Errorf("marks = %05b, want %05b (%v)", got.any(), tt.marks, got.Marks)
			}
			step := 1 + len(tt.stream)/2000 // every place, of the large ones some
			for at := 0; at < len(tt.stream); at += step {
				if len(tt.stream) > 1<<20 && at > 20*step {
					break
				}
				if diff := cmp.Diff(got, observe(tt.surface, tt.stream[:at], tt.stream[at:])); diff != "" {
					t.Fatalf("cut at %d (-whole +cut):\n%s", at, diff)
				}
			}
		})
	}
}

// S-SSE-08: what an error event after output means.
func TestSSE08ErrorAfterOutput(t *testing.T) {
	got := observe(wire.Messages,
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n"+
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"Hel\"}}\n\n"+
			"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n")
	if diff := cmp.Diff([]Mark{0, Output, Error}, got.Marks); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	if got.Class != health.Overloaded || got.Status != 529 {
		t.Errorf("Failure() = %s, %d, want overloaded, 529", got.Class, got.Status)
	}
}

// The second chunk of a stream takes a shorter way than the first; it must lead to the same.
func TestOpeningIsNotTrustedTooFar(t *testing.T) {
	head := `{"id":"x","object":"chat.completion.chunk","choices":`
	s := NewStream(wire.Chat)
	steps := []struct {
		data string
		want Mark
	}{
		{head + `[{"index":0,"delta":{"role":"assistant"}}]}`, 0},
		{head + `[{"index":0,"delta":{"content":"a"}}]}`, Output},
		{head + `[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, UsageOnly},
		{head + `[],"choices":[{"index":0,"delta":{"content":"a"}}]}`, Output},
		{head + `[],"error":{"message":"m"}}`, Error},
		{head, 0},
		{head + `}`, 0},
		{head + `[{"index":0,"delta":{"content":"a"}}`, 0},
		{`{"id":"x","object":"error","choices":[]}`, Error},
		{`{"id":"x","object":"error","choices":[]}`, Error},
		{`{"choices":[{"index":0,"delta":{"content":"a"}}],"choices":[]}`, Output},
		{`{"choices":[{"index":0,"delta":{"content":"a"}}],"choices":[]}`, Output},
	}
	for _, step := range steps {
		if got := s.Read(sse.Event{Data: []byte(step.data)}); got != step.want {
			t.Errorf("Read(%s) = %05b, want %05b", step.data, got, step.want)
		}
	}
}

func TestReadAllocatesNothing(t *testing.T) {
	for surface, data := range map[wire.Surface]string{
		wire.Chat: chatChunk, wire.Responses: responsesDelta, wire.Messages: messagesDelta,
	} {
		s := NewStream(surface)
		e := sse.Event{Data: []byte(data)}
		if n := testing.AllocsPerRun(100, func() { s.Read(e) }); n != 0 {
			t.Errorf("allocations of a content chunk on %s = %v, want 0", surface, n)
		}
	}
}

func FuzzStream(f *testing.F) {
	surfaces := []wire.Surface{wire.Chat, wire.Responses, wire.Messages, wire.Embeddings}
	f.Add("data: "+chatChunk+"\n\ndata: [DONE]\n\n", uint8(0), uint8(9))
	f.Add("event: x\ndata: "+responsesDelta+"\n\n", uint8(1), uint8(100))
	f.Add("data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"x\"}}}\n\n", uint8(1), uint8(3))
	f.Add("data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\n", uint8(2), uint8(7))
	f.Add("data: {\"error\":{\"code\":529,\"details\":[{\"retryDelay\":\"3s\"}]}}\n\n", uint8(0), uint8(1))
	f.Add("data: {\"choices\":[{\"index\":-1,\"delta\":{\"a\":\"\\\\\\\"\"}}],\"usage\":{\"prompt_tokens\":1e9}}\r\n\r", uint8(0), uint8(2))
	f.Fuzz(func(t *testing.T, stream string, surface, n uint8) {
		s := surfaces[int(surface)%len(surfaces)]
		whole := observe(s, stream)
		var chunks []string
		for rest := stream; rest != ""; {
			k := min(int(n)+1, len(rest))
			chunks, rest = append(chunks, rest[:k]), rest[k:]
		}
		if diff := cmp.Diff(whole, observe(s, chunks...)); diff != "" {
			t.Errorf("cut every %d (-whole +cut):\n%s", int(n)+1, diff)
		}
		ReadAnswer(s, []byte(stream), true)
		ReadAnswer(s, []byte(stream), false)
	})
}
