package provider

import (
	"regexp"
	"strings"
	"testing"

	"switchboard/internal/wire"
)

func TestAddress(t *testing.T) {
	azureDated := &Provider{Type: "azure", BaseURL: "https://r.openai.azure.com/openai", APIVersion: "2024-10-21"}
	azureV1 := &Provider{Type: "azure", BaseURL: "https://r.openai.azure.com/openai/v1"}
	groq := &Provider{Type: "groq", BaseURL: "https://api.groq.com/openai/v1"}
	tests := []struct {
		p              *Provider
		call           Call
		address, query string
	}{
		{groq, Call{wire.Chat, "/chat/completions", "a=b", "m"}, "https://api.groq.com/openai/v1/chat/completions", "a=b"},
		{azureDated, Call{wire.Chat, "/chat/completions", "", "dep"}, "https://r.openai.azure.com/openai/deployments/dep/chat/completions", "api-version=2024-10-21"},
		{azureDated, Call{wire.Embeddings, "/embeddings", "", "dep"}, "https://r.openai.azure.com/openai/deployments/dep/embeddings", "api-version=2024-10-21"},
		{azureDated, Call{wire.Responses, "/responses", "", "dep"}, "https://r.openai.azure.com/openai/responses", "api-version=2024-10-21"},
		{azureDated, Call{wire.Chat, "/chat/completions", "api-version=2023-05-15", "dep"}, "https://r.openai.azure.com/openai/deployments/dep/chat/completions", "api-version=2024-10-21"},
		{azureDated, Call{wire.Chat, "/chat/completions", "x=1&api-version=2", "../a b/c?d"}, "https://r.openai.azure.com/openai/deployments/..%2Fa%20b%2Fc%3Fd/chat/completions", "api-version=2024-10-21&x=1"},
		{azureV1, Call{wire.Chat, "/chat/completions", "", "dep"}, "https://r.openai.azure.com/openai/v1/chat/completions", ""},
		{azureV1, Call{wire.Responses, "/responses", "api-version=preview", "dep"}, "https://r.openai.azure.com/openai/v1/responses", ""},
	}
	for _, tt := range tests {
		v, _ := VendorOf(tt.p.Type)
		if address, query := v.Address(tt.p, tt.call); address != tt.address || query != tt.query {
			t.Errorf("Address(%s, %v) = %s, %s, want %s, %s", tt.p.BaseURL, tt.call, address, query, tt.address, tt.query)
		}
	}
}

// A hint is the same at every turn, another one for another session or key, and shows
// nothing of either.
func TestSessionHint(t *testing.T) {
	a, b := Key{Text: "sk-a-AAAABBBB"}, Key{Text: "sk-b-CCCCDDDD"}
	hint := a.SessionHint("session-of-the-client")
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(hint) || hint != a.SessionHint("session-of-the-client") {
		t.Errorf("SessionHint = %q, want 32 hex digits, always the same", hint)
	}
	for _, other := range []string{b.SessionHint("session-of-the-client"), a.SessionHint("session-of-the-clienu"), KeyPrint(a.Text)} {
		if other == hint || strings.HasPrefix(hint, other) {
			t.Errorf("SessionHint = %q, which something else has too", hint)
		}
	}
	if a.SessionHint("") != "" || (Key{}).SessionHint("s") != "" {
		t.Error("SessionHint without a session or key is not empty")
	}
}

func TestHintsOfVendors(t *testing.T) {
	tests := []struct {
		vendor  string
		surface wire.Surface
		want    Hint
		preset  bool
	}{
		{"openai", wire.Chat, Hint{wire.Chat, "", "prompt_cache_key"}, false},
		{"openai", wire.Responses, Hint{wire.Responses, "", "prompt_cache_key"}, false},
		{"openai", wire.Embeddings, Hint{}, false},
		{"azure", wire.Chat, Hint{wire.Chat, "", "prompt_cache_key"}, false},
		{"openrouter", wire.Chat, Hint{wire.Chat, "", "session_id"}, true},
		{"openrouter", wire.Messages, Hint{wire.Messages, "", "session_id"}, true},
		{"xai", wire.Chat, Hint{wire.Chat, "X-Grok-Conv-Id", ""}, true},
		{"xai", wire.Responses, Hint{wire.Responses, "", "prompt_cache_key"}, true},
		{"fireworks", wire.Chat, Hint{wire.Chat, "X-Session-Affinity", ""}, true},
		{"opencode", wire.Chat, Hint{wire.Chat, "X-Opencode-Session", ""}, true},
		{"anthropic", wire.Messages, Hint{}, false},
		{"groq", wire.Chat, Hint{}, false},
		{"ollama", wire.Chat, Hint{}, false},
	}
	for _, tt := range tests {
		v, _ := VendorOf(tt.vendor)
		if got, ok := v.HintFor(tt.surface); got != tt.want || ok != (tt.want != Hint{}) || v.HintByDefault != tt.preset {
			t.Errorf("%s: HintFor(%s) = %v, %v, by default %v, want %v, %v", tt.vendor, tt.surface, got, ok, v.HintByDefault, tt.want, tt.preset)
		}
	}
}
