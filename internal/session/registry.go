package session

import (
	"encoding/json"
	"strings"

	"switchboard/internal/wire"
)

// builtinHeaders are the headers that known clients and gateways send, in order (DESIGN 4).
func builtinHeaders() []string {
	return []string{
		"X-Session-Id", "X-Claude-Code-Session-Id", "Session-Id", "Session_id",
		"X-Litellm-Session-Id", "Helicone-Session-Id", "Agent-Session-Id",
		"X-Opencode-Session", "X-Session-Affinity", "X-Bf-Session-Id",
	}
}

// credentialHeaders never name a session: the id is written into events and rows.
func credentialHeaders() []string {
	return []string{
		"Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "X-Api-Key", "Api-Key",
		"X-Goog-Api-Key", "X-Auth-Token", "X-Access-Token", "X-Amz-Security-Token",
	}
}

// bodySource is a body field that may name the session.
type bodySource struct {
	source    string
	transform string
	value     func(*wire.Fields) string
}

// bodySources are the body fields, in order. Fields that are not strings read as empty.
func bodySources() [6]bodySource {
	return [6]bodySource{
		{"body:metadata.user_id", SessionUUID, func(f *wire.Fields) string { return f.MetadataUserID }},
		{"body:session_id", "", func(f *wire.Fields) string { return f.SessionID }},
		{"body:litellm_session_id", "", func(f *wire.Fields) string { return f.LitellmSessionID }},
		{"body:prompt_cache_key", "", func(f *wire.Fields) string { return f.PromptCacheKey }},
		{"body:conversation", "", func(f *wire.Fields) string { return f.Conversation }},
		{"body:conversation.id", "", func(f *wire.Fields) string { return f.ConversationID }},
	}
}

// sessionUUID finds the session in Claude Code's user id: a JSON document's session_id, or
// the UUID behind the last "_session_" of the legacy form. Anything else has none.
func sessionUUID(value string) string {
	value = strings.TrimSpace(value)
	if strings.HasPrefix(value, "{") {
		var document map[string]json.RawMessage
		var id string
		if json.Unmarshal([]byte(value), &document) != nil || json.Unmarshal(document["session_id"], &id) != nil {
			return ""
		}
		return id
	}
	const mark = "_session_"
	at := strings.LastIndex(value, mark)
	if at < 0 || !isUUID(value[at+len(mark):]) {
		return ""
	}
	return value[at+len(mark):]
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case c < '0' || c > '9' && c < 'A' || c > 'F' && c < 'a' || c > 'f':
			return false
		}
	}
	return true
}
