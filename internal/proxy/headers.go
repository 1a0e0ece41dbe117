package proxy

import (
	"net/http"
	"slices"
	"strings"
)

// requestHeader tells whether a client's header may go upstream (DESIGN 7). Everything
// else stays here: credentials, cookies, session ids, what names an account of the client.
func requestHeader(name string) bool {
	switch name {
	case "Accept", "Content-Type", "User-Agent", "Idempotency-Key",
		"Anthropic-Version", "Anthropic-Beta", "Anthropic-Dangerous-Direct-Browser-Access",
		"Openai-Beta", "X-App":
		return true
	}
	return strings.HasPrefix(name, "X-Stainless-")
}

func copyRequestHeaders(to, from http.Header) {
	for name, values := range from {
		if requestHeader(name) && sendable(name) && !slices.ContainsFunc(values, hasControl) {
			to[name] = values
		}
	}
	if to["Content-Type"] == nil {
		to["Content-Type"] = []string{"application/json"}
	}
	if to["User-Agent"] == nil {
		to["User-Agent"] = []string{"switchboard"}
	}
}

// sendable tells whether a name that requestHeader lets pass is one. On a socket others are
// refused before they get here; in a carrier's event they may stand.
func sendable(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// hasControl tells whether net/http would refuse to send a value.
func hasControl(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return true
		}
	}
	return false
}

// responseHeader tells whether an upstream's header may reach the client. Headers that
// name the account, set cookies or decide about origins do not.
func responseHeader(name string) bool {
	switch name {
	case "Content-Type", "Content-Encoding", "Retry-After", "Retry-After-Ms", "X-Should-Retry",
		"Request-Id", "Openai-Processing-Ms", "Openai-Version", "Openai-Model":
		return true
	}
	return strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, "Anthropic-Ratelimit-")
}

// CopyHeaders copies what of an upstream's answer may reach the client. A header that
// shows a part of key, which may be empty, may not.
func CopyHeaders(to, from http.Header, key string) {
	for name, values := range from {
		if responseHeader(name) && !slices.ContainsFunc(values, func(v string) bool { return shows(v, key) }) {
			to[name] = values
		}
	}
}

// keyRun is how many characters of a key are too many to show.
const keyRun = 8

func shows(value, key string) bool {
	for i := 0; i+keyRun <= len(value) && len(key) >= keyRun; i++ {
		if strings.Contains(key, value[i:i+keyRun]) {
			return true
		}
	}
	return false
}
