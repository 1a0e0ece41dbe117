package main

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"strings"
)

// Usage of every OpenAI answer: 1000 tokens in, 800 of them cached, 20 out.
func chatUsage() object {
	return object{
		"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020,
		"prompt_tokens_details":     object{"cached_tokens": 800},
		"completion_tokens_details": object{"reasoning_tokens": 5},
	}
}

func responseUsage() object {
	return object{
		"input_tokens": 1000, "output_tokens": 20, "total_tokens": 1020,
		"input_tokens_details":  object{"cached_tokens": 800},
		"output_tokens_details": object{"reasoning_tokens": 5},
	}
}

const weather = `{"city":"Berlin"}`

// wantsTool: there are tools, and the conversation does not end with a tool's result.
func (c *call) wantsTool() bool {
	if len(c.body.Tools) == 0 || len(c.body.Messages) == 0 {
		return false
	}
	last := c.body.Messages[len(c.body.Messages)-1]
	return last.Role == "user" && !strings.Contains(string(last.Content), "tool_result")
}

func (s *server) chat(c *call) {
	if s.refuseChat(c) {
		return
	}
	if c.body.Stream {
		s.chatStream(c)
		return
	}
	answer, finish := object{"role": "assistant", "content": strings.Join(c.pieces(s.name), "")}, "stop"
	if c.wantsTool() {
		answer, finish = object{"role": "assistant", "content": nil, "tool_calls": []object{{
			"id": "call_1", "type": "function", "function": object{"name": "get_weather", "arguments": weather},
		}}}, "tool_calls"
	}
	if asked(c.body.Effort) {
		answer["reasoning_content"] = thought
	}
	writeJSON(c.w, object{
		"id": "chatcmpl-" + s.name, "object": "chat.completion", "created": 1700000000, "model": c.body.Model,
		"system_fingerprint": s.name, "choices": []object{{"index": 0, "message": answer, "finish_reason": finish}}, "usage": chatUsage(),
	})
}

func (s *server) chatStream(c *call) {
	out := c.stream()
	chunk := func(delta object, finish any) object {
		o := object{
			"id": "chatcmpl-" + s.name, "object": "chat.completion.chunk", "created": 1700000000, "model": c.body.Model,
			"system_fingerprint": s.name, "choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}},
		}
		if c.body.StreamOptions.IncludeUsage {
			o["usage"] = nil
		}
		return o
	}
	out.data(chunk(object{"role": "assistant", "content": ""}, nil))
	if asked(c.body.Effort) {
		out.data(chunk(object{"reasoning_content": thought[:8]}, nil))
		out.data(chunk(object{"reasoning_content": thought[8:]}, nil))
	}
	finish := "stop"
	if c.wantsTool() {
		finish = "tool_calls"
		call := func(o object) object { o["index"] = 0; return object{"tool_calls": []object{o}} }
		out.data(chunk(call(object{"id": "call_1", "type": "function", "function": object{"name": "get_weather", "arguments": ""}}), nil))
		for _, part := range []string{weather[:5], weather[5:]} {
			out.data(chunk(call(object{"function": object{"arguments": part}}), nil))
		}
	} else {
		for _, piece := range c.pieces(s.name) {
			out.data(chunk(object{"content": piece}, nil))
		}
	}
	out.data(chunk(object{}, finish))
	if c.body.StreamOptions.IncludeUsage {
		last := chunk(object{}, nil)
		last["choices"], last["usage"] = []object{}, chatUsage()
		out.data(last)
	}
	out.frame("data: [DONE]\n\n")
}

// response answers /v1/responses. What it made can only be continued with the same key.
func (s *server) response(c *call) {
	s.mu.Lock()
	owner, known := s.responses[c.body.Previous]
	id := fmt.Sprintf("resp_%s_%d", s.name, len(s.responses)+1)
	s.responses[id] = c.key
	s.mu.Unlock()
	if c.body.Previous != "" && (!known || owner != c.key) {
		s.fail(c, http.StatusNotFound, "invalid_request_error", "previous_response_not_found: "+c.body.Previous)
		return
	}
	text := strings.Join(c.pieces(s.name), "")
	item := object{
		"id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
		"content": []object{{"type": "output_text", "text": text, "annotations": []any{}}},
	}
	whole := func(status string, output []object, usage any) object {
		return object{
			"id": id, "object": "response", "created_at": 1700000000, "status": status, "model": c.body.Model,
			"output": output, "usage": usage, "previous_response_id": nilIfEmpty(c.body.Previous), "error": nil,
			"parallel_tool_calls": true, "tool_choice": "auto", "tools": []any{}, "metadata": object{}, "instructions": nil, "incomplete_details": nil,
		}
	}
	if !c.body.Stream {
		writeJSON(c.w, whole("completed", []object{item}, responseUsage()))
		return
	}
	out := c.stream()
	number := 0
	event := func(kind string, o object) {
		o["sequence_number"] = number
		number++
		out.event(kind, o)
	}
	part := func(text string) object { return object{"type": "output_text", "text": text, "annotations": []any{}} }
	at := func(o object) object { o["item_id"], o["output_index"], o["content_index"] = "msg_1", 0, 0; return o }
	event("response.created", object{"response": whole("in_progress", []object{}, nil)})
	event("response.in_progress", object{"response": whole("in_progress", []object{}, nil)})
	event("response.output_item.added", object{"output_index": 0, "item": object{"id": "msg_1", "type": "message", "status": "in_progress", "role": "assistant", "content": []any{}}})
	event("response.content_part.added", at(object{"part": part("")}))
	for _, piece := range c.pieces(s.name) {
		event("response.output_text.delta", at(object{"delta": piece, "logprobs": []any{}}))
	}
	event("response.output_text.done", at(object{"text": text, "logprobs": []any{}}))
	event("response.content_part.done", at(object{"part": part(text)}))
	event("response.output_item.done", object{"output_index": 0, "item": item})
	event("response.completed", object{"response": whole("completed", []object{item}, responseUsage())})
}

func nilIfEmpty(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// embeddings answers in the encoding that was asked for: the SDKs ask for base64.
func (s *server) embeddings(c *call) {
	vector := []float32{0.25, -0.5, 1}
	var value any = vector
	if c.body.EncodingFormat == "base64" {
		var raw []byte
		for _, f := range vector {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
		}
		value = base64.StdEncoding.EncodeToString(raw)
	}
	writeJSON(c.w, object{
		"object": "list", "model": c.body.Model, "data": []object{{"object": "embedding", "index": 0, "embedding": value}},
		"usage": object{"prompt_tokens": 1000, "total_tokens": 1000},
	})
}
