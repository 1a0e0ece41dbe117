package main

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// What the fakes think when they are asked to, and how Anthropic's signs it.
const (
	thought   = "I ponder \"Größe\"."
	signature = "EqQBCkYIBRgCKkBfake/+signature=="
)

func thinkingBlock() object {
	return object{"type": "thinking", "thinking": thought, "signature": signature}
}

// asked tells whether a member is there and not null.
func asked(member json.RawMessage) bool {
	return len(member) > 0 && !bytes.Equal(member, []byte("null"))
}

// refuseMessages is as strict as Anthropic about what translations get wrong: the limit, the
// roles, thinking that comes back, results behind their calls.
func (s *server) refuseMessages(c *call) bool {
	why := ""
	if !asked(c.body.MaxTokens) {
		why = "max_tokens: Field required"
	}
	calls := map[string]bool{}
	for _, m := range c.body.Messages {
		var blocks []struct {
			Type, Thinking, Signature, ID, Text string
			ToolUseID                           string `json:"tool_use_id"`
			Source                              struct{ Type, Data, URL string }
		}
		switch {
		case m.Role != "user" && m.Role != "assistant":
			why = "messages: Unexpected role " + m.Role
		case json.Unmarshal(m.Content, &blocks) != nil:
			continue // a string
		}
		for _, b := range blocks {
			switch {
			case b.Type == "thinking" && (b.Signature != signature || b.Thinking != thought):
				why = "messages: Invalid `signature` in `thinking` block"
			case b.Type == "text" && b.Text == "":
				why = "messages: text content blocks must be non-empty"
			case b.Type == "tool_use":
				calls[b.ID] = true
			case b.Type == "tool_result" && !calls[b.ToolUseID]:
				why = "messages: unexpected `tool_use_id` found in `tool_result` blocks: " + b.ToolUseID
			case b.Type == "image" && b.Source.Data == "" && b.Source.URL == "":
				why = "messages: image without source"
			}
		}
	}
	if why != "" {
		s.fail(c, http.StatusBadRequest, "invalid_request_error", why)
	}
	return why != ""
}

// refuseChat is as strict as OpenAI about members of messages that it does not know.
func (s *server) refuseChat(c *call) bool {
	why := ""
	for _, m := range c.body.Messages {
		for name := range m.members {
			switch name {
			case "role", "content", "name", "tool_calls", "tool_call_id", "refusal", "audio", "function_call", "annotations":
			default:
				why = "Unrecognized request argument supplied: messages." + name
			}
		}
	}
	if why != "" {
		s.fail(c, http.StatusBadRequest, "invalid_request_error", why)
	}
	return why != ""
}

// UnmarshalJSON keeps the members' names beside what is read of them.
func (m *message) UnmarshalJSON(text []byte) error {
	type plain message
	if err := json.Unmarshal(text, (*plain)(m)); err != nil {
		return err
	}
	return json.Unmarshal(text, &m.members)
}
