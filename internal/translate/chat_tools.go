package translate

import (
	"bytes"
	"fmt"
)

// toolsForMessages writes the tools of a chat completion request.
func (r *request) toolsForMessages(tools value) {
	last := tools.size() - 1
	if last < 0 {
		return
	}
	r.key("tools")
	r.open('[')
	for i, tool := range tools.elements() {
		if kind := tool.get("type"); kind.found() && !kind.is("function") {
			r.refuse(fmt.Sprintf("tools[%d].type", i), "only functions are translated.")
			return
		}
		function := tool.get("function")
		if !function.get("name").isText() {
			r.refuse(fmt.Sprintf("tools[%d].function.name", i), "a name belongs here.")
			return
		}
		r.open('{')
		r.key("name")
		r.value(function.get("name"))
		r.copied("description", function.get("description"))
		r.key("input_schema")
		r.schema(function.get("parameters"))
		if function.get("strict").isTrue() {
			r.json(`"strict":true`)
		}
		r.marker(firstOf(tool.get("cache_control"), function.get("cache_control")), i == last && r.o.Cache.Tools)
		r.shut('}')
	}
	r.shut(']')
}

// schema writes a tool's parameters, which Anthropic requires.
func (r *request) schema(parameters value) {
	switch {
	case !parameters.isObject() || parameters.d.nodes[parameters.i].next == parameters.i+1:
		r.json(`{"type":"object","properties":{}}`)
	case !parameters.get("type").found():
		r.open('{')
		r.json(`"type":"object"`)
		for i := parameters.i + 1; i < parameters.d.nodes[parameters.i].next; i = parameters.d.nodes[i+1].next {
			r.value(value{parameters.d, i})
			r.b = append(r.b, ':')
			r.value(value{parameters.d, i + 1})
		}
		r.shut('}')
	default:
		r.value(parameters)
	}
}

func firstOf(a, b value) value {
	if a.isObject() {
		return a
	}
	return b
}

const ephemeral = `"cache_control":{"type":"ephemeral"}`

// marker writes the client's own cache marker, or ours where one belongs.
func (r *request) marker(own value, here bool) {
	switch {
	case own.isObject():
		r.key("cache_control")
		r.value(own)
	case here && r.mark:
		r.json(ephemeral)
	}
}

// choiceForMessages writes which tools the model may, must or must not use.
func (r *request) choiceForMessages(f *chatFields) {
	if f.tools.size() == 0 {
		return // the provider knows no choice among none
	}
	kind := ""
	var name value
	switch c := f.toolChoice; {
	case !c.found():
	case c.is("auto"), c.is("none"):
		kind = string(c.text())
	case c.is("required"), c.is("any"):
		kind = "any"
	case c.isObject() && c.get("type").is("function") && c.at("function", "name").isText():
		kind, name = "tool", c.at("function", "name")
	case c.isObject():
		r.refuse("tool_choice.type", "only the choice of a function is translated.")
	default:
		r.refuse("tool_choice", "auto, none, required or a function belongs here.")
	}
	alone := f.parallel.kind() == 'f' && kind != "none"
	if kind == "" && alone {
		kind = "auto"
	}
	if kind == "" {
		return
	}
	r.key("tool_choice")
	r.open('{')
	r.word("type", kind)
	r.copied("name", name)
	if alone {
		r.json(`"disable_parallel_tool_use":true`)
	}
	r.shut('}')
}

// forced tells whether the choice makes the model call a tool.
func (f *chatFields) forced() bool {
	return f.tools.size() > 0 && f.toolChoice.found() && !f.toolChoice.is("auto") && !f.toolChoice.is("none")
}

// toolUse writes an assistant's tool call as a block.
func (r *request) toolUse(call value, at int) {
	name := func(member string) string {
		return fmt.Sprintf("messages[%d].tool_calls[%d].%s", r.message, at, member)
	}
	function := call.get("function")
	switch {
	case call.get("type").found() && !call.get("type").is("function"):
		r.refuse(name("type"), "only functions are translated.")
		return
	case !call.get("id").isText():
		r.refuse(name("id"), "an id belongs here.")
		return
	case !function.get("name").isText():
		r.refuse(name("function.name"), "a name belongs here.")
		return
	}
	r.block("assistant")
	r.open('{')
	r.word("type", "tool_use")
	r.key("id")
	r.toolID(call.get("id"))
	r.key("name")
	r.value(function.get("name"))
	r.key("input")
	r.input(function.get("arguments"))
	r.marker(call.get("cache_control"), false)
	r.shut('}')
}

// toolID writes the id of a tool call as Anthropic takes it.
func (w *buf) toolID(id value) { w.inner(cleanID(id.text())) }

// cleanID is an id of letters, digits, '_' and '-', as Anthropic wants it; other vendors make
// ids of more. It is cleaned in answers too, so that a history can go to Anthropic itself.
func cleanID(text []byte) []byte {
	bad := func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '_' && c != '-'
	}
	if bytes.IndexFunc(text, bad) < 0 {
		return text
	}
	return bytes.Map(func(c rune) rune {
		if bad(c) {
			return '_'
		}
		return c
	}, text)
}

// brokenInput is the member that holds arguments which are no JSON object, as Anthropic's own
// guide to streamed tool input has it.
const brokenInput = "INVALID_JSON"

// input writes arguments, JSON inside a string, as the object that they are.
func (w *buf) input(arguments value) {
	text := arguments.text()
	if arguments.isObject() { // some send the object itself
		text = arguments.raw()
	}
	w.inputText(text)
}

func (w *buf) inputText(text []byte) {
	text = bytes.TrimSpace(text)
	var d document
	switch {
	case len(text) == 0, string(text) == "null":
		w.json("{}")
	case d.parse(text) && d.root().isObject():
		w.comma()
		w.b = append(w.b, text...)
	default:
		w.open('{')
		w.key(brokenInput)
		w.quote(text)
		w.shut('}')
	}
}
