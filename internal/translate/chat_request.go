package translate

import (
	"bytes"
	"strconv"

	"switchboard/internal/wire"
)

// chatFields are the members of a chat completion request that have a counterpart.
type chatFields struct {
	model, messages, maxTokens, maxCompletion, temperature, topP, topK, stop, stream,
	user, safetyIdentifier, metadata, serviceTier, format, effort, reasoning, thinking,
	tools, toolChoice, parallel value
}

// chatToMessages translates a chat completion request. The messages come last, so that a
// conversation which grows gives bytes that grow.
func (r *request) chatToMessages(root value) {
	f := r.chatFields(root)
	r.mark = !bytes.Contains(r.doc.src, []byte(`"cache_control"`))
	r.open('{')
	r.model(f.model)
	think := r.thinkingOfChat(&f)
	r.maxTokensForMessages(&f, think)
	r.copied("stream", f.stream)
	r.userID(&f)
	r.serviceTierForMessages(f.serviceTier)
	r.stopSequences(f.stop)
	r.sampling(&f, think)
	r.writeThinking(think)
	r.outputConfig(f.format, think)
	r.toolsForMessages(f.tools)
	r.choiceForMessages(&f)
	from := r.systemOfChat(f.messages)
	r.chatMessages(f.messages, from)
	r.shut('}')
}

// chatFields sorts the members: those with a counterpart, those that are refused, and those
// that are left out.
func (r *request) chatFields(root value) (f chatFields) {
	known := map[string]*value{
		"model": &f.model, "messages": &f.messages, "max_tokens": &f.maxTokens, "max_completion_tokens": &f.maxCompletion,
		"temperature": &f.temperature, "top_p": &f.topP, "top_k": &f.topK, "stop": &f.stop, "stream": &f.stream,
		"user": &f.user, "safety_identifier": &f.safetyIdentifier, "metadata": &f.metadata, "service_tier": &f.serviceTier,
		"response_format": &f.format, "reasoning_effort": &f.effort, "reasoning": &f.reasoning, "thinking": &f.thinking,
		"tools": &f.tools, "tool_choice": &f.toolChoice, "parallel_tool_calls": &f.parallel,
	}
	for name, v := range root.members() {
		if v.empty() {
			continue // null is how some say nothing
		}
		if field := known[name]; field != nil {
			*field = v
			continue
		}
		switch name {
		case "n":
			if string(v.raw()) != "1" {
				r.refuse("n", "more than one answer cannot be had from this model's provider.")
			}
		case "logprobs":
			if v.isTrue() {
				r.refuse("logprobs", "this model's provider has none.")
			}
		case "top_logprobs":
			if string(v.raw()) != "0" {
				r.refuse("top_logprobs", "this model's provider has none.")
			}
		case "logit_bias":
			if v.isObject() && v.d.nodes[v.i].next > v.i+1 {
				r.refuse("logit_bias", "this model's provider cannot steer single tokens.")
			}
		case "modalities":
			for _, m := range v.elements() {
				if !m.is("text") {
					r.refuse("modalities", "this model's provider answers with text alone.")
				}
			}
		case "audio":
			r.refuse("audio", "this model's provider does not speak.")
		case "web_search_options":
			r.refuse("web_search_options", "the search of another provider is not translated.")
		case "functions", "function_call":
			r.refuse(name, "the old function calling is not translated; use tools.")
		case "stream_options":
			r.streamOptions(v)
		case "presence_penalty", "frequency_penalty":
			if string(v.raw()) != "0" && string(v.raw()) != "0.0" {
				r.drop(name)
			}
		case "store":
			if v.isTrue() {
				r.drop(name)
			}
		default:
			// Hints (seed, prediction, prompt_cache_key, verbosity) and what nobody here knows: the
			// ids and switches of clients and of other gateways.
			r.drop(fieldName(name))
		}
	}
	return f
}

// fieldName is a client's own name of a field, fit for a header.
func fieldName(name string) string {
	const most = 64
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return "(unknown)"
		}
	}
	if name == "" || len(name) > most {
		return "(unknown)"
	}
	return name
}

func (r *request) streamOptions(v value) {
	for name, option := range v.members() {
		if name != "include_usage" && !option.empty() && option.kind() != 'f' {
			r.drop("stream_options." + fieldName(name))
		}
	}
}

// maxTokensForMessages writes the limit, which Anthropic requires.
func (r *request) maxTokensForMessages(f *chatFields, think thinking) {
	limit, name := f.maxCompletion, "max_completion_tokens"
	if !limit.found() {
		limit, name = f.maxTokens, "max_tokens"
	}
	r.key("max_tokens")
	switch {
	case limit.found() && !limit.isNumber():
		r.refuse(name, "a whole number belongs here.")
	case limit.found():
		r.value(limit)
	default:
		n := r.o.MaxTokens
		if n == 0 {
			n = DefaultMaxTokens
		}
		if think.on {
			n += max(thinkingRoom, think.budget)
		}
		r.number(int64(n))
	}
}

// userID names the end user, where Anthropic has a place for it.
func (r *request) userID(f *chatFields) {
	id := f.user
	if !id.isText() {
		id = f.safetyIdentifier
	}
	for name, v := range f.metadata.members() {
		if name == "user_id" && v.isText() && !id.isText() {
			id = v
		} else {
			r.drop("metadata")
		}
	}
	if id.isText() && len(id.inner()) > 0 {
		r.key("metadata")
		r.open('{')
		r.key("user_id")
		r.value(id)
		r.shut('}')
	}
}

func (r *request) serviceTierForMessages(v value) {
	switch {
	case v.is("auto"), v.is("priority"):
		r.word("service_tier", "auto")
	case v.is("default"):
		r.word("service_tier", "standard_only")
	case v.found():
		r.drop("service_tier")
	}
}

func (r *request) stopSequences(stop value) {
	switch {
	case !stop.found():
	case stop.isText():
		r.key("stop_sequences")
		r.open('[')
		r.value(stop)
		r.shut(']')
	case stop.isArray():
		if stop.size() > 0 {
			r.key("stop_sequences")
			r.value(stop)
		}
	default:
		r.refuse("stop", "a string or an array of strings belongs here.")
	}
}

// sampling writes what picks the tokens. With thinking, and to models that came after it,
// Anthropic allows none of it: it is left out rather than let the request fail.
func (r *request) sampling(f *chatFields, think thinking) {
	if f.temperature.found() {
		t, err := strconv.ParseFloat(string(f.temperature.raw()), 64)
		switch {
		case err != nil || t < 0:
			r.refuse("temperature", "a number from 0 to 1 belongs here.")
		case t > 1:
			r.refuse("temperature", "this model's provider takes 0 to 1; what is above has no counterpart there.")
		}
	}
	fixed := think.on || claudeOf(r.modelName(f.model)).atLeast(4, 7)
	for _, s := range []struct {
		name string
		v    value
	}{{"temperature", f.temperature}, {"top_p", f.topP}, {"top_k", f.topK}} {
		switch {
		case !s.v.found():
		case fixed && string(s.v.raw()) != "1":
			r.drop(s.name)
		case !fixed:
			r.key(s.name)
			r.value(s.v)
		}
	}
}

func (r *request) modelName(v value) string {
	if r.o.Model != "" {
		return r.o.Model
	}
	return string(v.text())
}

// outputConfig writes the schema of a structured answer and the effort.
func (r *request) outputConfig(format value, think thinking) {
	var schema value
	switch kind := format.get("type"); {
	case !format.found(), kind.is("text"):
	case kind.is("json_schema"):
		if schema = format.at("json_schema", "schema"); !schema.isObject() {
			r.refuse("response_format.json_schema.schema", "a JSON schema belongs here.")
		}
	case kind.is("json_object"):
		r.refuse("response_format", "this model's provider knows no json_object; use json_schema.")
	default:
		r.refuse("response_format.type", "this model's provider has no counterpart.")
	}
	if !schema.found() && think.effort == "" {
		return
	}
	r.key("output_config")
	r.open('{')
	if think.effort != "" {
		r.word("effort", think.effort)
	}
	if schema.found() {
		r.key("format")
		r.open('{')
		r.word("type", "json_schema")
		r.key("schema")
		r.value(schema)
		r.shut('}')
	}
	r.shut('}')
}

var _ error = (*wire.Error)(nil)
