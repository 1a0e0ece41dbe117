package translate

// answer is a translation of a whole answer under way.
type answer struct {
	buf
	o Reply
}

// messagesToChat writes a message of Anthropic's as a chat completion.
func (w *answer) messagesToChat(root value) bool {
	content := root.get("content")
	if !content.isArray() {
		return false
	}
	var u usage
	u.messages(root.get("usage"))
	w.open('{')
	w.id(root, "chatcmpl-")
	w.word("object", "chat.completion")
	w.count("created", w.o.Created)
	w.model(root)
	w.json(`"choices":[{"index":0,"message":{"role":"assistant"`)
	w.saidInChat(content)
	w.b = append(w.b, `,"refusal":null},"logprobs":null`...)
	w.word("finish_reason", finishReason(string(root.get("stop_reason").text())))
	w.b = append(w.b, "}]"...)
	if tier := tierForChat(u.tier); tier != "" {
		w.word("service_tier", tier)
	}
	if u.known {
		u.asChat(&w.buf)
	}
	w.shut('}')
	return true
}

// id keeps the answer's id, by which the provider knows it.
func (w *answer) id(root value, prefix string) {
	if id := root.get("id"); id.isText() && len(id.inner()) > 0 {
		w.copied("id", id)
	} else {
		w.word("id", prefix+"translated")
	}
}

func (w *answer) model(root value) {
	w.key("model")
	if model := root.get("model"); model.isText() && len(model.inner()) > 0 {
		w.value(model)
	} else {
		w.quote([]byte(w.o.Model))
	}
}

// saidInChat writes the blocks of a message as the members of an assistant's.
func (w *answer) saidInChat(content value) {
	var thoughts, calls []value
	w.key("content")
	said := false
	for _, block := range content.elements() {
		switch kind := block.get("type"); {
		case kind.is("text"):
			if !said {
				w.b = append(w.b, '"')
				said = true
			}
			w.b = append(w.b, block.get("text").inner()...)
		case kind.is("tool_use"):
			calls = append(calls, block)
		case kind.is("thinking"), kind.is("redacted_thinking"):
			thoughts = append(thoughts, block)
		}
	}
	switch {
	case said:
		w.b = append(w.b, '"')
	case len(calls) > 0:
		w.json("null")
	default:
		w.json(`""`)
	}
	if len(thoughts) > 0 {
		writeThoughts(&w.buf, thoughts)
	}
	if len(calls) == 0 {
		return
	}
	w.key("tool_calls")
	w.open('[')
	for _, call := range calls {
		w.open('{')
		w.copied("id", call.get("id"))
		w.word("type", "function")
		w.key("function")
		w.open('{')
		w.copied("name", call.get("name"))
		w.key("arguments")
		w.arguments(call.get("input"))
		w.shut('}')
		w.shut('}')
	}
	w.shut(']')
}

// chatToMessages writes a chat completion as a message of Anthropic's.
func (w *answer) chatToMessages(root value) bool {
	choices := root.get("choices")
	if !choices.isArray() {
		return false
	}
	var choice value
	for _, first := range choices.elements() {
		choice = first
		break
	}
	u := usage{tier: string(root.get("service_tier").text())}
	u.chat(root.get("usage"))
	message := choice.get("message")
	w.open('{')
	w.id(root, "msg_")
	w.word("type", "message")
	w.word("role", "assistant")
	w.model(root)
	called, refused := w.saidInMessages(message)
	w.word("stop_reason", stopReason(string(choice.get("finish_reason").text()), called, refused))
	w.json(`"stop_sequence":null`)
	u.asMessages(&w.buf)
	w.shut('}')
	return true
}

// saidInMessages writes an assistant's message as content blocks.
func (w *answer) saidInMessages(message value) (called, refused bool) {
	w.key("content")
	w.open('[')
	w.thoughts(message)
	text, refusal := message.get("content"), message.get("refusal")
	w.text(text)
	for _, part := range text.elements() {
		w.text(part.get("text"))
	}
	w.text(refusal)
	for i, call := range message.get("tool_calls").elements() {
		function := call.get("function")
		if !function.get("name").isText() {
			continue
		}
		called = true
		w.open('{')
		w.word("type", "tool_use")
		w.key("id")
		if id := call.get("id"); len(id.inner()) > 0 {
			w.toolID(id)
		} else {
			w.inner([]byte("call_"), appendInt(nil, i))
		}
		w.copied("name", function.get("name"))
		w.key("input")
		w.input(function.get("arguments"))
		w.shut('}')
	}
	w.shut(']')
	return called, refusal.isText() && len(refusal.inner()) > 0
}

func (w *answer) text(v value) {
	if len(v.inner()) == 0 {
		return
	}
	w.open('{')
	w.word("type", "text")
	w.copied("text", v)
	w.shut('}')
}

// thoughts writes what an answer says of its reasoning: blocks with their signatures where
// it has them, else the bare text.
func (w *answer) thoughts(message value) {
	blocks := message.get("thinking_blocks")
	if blocks.size() == 0 {
		if text := reasoningText(message); len(text.inner()) > 0 {
			w.open('{')
			w.word("type", "thinking")
			w.copied("thinking", text)
			w.word("signature", "")
			w.shut('}')
		}
		return
	}
	for _, b := range blocks.elements() {
		w.open('{')
		if b.get("type").is("redacted_thinking") {
			w.word("type", "redacted_thinking")
			w.key("data")
			w.inner(b.get("data").inner())
		} else {
			w.word("type", "thinking")
			w.key("thinking")
			w.inner(b.get("thinking").inner())
			w.key("signature")
			w.inner(b.get("signature").inner())
		}
		w.shut('}')
	}
}

// reasoningText is the reasoning of a message or a delta, by either of the names for it.
func reasoningText(message value) value {
	if text := message.get("reasoning_content"); text.isText() {
		return text
	}
	return message.get("reasoning")
}
