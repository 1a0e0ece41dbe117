package session

import (
	"fmt"
	"net/http"
	"strings"

	"switchboard/internal/wire"
)

// headerSource is a header that may name the session.
type headerSource struct {
	name      string // canonical
	source    string
	transform func(string) (string, bool) // nil: the value itself
}

// fieldSource is a body field that may name the session; value is "" when it is absent.
type fieldSource struct {
	source    string
	value     func(*wire.Fields) string
	transform func(string) (string, bool)
}

// builtinHeaders are what coding agents and other gateways send, most deliberate first.
func builtinHeaders() []string {
	return []string{
		"X-Session-Id", "X-Claude-Code-Session-Id", "Session-Id", "Session_id",
		"X-Litellm-Session-Id", "Helicone-Session-Id", "Agent-Session-Id",
		"X-Opencode-Session", "X-Session-Affinity", "X-Bf-Session-Id",
	}
}

// fieldSources are the body fields in order. To add one, add its row here and its member to
// wire.Fields.
func fieldSources() []fieldSource {
	return []fieldSource{
		{"body:metadata.user_id", func(f *wire.Fields) string { return f.MetadataUserID }, sessionUUID},
		{"body:session_id", func(f *wire.Fields) string { return f.SessionID }, nil},
		{"body:litellm_session_id", func(f *wire.Fields) string { return f.LitellmSessionID }, nil},
		{"body:prompt_cache_key", func(f *wire.Fields) string { return f.PromptCacheKey }, nil},
		{"body:conversation", func(f *wire.Fields) string { return f.Conversation }, nil},
		{"body:conversation.id", func(f *wire.Fields) string { return f.ConversationID }, nil},
	}
}

// credentialHeaders must never name a session: ids stand in rows, events and logs.
func credentialHeaders() []string {
	return []string{
		"Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "X-Api-Key", "Api-Key",
		"X-Goog-Api-Key", "X-Auth-Token", "X-Access-Token", "X-Amz-Security-Token",
	}
}

// headerSources puts the configured headers before the built-in ones. A configured header
// replaces the built-in one of its name, or its transform could be got around.
func headerSources(settings Settings, clientKeyHeaders []string) ([]headerSource, error) {
	secret := make(map[string]bool)
	for _, name := range append(credentialHeaders(), clientKeyHeaders...) {
		secret[fold(name)] = true
	}
	var sources []headerSource
	taken := make(map[string]bool)
	for _, rule := range settings.Headers {
		name := http.CanonicalHeaderKey(strings.TrimSpace(rule.Header))
		if !isToken(name) {
			return nil, fmt.Errorf("session header %q is not a valid header name", rule.Header)
		}
		if secret[fold(name)] {
			return nil, fmt.Errorf("session header %q carries a credential, which must not be stored as a session id", rule.Header)
		}
		source := headerSource{name: name, source: "header:" + strings.ToLower(name)}
		switch rule.Transform {
		case "":
		case SessionUUID:
			source.transform = sessionUUID
		default:
			return nil, fmt.Errorf("session header %q: unknown transform %q; the only one is %q", rule.Header, rule.Transform, SessionUUID)
		}
		taken[name] = true
		sources = append(sources, source)
	}
	if settings.BuiltinRules {
		for _, name := range builtinHeaders() {
			if !taken[name] && !secret[fold(name)] {
				sources = append(sources, headerSource{name: name, source: "header:" + strings.ToLower(name)})
			}
		}
	}
	return sources, nil
}

// fold makes names equal that some carriers treat as one: without case, and with - for _.
func fold(name string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-")
}

// isToken tells whether name can be a header's (RFC 9110, 5.6.2).
func isToken(name string) bool {
	for _, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return name != ""
}
