package main

import "strings"

// Usage of every Anthropic answer: 100 fresh tokens, 800 read from the cache, 100 written
// to it, 20 out. Of the stream's message_start the output is a first count only.
func messageUsage(output int) object {
	return object{
		"input_tokens": 100, "cache_read_input_tokens": 800, "cache_creation_input_tokens": 100,
		"cache_creation": object{"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 0},
		"output_tokens":  output, "service_tier": "standard",
	}
}

func (s *server) countTokens(c *call) { writeJSON(c.w, object{"input_tokens": 1000}) }

func (s *server) messages(c *call) {
	if s.refuseMessages(c) {
		return
	}
	block, stop := object{"type": "text", "text": strings.Join(c.pieces(s.name), "")}, "end_turn"
	if c.wantsTool() {
		block, stop = object{"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": object{"city": "Berlin"}}, "tool_use"
	}
	content := []object{block}
	if asked(c.body.Thinking) {
		content = []object{thinkingBlock(), block}
	}
	message := object{
		"id": "msg_" + s.name, "type": "message", "role": "assistant", "model": c.body.Model,
		"content": content, "stop_reason": stop, "stop_sequence": nil, "usage": messageUsage(20),
	}
	if !c.body.Stream {
		writeJSON(c.w, message)
		return
	}
	message["content"], message["stop_reason"], message["usage"] = []object{}, nil, messageUsage(1)
	out := c.stream()
	out.event("message_start", object{"message": message})
	out.event("ping", object{})
	var deltas []object
	if stop == "tool_use" {
		block = object{"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": object{}}
		for _, part := range []string{"", weather[:5], weather[5:]} {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": part})
		}
	} else {
		block = object{"type": "text", "text": ""}
		for _, piece := range c.pieces(s.name) {
			deltas = append(deltas, object{"type": "text_delta", "text": piece})
		}
	}
	index := 0
	if asked(c.body.Thinking) {
		out.event("content_block_start", object{"index": index, "content_block": object{"type": "thinking", "thinking": "", "signature": ""}})
		for _, delta := range []object{{"type": "thinking_delta", "thinking": thought[:8]}, {"type": "thinking_delta", "thinking": thought[8:]}, {"type": "signature_delta", "signature": signature}} {
			out.event("content_block_delta", object{"index": index, "delta": delta})
		}
		out.event("content_block_stop", object{"index": index})
		index++
	}
	out.event("content_block_start", object{"index": index, "content_block": block})
	for _, delta := range deltas {
		out.event("content_block_delta", object{"index": index, "delta": delta})
	}
	out.event("content_block_stop", object{"index": index})
	out.event("message_delta", object{"delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": 20}})
	out.event("message_stop", object{})
}
