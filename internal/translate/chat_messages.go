package translate

import (
	"bytes"
	"fmt"
	"slices"
)

// systemOfChat writes the system messages that begin the conversation and returns how many
// there are. Those further on stay where they are: moved to the front they would change the
// prompt's beginning, and with it lose the cache.
func (r *request) systemOfChat(messages value) (n int) {
	begin := len(r.b)
	r.key("system")
	r.open('[')
	empty := len(r.b)
	for i, m := range messages.elements() {
		if !isSystem(m.get("role")) {
			break
		}
		n = i + 1
		r.message = i
		r.named(m)
		r.parts(m.get("content"), func(part value, text []byte) {
			r.textBlock(text, firstOf(part.get("cache_control"), m.get("cache_control")))
		})
	}
	if len(r.b) == empty {
		r.b = r.b[:begin]
		return n
	}
	if r.mark && r.o.Cache.System {
		r.b = append(r.b[:len(r.b)-1], ","+ephemeral+"}"...)
	}
	r.shut(']')
	return n
}

func isSystem(role value) bool { return role.is("system") || role.is("developer") }

// named drops the name of a message's author.
func (r *request) named(m value) {
	if !m.get("name").empty() {
		r.drop("messages[].name")
	}
}

// parts calls text for the text of a content, which is a string or an array of text parts.
func (r *request) parts(content value, text func(part value, inner []byte)) {
	if content.isText() {
		text(value{}, content.inner())
		return
	}
	for i, part := range content.elements() {
		r.part = i
		switch {
		case part.get("type").is("text"):
			text(part, part.get("text").inner())
		case part.get("type").is("refusal"):
			text(part, part.get("refusal").inner())
		default:
			r.refuse(r.partName("type"), "only text can stand here.")
		}
	}
}

// partName is the name of a member of the part under way.
func (r *request) partName(member string) string {
	return fmt.Sprintf("messages[%d].content[%d].%s", r.message, r.part, member)
}

// chatMessages writes the conversation from its message number from on.
func (r *request) chatMessages(messages value, from int) {
	if !messages.isArray() {
		r.refuse("messages", "an array belongs here.")
		return
	}
	r.key("messages")
	r.open('[')
	for i, m := range messages.elements() {
		if i < from {
			continue
		}
		if r.err != nil {
			return
		}
		r.message = i
		r.chatMessage(m)
	}
	r.endMessage()
	r.shut(']')
	if r.mark {
		r.markTurns()
	}
}

func (r *request) chatMessage(m value) {
	role := m.get("role")
	r.named(m)
	switch {
	case role.is("user"):
		r.userMessage(m)
	case role.is("assistant"):
		r.assistantMessage(m)
	case role.is("tool"):
		r.toolMessage(m)
	case isSystem(role):
		r.parts(m.get("content"), func(part value, text []byte) {
			if !blank(text) {
				r.block("user")
				r.textBlock(slices.Concat([]byte(`<system>\n`), text, []byte(`\n</system>`)), part.get("cache_control"))
			}
		})
	default:
		r.refuse(fmt.Sprintf("messages[%d].role", r.message), "this role has no counterpart at this model's provider.")
	}
}

// block makes sure that a message of the role is under way. Messages of one role that follow
// one another become one, as Anthropic has it; one without any block is left out.
func (r *request) block(role string) {
	if r.role != role {
		r.endMessage()
		r.open('{')
		r.word("role", role)
		r.key("content")
		r.open('[')
		r.role, r.others = role, 0
	}
}

func (r *request) endMessage() {
	if r.role == "" {
		return
	}
	if len(r.rest) > 0 {
		r.setAside()
		r.comma()
		r.b, r.rest = append(r.b, r.rest...), r.rest[:0]
	}
	if r.role == "user" {
		r.turns = append(r.turns, len(r.b)-1)
	}
	r.b = append(r.b, ']', '}')
	r.role = ""
}

// markTurns marks the ends of the last user turns, the last one first.
func (r *request) markTurns() {
	for n := range min(r.o.Cache.Turns, len(r.turns)) {
		r.b = slices.Insert(r.b, r.turns[len(r.turns)-1-n], []byte(","+ephemeral)...)
	}
}

// textBlock writes a text block; white space alone, which Anthropic refuses, is left out.
func (r *request) textBlock(inner []byte, marker value) {
	if blank(inner) {
		return
	}
	if r.role == "user" && r.others == 0 {
		r.others = len(r.b)
	}
	r.open('{')
	r.word("type", "text")
	r.key("text")
	r.inner(inner)
	r.marker(marker, false)
	r.shut('}')
}

func (r *request) userMessage(m value) {
	content := m.get("content")
	if content.isText() {
		if !blank(content.inner()) {
			r.block("user")
			r.textBlock(content.inner(), m.get("cache_control"))
		}
		return
	}
	for i, part := range content.elements() {
		r.part = i
		r.userPart(part)
	}
}

func (r *request) userPart(part value) {
	kind := part.get("type")
	switch {
	case kind.is("text"):
		if text := part.get("text").inner(); !blank(text) {
			r.block("user")
			r.textBlock(text, part.get("cache_control"))
		}
	case kind.is("image_url"):
		r.block("user")
		r.imageBlock(part, true)
	case kind.is("file"):
		r.block("user")
		r.fileBlock(part)
	default:
		r.refuse(r.partName("type"), "this kind of part has no counterpart at this model's provider.")
	}
}

// assistantMessage writes an assistant's turn: its reasoning first, as Anthropic wants it
// back, then its text, then its tool calls.
func (r *request) assistantMessage(m value) {
	for _, member := range []string{"audio", "function_call"} {
		if !m.get(member).empty() {
			r.refuse(fmt.Sprintf("messages[%d].%s", r.message, member), "this has no counterpart at this model's provider.")
		}
	}
	r.reasoningBlocks(m)
	said := func(part value, text []byte) {
		if !blank(text) {
			r.block("assistant")
			r.textBlock(text, firstOf(part.get("cache_control"), m.get("cache_control")))
		}
	}
	r.parts(m.get("content"), said)
	if refused := m.get("refusal"); refused.isText() {
		said(value{}, refused.inner())
	}
	for i, call := range m.get("tool_calls").elements() {
		r.toolUse(call, i)
	}
}

// toolMessage writes a tool's result. In a user message results come first, whatever else
// the client has put between a call and its result.
func (r *request) toolMessage(m value) {
	id := m.get("tool_call_id")
	if !id.isText() {
		r.refuse(fmt.Sprintf("messages[%d].tool_call_id", r.message), "the id of a tool call belongs here.")
		return
	}
	r.block("user")
	r.setAside()
	r.open('{')
	r.word("type", "tool_result")
	r.key("tool_use_id")
	r.toolID(id)
	r.toolContent(m)
	r.marker(m.get("cache_control"), false)
	r.shut('}')
}

// setAside keeps what a user message says so far for its end.
func (r *request) setAside() {
	if r.others == 0 {
		return
	}
	if len(r.rest) > 0 {
		r.rest = append(r.rest, ',')
	}
	r.rest = append(r.rest, bytes.TrimPrefix(r.b[r.others:], []byte(","))...)
	r.b, r.others = r.b[:r.others], 0
}

func (r *request) toolContent(m value) {
	begin := len(r.b)
	r.key("content")
	r.open('[')
	empty, others := len(r.b), r.others
	r.others = 1 // blocks in here are not the message's own
	if content := m.get("content"); content.isText() {
		r.textBlock(content.inner(), value{})
	} else {
		for i, part := range content.elements() {
			r.part = i
			switch kind := part.get("type"); {
			case kind.is("text"):
				r.textBlock(part.get("text").inner(), part.get("cache_control"))
			case kind.is("image_url"):
				r.imageBlock(part, false)
			default:
				r.refuse(r.partName("type"), "this kind of part has no counterpart in a tool's result.")
			}
		}
	}
	r.others = others
	if len(r.b) == empty {
		r.b = r.b[:begin] // an empty result has no content
		return
	}
	r.shut(']')
}
