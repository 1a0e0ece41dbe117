package translate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"switchboard/internal/translate"
	"switchboard/internal/wire"
)

// extended keeps everything that has a counterpart.
func extended() translate.Options { return translate.Options{Extended: true} }

func request(t rapid.TB, from, to wire.Surface, body []byte, o translate.Options) []byte {
	out, dropped, err := translate.Request(from, to, body, o)
	if err != nil || len(dropped) > 0 {
		t.Fatalf("Request(%s) = %v, dropped %v", body, err, dropped)
	}
	return out
}

// TestRoundTripKeepsMeaning: a request that goes to the other surface and back says the same.
func TestRoundTripKeepsMeaning(t *testing.T) {
	t.Run("chat", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			body := chatRequest(t, conversation(t))
			there := request(t, wire.Chat, wire.Messages, body, extended())
			back := request(t, wire.Messages, wire.Chat, there, extended())
			same(t, body, there)
			same(t, body, back)
		})
	})
	t.Run("messages", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			body := messagesRequest(t, conversation(t))
			there := request(t, wire.Messages, wire.Chat, body, extended())
			back := request(t, wire.Chat, wire.Messages, there, extended())
			same(t, body, there)
			same(t, body, back)
		})
	})
}

func same(t *rapid.T, want, got []byte) {
	w, g := atoms(t, want), atoms(t, got)
	if diff := cmp.Diff(w, g); diff != "" {
		t.Fatalf("means another thing (-want +got):\n%s\nfrom %s\nto   %s", diff, want, got)
	}
}

// turn is a piece of a conversation.
type turn struct {
	user, assistant []map[string]any // Anthropic's blocks
}

// conversation draws turns of what both surfaces can say.
func conversation(t *rapid.T) []turn {
	ids := 0
	text := func(label string) string {
		return rapid.SampledFrom([]string{"hi", "é \"q\" \\ \n x", "a<b & 北京 😀", " lead", "\u2028"}).Draw(t, label)
	}
	block := func(pairs ...any) map[string]any {
		b := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			b[pairs[i].(string)] = pairs[i+1]
		}
		return b
	}
	said := func(label string) map[string]any { return block("type", "text", "text", text(label)) }
	var turns []turn
	var open []string
	for range rapid.IntRange(1, 6).Draw(t, "turns") {
		var u turn
		for _, id := range open {
			result := block("type", "tool_result", "tool_use_id", id)
			if rapid.Bool().Draw(t, "filled") {
				result["content"] = []map[string]any{said("result")}
			}
			u.user = append(u.user, result)
		}
		if len(open) == 0 || rapid.Bool().Draw(t, "speaks") {
			u.user = append(u.user, said("user"))
		}
		if rapid.Bool().Draw(t, "shows") {
			u.user = append(u.user, block("type", "image", "source", block("type", "base64", "media_type", "image/png", "data", "iVBOR+/=")))
			u.user = append(u.user, block("type", "image", "source", block("type", "url", "url", "https://x.test/a.png?q=1&r=\"")))
			u.user = append(u.user, block("type", "document", "title", "a.pdf", "source", block("type", "base64", "media_type", "application/pdf", "data", "JVBER")))
		}
		if rapid.Bool().Draw(t, "thinks") {
			u.assistant = append(u.assistant, block("type", "thinking", "thinking", text("thought"), "signature", "EqQB/+=="))
			u.assistant = append(u.assistant, block("type", "redacted_thinking", "data", "cmVk"))
		}
		u.assistant = append(u.assistant, said("assistant"))
		open = nil
		for range rapid.IntRange(0, 2).Draw(t, "calls") {
			ids++
			id := fmt.Sprintf("call_%d", ids)
			open = append(open, id)
			input := rapid.SampledFrom([]string{`{}`, `{"n": 9007199254740993, "x":[1.0,1e21]}`, `{"q":"\"\\é\n","deep":{"a":[{}]}}`}).Draw(t, "input")
			u.assistant = append(u.assistant, block("type", "tool_use", "id", id, "name", "f", "input", json.RawMessage(input)))
		}
		turns = append(turns, u)
	}
	return turns
}

func encode(v any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

type m = map[string]any

const schema = `{"type":"object","properties":{"n":{"type":"integer","maximum":128491981235.0}}}`

// messagesRequest is the conversation as Anthropic has it. The last assistant's turn is left
// out.
func messagesRequest(t *rapid.T, turns []turn) []byte {
	body := m{"model": "m", "max_tokens": 4096, "stream": true}
	if rapid.Bool().Draw(t, "settings") {
		body["temperature"], body["top_p"] = json.RawMessage("0.50"), json.RawMessage("1.0")
		body["stop_sequences"], body["metadata"] = []string{"A", "B"}, m{"user_id": "u\n1"}
		body["system"] = []m{{"type": "text", "text": "be terse"}, {"type": "text", "text": "in é prose"}}
		body["output_config"] = m{"format": m{"type": "json_schema", "schema": json.RawMessage(schema)}}
	}
	if rapid.Bool().Draw(t, "tools") {
		body["tools"] = []m{{"name": "f", "description": "d", "input_schema": json.RawMessage(schema), "strict": true}, {"name": "g", "input_schema": json.RawMessage(schema)}}
		body["tool_choice"] = rapid.SampledFrom([]m{{"type": "auto"}, {"type": "any"}, {"type": "none"}, {"type": "tool", "name": "g"}, {"type": "auto", "disable_parallel_tool_use": true}}).Draw(t, "choice")
	}
	var messages []m
	for i, u := range turns {
		messages = append(messages, m{"role": "user", "content": u.user})
		if i < len(turns)-1 {
			messages = append(messages, m{"role": "assistant", "content": u.assistant})
		}
	}
	body["messages"] = messages
	return encode(body)
}

// chatRequest is the conversation as OpenAI has it.
func chatRequest(t *rapid.T, turns []turn) []byte {
	body := m{"model": "m", "max_tokens": 4096, "stream": true}
	var messages []m
	if rapid.Bool().Draw(t, "settings") {
		delete(body, "max_tokens")
		body["max_completion_tokens"] = 77
		body["temperature"], body["top_p"] = json.RawMessage("0.50"), json.RawMessage("1.0")
		body["stop"], body["user"] = []string{"A"}, "u\n1"
		messages = append(messages, m{"role": "system", "content": "be terse"}, m{"role": "developer", "content": []m{{"type": "text", "text": "in é prose"}}})
		body["response_format"] = m{"type": "json_schema", "json_schema": m{"name": "n", "schema": json.RawMessage(schema)}}
	}
	if rapid.Bool().Draw(t, "tools") {
		body["tools"] = []m{{"type": "function", "function": m{"name": "f", "parameters": json.RawMessage(schema), "strict": true}}}
		body["tool_choice"] = rapid.SampledFrom([]any{"auto", "none", "required", m{"type": "function", "function": m{"name": "f"}}}).Draw(t, "choice")
		if body["tool_choice"] != "none" {
			body["parallel_tool_calls"] = rapid.Bool().Draw(t, "parallel")
		}
	}
	for i, u := range turns {
		messages = append(messages, chatUser(u.user)...)
		if i < len(turns)-1 {
			messages = append(messages, chatAssistant(u.assistant))
		}
	}
	body["messages"] = messages
	return encode(body)
}

func chatUser(blocks []m) (messages []m) {
	var parts []m
	for _, b := range blocks {
		source, _ := b["source"].(m)
		switch b["type"] {
		case "tool_result":
			text := ""
			if content, ok := b["content"].([]m); ok {
				text = content[0]["text"].(string)
			}
			messages = append(messages, m{"role": "tool", "tool_call_id": b["tool_use_id"], "content": text})
		case "text":
			parts = append(parts, b)
		case "image":
			url := source["url"]
			if url == nil {
				url = fmt.Sprintf("data:%v;base64,%v", source["media_type"], source["data"])
			}
			parts = append(parts, m{"type": "image_url", "image_url": m{"url": url}})
		case "document":
			parts = append(parts, m{"type": "file", "file": m{"filename": b["title"], "file_data": fmt.Sprintf("data:application/pdf;base64,%v", source["data"])}})
		}
	}
	if len(parts) > 0 {
		messages = append(messages, m{"role": "user", "content": parts})
	}
	return messages
}

func chatAssistant(blocks []m) m {
	out := m{"role": "assistant", "content": nil}
	var thoughts, calls []m
	for _, b := range blocks {
		switch b["type"] {
		case "text":
			out["content"] = b["text"]
		case "tool_use":
			calls = append(calls, m{"id": b["id"], "type": "function", "function": m{"name": b["name"], "arguments": string(b["input"].(json.RawMessage))}})
		default:
			thoughts = append(thoughts, b)
		}
	}
	if thoughts != nil {
		out["thinking_blocks"] = thoughts
	}
	if calls != nil {
		out["tool_calls"] = calls
	}
	return out
}

var marker = regexp.MustCompile(`,"cache_control":\{"type":"ephemeral"\}`)

// TestGrowingConversationGrowsThePrefix: the prompt cache lives on it. What a turn's request
// says up to the end of its messages is how the next turn's begins, byte for byte but for
// the markers, which are no part of the prompt.
func TestGrowingConversationGrowsThePrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turns := conversation(t)
		for _, direction := range []struct {
			from, to wire.Surface
			body     func(*rapid.T, []turn) []byte
		}{{wire.Chat, wire.Messages, chatRequest}, {wire.Messages, wire.Chat, messagesRequest}} {
			var before []byte
			for _, body := range growing(direction.body(t, turns)) {
				o := extended()
				o.Cache = translate.DefaultCache()
				marked := request(t, direction.from, direction.to, body, o)
				again := request(t, direction.from, direction.to, body, o)
				if !bytes.Equal(marked, again) {
					t.Fatalf("the same request gave two translations:\n%s\n%s", marked, again)
				}
				if n := bytes.Count(marked, []byte(`"cache_control"`)); n > 4 {
					t.Fatalf("%d markers; four are allowed: %s", n, marked)
				}
				now := marker.ReplaceAll(marked, nil)
				if plain := request(t, direction.from, direction.to, body, extended()); !bytes.Equal(now, plain) {
					t.Fatalf("markers change more than themselves:\n%s\n%s", now, plain)
				}
				if !bytes.HasPrefix(now, before) {
					t.Fatalf("the prefix changed:\nbefore %s\nnow    %s", before, now)
				}
				before = bytes.TrimRight(now, "]}")
			}
		}
	})
}

// growing is a request as it was sent turn by turn.
func growing(full []byte) [][]byte {
	var root map[string]json.RawMessage
	if err := json.Unmarshal(full, &root); err != nil {
		panic(err)
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(root["messages"], &messages); err != nil {
		panic(err)
	}
	var bodies [][]byte
	for n := 1; n <= len(messages); n++ {
		if n < len(messages) && !strings.Contains(string(messages[n]), `"role":"assistant"`) {
			continue // a client asks when it is the assistant's turn
		}
		root["messages"] = encode(messages[:n])
		bodies = append(bodies, encode(root))
	}
	return bodies
}

// TestAMarkerStaysWhereTheNextTurnLooks: the turn before has written its cache entry at its
// last user turn, where a marker must stand again.
func TestAMarkerStaysWhereTheNextTurnLooks(t *testing.T) {
	o := translate.Options{Cache: translate.DefaultCache()}
	one := request(t, wire.Chat, wire.Messages, []byte(`{"model":"m","messages":[{"role":"user","content":"a"}]}`), o)
	two := request(t, wire.Chat, wire.Messages, []byte(`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`), o)
	if prefix := bytes.TrimRight(one, "]}"); !bytes.HasPrefix(two, prefix) {
		t.Errorf("second turn = %s, want it to begin with %s", two, prefix)
	}
}
