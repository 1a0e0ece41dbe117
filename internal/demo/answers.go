package demo

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strings"
	"time"
)

// prompt is what the demo needs of a request.
type prompt struct {
	stream        bool
	input, cached int // tokens
	text          string
}

func (p *provider) answer(shape func(io.Writer, prompt)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if p.failing.Load() {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"error":{"message":"the demo provider plays overloaded","type":"rate_limit_error","code":"rate_limit_exceeded"}}`)
			return
		}
		asked := p.read(body)
		if asked.stream {
			w.Header().Set("Content-Type", "text/event-stream")
		} else {
			w.Header().Set("Content-Type", "application/json")
		}
		shape(flushing{w}, asked)
	}
}

// flushing sends each write at once, as a provider's stream does.
type flushing struct{ http.ResponseWriter }

func (f flushing) Write(b []byte) (int, error) {
	n, err := f.ResponseWriter.Write(b)
	if flusher, ok := f.ResponseWriter.(http.Flusher); ok {
		flusher.Flush()
	}
	return n, err
}

// read finds the conversation and what of it the cache holds.
func (p *provider) read(body []byte) prompt {
	var request struct {
		Stream   bool              `json:"stream"`
		Messages []json.RawMessage `json:"messages"`
		Input    json.RawMessage   `json:"input"`
	}
	json.Unmarshal(body, &request) //nolint:errcheck // a demo answers whatever it is asked
	opening := []byte(request.Input)
	if len(request.Messages) > 0 {
		opening = request.Messages[0]
	}
	hash := fnv.New64a()
	hash.Write(opening) //nolint:errcheck // a hash never fails
	tokens := len(body)/4 + 1
	p.mu.Lock()
	defer p.mu.Unlock()
	cached := min(p.cache[hash.Sum64()], tokens)
	p.cache[hash.Sum64()] = tokens
	return prompt{
		stream: request.Stream, input: tokens, cached: cached,
		text: fmt.Sprintf("This is %s; %d of your %d prompt tokens were in my cache.", p.name, cached, tokens),
	}
}

func (p *provider) chat(w io.Writer, asked prompt) {
	usage := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":20,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}`, asked.input, asked.input+20, asked.cached)
	if !asked.stream {
		fmt.Fprintf(w, `{"id":"chatcmpl-demo","object":"chat.completion","created":0,"model":"demo","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%q}}],"usage":%s}`, asked.text, usage)
		return
	}
	const frame = `data: {"id":"chatcmpl-demo","object":"chat.completion.chunk","created":0,"model":"demo","choices":[%s]%s}` + "\n\n"
	for _, word := range strings.SplitAfter(asked.text, " ") {
		fmt.Fprintf(w, frame, fmt.Sprintf(`{"index":0,"delta":{"content":%q},"finish_reason":null}`, word), "")
	}
	fmt.Fprintf(w, frame, `{"index":0,"delta":{},"finish_reason":"stop"}`, "")
	fmt.Fprintf(w, frame, "", `,"usage":`+usage)
	io.WriteString(w, "data: [DONE]\n\n") //nolint:errcheck // the client may be gone
}

func (p *provider) responses(w io.Writer, asked prompt) {
	id := fmt.Sprintf("resp_%s_%d", p.name, time.Now().UnixNano())
	item := fmt.Sprintf(`{"type":"message","id":"msg_demo","role":"assistant","status":"completed","content":[{"type":"output_text","text":%q,"annotations":[]}]}`, asked.text)
	whole := fmt.Sprintf(`{"id":%q,"object":"response","created_at":0,"status":"completed","model":"demo","output":[%s],"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}}`,
		id, item, asked.input, asked.cached, asked.input+20)
	if !asked.stream {
		io.WriteString(w, whole) //nolint:errcheck // the client may be gone
		return
	}
	event := func(name, rest string) {
		fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", name, name, rest)
	}
	event("response.created", fmt.Sprintf(`"sequence_number":0,"response":{"id":%q,"object":"response","status":"in_progress","output":[]}`, id))
	event("response.output_item.added", `"sequence_number":1,"output_index":0,"item":{"type":"message","id":"msg_demo","role":"assistant","status":"in_progress","content":[]}`)
	event("response.content_part.added", `"sequence_number":2,"item_id":"msg_demo","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`)
	event("response.output_text.delta", fmt.Sprintf(`"sequence_number":3,"item_id":"msg_demo","output_index":0,"content_index":0,"delta":%q`, asked.text))
	event("response.output_item.done", `"sequence_number":4,"output_index":0,"item":`+item)
	event("response.completed", `"sequence_number":5,"response":`+whole)
}

func (p *provider) messages(w io.Writer, asked prompt) {
	usage := fmt.Sprintf(`"input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation_input_tokens":0`, asked.input-asked.cached, asked.cached)
	if !asked.stream {
		fmt.Fprintf(w, `{"id":"msg_demo","type":"message","role":"assistant","model":"demo","content":[{"type":"text","text":%q}],"stop_reason":"end_turn","stop_sequence":null,"usage":{%s,"output_tokens":20}}`, asked.text, usage)
		return
	}
	event := func(name, rest string) {
		fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q%s}\n\n", name, name, rest)
	}
	event("message_start", `,"message":{"id":"msg_demo","type":"message","role":"assistant","model":"demo","content":[],"stop_reason":null,"stop_sequence":null,"usage":{`+usage+`,"output_tokens":1}}`)
	event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
	event("content_block_delta", fmt.Sprintf(`,"index":0,"delta":{"type":"text_delta","text":%q}`, asked.text))
	event("content_block_stop", `,"index":0`)
	event("message_delta", `,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":20}`)
	event("message_stop", "")
}

func (p *provider) countTokens(w io.Writer, asked prompt) {
	fmt.Fprintf(w, `{"input_tokens":%d}`, asked.input)
}

func (p *provider) embeddings(w io.Writer, asked prompt) {
	fmt.Fprintf(w, `{"object":"list","model":"demo","data":[{"object":"embedding","index":0,"embedding":[0.25,-0.5,0.125]}],"usage":{"prompt_tokens":%d,"total_tokens":%d}}`, asked.input, asked.input)
}
