package translate

import (
	"bytes"
	"fmt"
	"strings"
)

// messagesFields are the members of a Messages request that have a counterpart.
type messagesFields struct {
	model, messages, system, maxTokens, temperature, topP, stop, stream, metadata, serviceTier,
	thinking, outputConfig, outputFormat, tools, toolChoice value
}

// messagesToChat translates a Messages request. The messages come last, so that a
// conversation which grows gives bytes that grow.
func (r *request) messagesToChat(root value) {
	f := r.messagesFields(root)
	r.open('{')
	r.model(f.model)
	if r.o.ShortMaxTokens {
		r.copied("max_tokens", f.maxTokens)
	} else {
		r.copied("max_completion_tokens", f.maxTokens)
	}
	r.copied("stream", f.stream)
	if f.stream.isTrue() && r.o.AskUsage {
		r.json(`"stream_options":{"include_usage":true}`)
	}
	r.endUser(f.metadata)
	r.serviceTierForChat(f.serviceTier)
	if f.stop.size() > 0 {
		r.copied("stop", f.stop)
	}
	r.copied("temperature", f.temperature)
	r.copied("top_p", f.topP)
	r.effortForChat(&f)
	r.formatForChat(&f)
	r.toolsForChat(f.tools)
	r.choiceForChat(&f)
	r.messagesForChat(&f)
	r.shut('}')
}

func (r *request) messagesFields(root value) (f messagesFields) {
	known := map[string]*value{
		"model": &f.model, "messages": &f.messages, "system": &f.system, "max_tokens": &f.maxTokens,
		"temperature": &f.temperature, "top_p": &f.topP, "stop_sequences": &f.stop, "stream": &f.stream,
		"metadata": &f.metadata, "service_tier": &f.serviceTier, "thinking": &f.thinking, "output_config": &f.outputConfig,
		"output_format": &f.outputFormat, "tools": &f.tools, "tool_choice": &f.toolChoice,
	}
	for name, v := range root.members() {
		if v.empty() {
			continue
		}
		if field := known[name]; field != nil {
			*field = v
			continue
		}
		switch name {
		case "mcp_servers":
			if v.size() > 0 {
				r.refuse(name, "this model's provider cannot call them.")
			}
		case "container":
			r.refuse(name, "this model's provider has none.")
		case "inference_geo":
			r.refuse(name, "this model's provider promises nothing of the kind.")
		default:
			// Hints (top_k, context_management, speed, cache_control) and what nobody here knows.
			r.drop(fieldName(name))
		}
	}
	return f
}

// longestUser is how long OpenAI lets the end user's id be.
const longestUser = 64

func (r *request) endUser(metadata value) {
	for name, v := range metadata.members() {
		switch {
		case v.empty():
		case name == "user_id" && v.isText() && len(v.text()) <= longestUser:
			r.key("user")
			r.value(v)
		default:
			r.drop("metadata." + fieldName(name))
		}
	}
}

func (r *request) serviceTierForChat(v value) {
	switch {
	case v.is("auto"):
		r.word("service_tier", "auto")
	case v.is("standard_only"):
		r.word("service_tier", "default")
	case v.found():
		r.drop("service_tier")
	}
}

// effortForChat writes how much the model is to reason. Models that do not are asked nothing:
// they refuse the question.
func (r *request) effortForChat(f *messagesFields) {
	effort := string(f.outputConfig.get("effort").text())
	switch kind := f.thinking.get("type"); {
	case kind.is("disabled"):
		return
	case kind.is("enabled") && effort == "":
		effort = effortOf(number(f.thinking.get("budget_tokens")))
	}
	switch effort {
	case "":
		return // adaptive: the model decides, as it does unasked
	case "low", "medium", "high":
	case "xhigh", "max":
		effort = "high" // what all of them know
	default:
		r.refuse("output_config.effort", "low, medium, high, xhigh or max belongs here.")
		return
	}
	if !reasons(r.modelName(f.model)) {
		r.drop("thinking")
		return
	}
	r.word("reasoning_effort", effort)
}

// reasons tells whether a model is none of OpenAI's that are known not to reason.
func reasons(model string) bool {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	return !strings.HasPrefix(name, "gpt-4") && !strings.HasPrefix(name, "gpt-3") && !strings.HasPrefix(name, "chatgpt-4")
}

// formatForChat writes the schema of a structured answer.
func (r *request) formatForChat(f *messagesFields) {
	format, name := f.outputConfig.get("format"), "output_config.format"
	if format.empty() {
		format, name = f.outputFormat, "output_format"
	}
	switch {
	case format.empty():
	case format.get("type").is("json_schema") && format.get("schema").isObject():
		r.key("response_format")
		r.json(`{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":`)
		r.value(format.get("schema"))
		r.b = append(r.b, "}}"...)
	default:
		r.refuse(name+".type", "only json_schema has a counterpart at this model's provider.")
	}
}

// toolsForChat writes the tools of a Messages request.
func (r *request) toolsForChat(tools value) {
	if tools.size() == 0 {
		return
	}
	r.key("tools")
	r.open('[')
	for i, tool := range tools.elements() {
		if kind := tool.get("type"); !kind.empty() && !kind.is("custom") {
			r.refuse(fmt.Sprintf("tools[%d].type", i), "tools that Anthropic runs or defines have no counterpart at this model's provider.")
			return
		}
		if !tool.get("name").isText() {
			r.refuse(fmt.Sprintf("tools[%d].name", i), "a name belongs here.")
			return
		}
		r.open('{')
		r.word("type", "function")
		r.key("function")
		r.open('{')
		r.copied("name", tool.get("name"))
		r.copied("description", tool.get("description"))
		r.copied("parameters", tool.get("input_schema"))
		if tool.get("strict").isTrue() {
			r.json(`"strict":true`)
		}
		r.shut('}')
		r.keepMarker(tool)
		r.shut('}')
		for name, v := range tool.members() {
			switch name {
			case "type", "name", "description", "input_schema", "strict", "cache_control":
			default:
				if !v.empty() {
					r.drop("tools[]." + fieldName(name))
				}
			}
		}
	}
	r.shut(']')
}

func (r *request) choiceForChat(f *messagesFields) {
	c := f.toolChoice
	if !c.found() || f.tools.size() == 0 {
		return // the provider knows no choice among none
	}
	switch kind := c.get("type"); {
	case kind.is("auto"), kind.is("none"):
		r.key("tool_choice")
		r.value(kind)
	case kind.is("any"):
		r.word("tool_choice", "required")
	case kind.is("tool") && c.get("name").isText():
		r.key("tool_choice")
		r.json(`{"type":"function","function":{"name":`)
		r.value(c.get("name"))
		r.b = append(r.b, "}}"...)
	default:
		r.refuse("tool_choice.type", "auto, any, tool or none belongs here.")
	}
	if c.get("disable_parallel_tool_use").isTrue() {
		r.json(`"parallel_tool_calls":false`)
	}
}

// keepMarker writes a block's cache marker where the provider knows it, and otherwise leaves
// it out: OpenAI caches by itself.
func (r *request) keepMarker(block value) {
	marker := block.get("cache_control")
	switch {
	case !marker.isObject():
	case r.o.Extended:
		r.key("cache_control")
		r.value(marker)
	default:
		r.drop("cache_control")
	}
}

// billingHeader begins a system block that coding agents put before all others. It is for
// Anthropic's books, and changes from request to request: at the head of the prompt it would
// make every cache miss.
const billingHeader = "x-anthropic-billing-header:"

// messagesForChat writes the system prompt and the conversation.
func (r *request) messagesForChat(f *messagesFields) {
	if !f.messages.isArray() {
		r.refuse("messages", "an array belongs here.")
		return
	}
	r.key("messages")
	r.open('[')
	r.systemForChat(f.system, "system")
	for i, m := range f.messages.elements() {
		if r.err != nil {
			return
		}
		r.message = i
		role, content := m.get("role"), m.get("content")
		switch {
		case role.is("user"):
			r.userForChat(content)
		case role.is("assistant"):
			r.assistantForChat(content)
		case role.is("system"):
			r.systemForChat(content, fmt.Sprintf("messages[%d].content", i))
		default:
			r.refuse(fmt.Sprintf("messages[%d].role", i), "this role has no counterpart at this model's provider.")
		}
	}
	r.shut(']')
}

func (r *request) systemForChat(content value, name string) {
	if content.isText() && len(content.inner()) == 0 || content.empty() || content.isArray() && content.size() == 0 {
		return
	}
	var texts []value
	for i, block := range content.elements() {
		switch {
		case !block.get("type").is("text"):
			r.refuse(fmt.Sprintf("%s[%d].type", name, i), "only text can stand here.")
		case bytes.HasPrefix(block.get("text").inner(), []byte(billingHeader)):
			r.drop("x-anthropic-billing-header")
		default:
			texts = append(texts, block)
		}
	}
	if len(texts) == 0 && !content.isText() {
		return
	}
	r.open('{')
	r.word("role", "system")
	r.key("content")
	r.textsOrString(content, texts)
	r.shut('}')
}

// textsOrString writes texts as a content: a lone one as a string, which every server takes,
// unless it has a marker to keep.
func (r *request) textsOrString(content value, texts []value) {
	switch {
	case content.isText():
		r.value(content)
	case len(texts) == 0:
		r.json(`""`)
	case len(texts) == 1 && !(r.o.Extended && texts[0].get("cache_control").isObject()):
		r.keepMarkerName(texts[0])
		r.inner(texts[0].get("text").inner())
	default:
		r.open('[')
		for _, block := range texts {
			r.textPart(block.get("text").inner(), block)
		}
		r.shut(']')
	}
}

func (r *request) keepMarkerName(block value) {
	if block.get("cache_control").isObject() {
		r.drop("cache_control")
	}
}

func (r *request) textPart(inner []byte, block value) {
	r.open('{')
	r.word("type", "text")
	r.key("text")
	r.inner(inner)
	r.keepMarker(block)
	r.shut('}')
}
