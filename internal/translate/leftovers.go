package translate

import (
	"bytes"

	"switchboard/internal/wire"
)

// Leftovers are the edits of a request that take out of its history what only translated
// answers bring, which a provider who speaks the surface refuses: of chat completions the
// thinking blocks beside an assistant's text, of messages thinking that nobody has signed.
// They are none for a session that no translation has served. Like all here they depend on
// the history alone, so that the prompt's beginning stays as it is from turn to turn.
func Leftovers(surface wire.Surface, body []byte) []wire.Edit {
	sign := []byte(`"thinking_blocks"`)
	if surface == wire.Messages {
		sign = []byte(`"thinking"`)
	}
	var d document
	if !bytes.Contains(body, sign) || !d.parse(body) {
		return nil
	}
	var edits []wire.Edit
	for _, m := range d.root().get("messages").elements() {
		if !m.get("role").is("assistant") {
			continue
		}
		if surface == wire.Messages {
			edits = append(edits, unsigned(m.get("content"))...)
		} else if m.get("thinking_blocks").found() {
			edits = append(edits, withoutThinking(m))
		}
	}
	return edits
}

func (v value) span() wire.Span {
	n := v.d.nodes[v.i]
	return wire.Span{Start: int(n.start), End: int(n.end)}
}

// withoutThinking is a message without the members that thinking came in.
func withoutThinking(m value) wire.Edit {
	var w buf
	w.open('{')
	for i := m.i + 1; i < m.d.nodes[m.i].next; i = m.d.nodes[i+1].next {
		key := value{m.d, i}
		if key.is("thinking_blocks") || key.is("reasoning_content") {
			continue
		}
		w.value(key)
		w.b = append(w.b, ':')
		w.value(value{m.d, i + 1})
	}
	w.shut('}')
	return wire.Edit{Span: m.span(), With: w.b}
}

// unsigned is a content without its thinking blocks that have no signature. One that has
// nothing else stays: what is empty is refused as well.
func unsigned(content value) []wire.Edit {
	var w buf
	w.open('[')
	kept, left := 0, 0
	for _, block := range content.elements() {
		if block.get("type").is("thinking") && len(block.get("signature").inner()) == 0 {
			left++
			continue
		}
		kept++
		w.value(block)
	}
	w.shut(']')
	if left == 0 || kept == 0 {
		return nil
	}
	return []wire.Edit{{Span: content.span(), With: w.b}}
}
