package translate

import (
	"bytes"
	"fmt"
)

// blockName is the name of a member of a content block.
func (r *request) blockName(at int, member string) string {
	return fmt.Sprintf("messages[%d].content[%d]%s", r.message, at, member)
}

// userForChat writes a user turn: a tool message for each result first, as OpenAI wants them
// behind the calls, then what the user says, with the images that results brought.
func (r *request) userForChat(content value) {
	if content.isText() {
		r.open('{')
		r.word("role", "user")
		r.key("content")
		r.value(content)
		r.shut('}')
		return
	}
	r.images = r.images[:0]
	var said []value
	var at []int
	simple := true // nothing but text
	for i, block := range content.elements() {
		switch kind := block.get("type"); {
		case kind.is("tool_result"):
			r.toolResult(block, i)
		case kind.is("text"):
			said, at = append(said, block), append(at, i)
		default:
			said, at, simple = append(said, block), append(at, i), false
		}
	}
	if len(said) == 0 && len(r.images) == 0 {
		return
	}
	r.open('{')
	r.word("role", "user")
	r.key("content")
	if simple && len(r.images) == 0 {
		r.textsOrString(value{}, said)
	} else {
		r.open('[')
		if len(r.images) > 0 {
			r.comma()
			r.b = append(r.b, r.images...)
		}
		for i, block := range said {
			r.userBlock(block, at[i])
		}
		r.shut(']')
	}
	r.shut('}')
}

func (r *request) userBlock(block value, at int) {
	switch kind := block.get("type"); {
	case kind.is("text"):
		r.textPart(block.get("text").inner(), block)
	case kind.is("image"):
		r.imagePart(block, r.blockName(at, ""))
	case kind.is("document"):
		r.documentPart(block, r.blockName(at, ""))
	default:
		r.refuse(r.blockName(at, ".type"), "this kind of block has no counterpart at this model's provider.")
	}
}

// toolResult writes a result as a tool message. What it holds beside text goes into the user
// message that follows.
func (r *request) toolResult(block value, at int) {
	id := block.get("tool_use_id")
	if !id.isText() {
		r.refuse(r.blockName(at, ".tool_use_id"), "the id of a tool call belongs here.")
		return
	}
	content := block.get("content")
	var texts []value
	media := false
	for i, inside := range content.elements() {
		name := r.blockName(at, fmt.Sprintf(".content[%d]", i))
		switch kind := inside.get("type"); {
		case kind.is("text"):
			texts = append(texts, inside)
		case kind.is("image"), kind.is("document"):
			media = true
			r.aside(id, inside, name)
		default:
			r.refuse(name+".type", "this kind of block has no counterpart in a tool message.")
		}
	}
	r.open('{')
	r.word("role", "tool")
	r.key("tool_call_id")
	r.value(id)
	r.key("content")
	failed := block.get("is_error").isTrue()
	switch {
	case failed:
		r.failure(content, texts)
	case content.isText():
		r.value(content)
	case len(texts) == 0 && media:
		r.json(`"(The result follows.)"`)
	default:
		r.textsOrString(value{}, texts)
	}
	r.keepMarker(block)
	r.shut('}')
}

// failure writes the text of a result that is an error. OpenAI has no other place to say so.
func (r *request) failure(content value, texts []value) {
	inner := content.inner()
	if !content.isText() {
		for i, t := range texts {
			if i > 0 {
				inner = append(inner, `\n`...)
			}
			inner = append(inner, t.get("text").inner()...)
		}
	}
	if head := inner[:min(len(inner), 5)]; bytes.EqualFold(head, []byte("error")) {
		r.inner(inner)
		return
	}
	r.inner([]byte("Error: "), inner)
}

// aside keeps a block of a result for the user message behind the tool messages.
func (r *request) aside(id, block value, name string) {
	own := r.buf
	r.buf = buf{append(r.images, '[')}
	if len(r.images) > 0 {
		r.b = r.images
	}
	r.open('{')
	r.json(`"type":"text"`)
	r.key("text")
	r.inner([]byte("The result of "), id.inner(), []byte(" has this:"))
	r.shut('}')
	if block.get("type").is("image") {
		r.imagePart(block, name)
	} else {
		r.documentPart(block, name)
	}
	r.images, r.buf = bytes.TrimPrefix(r.b, []byte("[")), own
}

// assistantForChat writes an assistant's turn.
func (r *request) assistantForChat(content value) {
	var texts, calls, thoughts []value
	for i, block := range content.elements() {
		switch kind := block.get("type"); {
		case kind.is("text"):
			texts = append(texts, block)
		case kind.is("tool_use"):
			if !block.get("id").isText() || !block.get("name").isText() {
				r.refuse(r.blockName(i, ""), "a tool call has an id and a name.")
				return
			}
			calls = append(calls, block)
		case kind.is("thinking"), kind.is("redacted_thinking"):
			thoughts = append(thoughts, block)
		default:
			r.refuse(r.blockName(i, ".type"), "this kind of block has no counterpart at this model's provider.")
			return
		}
	}
	r.open('{')
	r.word("role", "assistant")
	r.thoughtsForChat(thoughts)
	r.key("content")
	if len(texts) == 0 && len(calls) > 0 && !content.isText() {
		r.json("null")
	} else {
		r.textsOrString(content, texts)
	}
	if len(calls) > 0 {
		r.key("tool_calls")
		r.open('[')
		for _, call := range calls {
			r.callForChat(call)
		}
		r.shut(']')
	}
	r.shut('}')
}

// thoughtsForChat keeps earlier thinking for providers that know what to do with it.
func (r *request) thoughtsForChat(thoughts []value) {
	switch {
	case len(thoughts) == 0:
	case r.o.Extended:
		writeThoughts(&r.buf, thoughts)
	default:
		r.drop("messages[].content[].thinking")
	}
}

// writeThoughts writes thinking as the members that clients of OpenAI's shape know it by.
func writeThoughts(w *buf, thoughts []value) {
	said := false
	for _, t := range thoughts {
		if len(t.get("thinking").inner()) > 0 {
			if !said {
				w.key("reasoning_content")
				w.b = append(w.b, '"')
				said = true
			}
			w.b = append(w.b, t.get("thinking").inner()...)
		}
	}
	if said {
		w.b = append(w.b, '"')
	}
	w.key("thinking_blocks")
	w.open('[')
	for _, t := range thoughts {
		w.open('{')
		for _, member := range []string{"type", "thinking", "signature", "data"} {
			w.copied(member, t.get(member))
		}
		w.shut('}')
	}
	w.shut(']')
}

func (r *request) callForChat(call value) {
	r.open('{')
	r.copied("id", call.get("id"))
	r.word("type", "function")
	r.key("function")
	r.open('{')
	r.copied("name", call.get("name"))
	r.key("arguments")
	r.arguments(call.get("input"))
	r.shut('}')
	r.keepMarker(call)
	r.shut('}')
}

// arguments writes a call's input as the string that OpenAI has for it.
func (w *buf) arguments(input value) {
	broken := input.get(brokenInput)
	switch {
	case broken.isText() && input.d.nodes[input.i].next == input.i+3:
		w.value(broken)
	case input.isObject():
		w.quote(input.raw())
	default:
		w.json(`"{}"`)
	}
}
