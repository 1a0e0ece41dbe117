package provider

import (
	"net/http"
	"strings"
	"testing"

	"switchboard/internal/wire"

	"github.com/google/go-cmp/cmp"
)

func TestVendors(t *testing.T) {
	types := map[string]bool{}
	for _, v := range Vendors() {
		if types[v.Type] {
			t.Errorf("type %q is listed twice", v.Type)
		}
		types[v.Type] = true
		if got, ok := VendorOf(v.Type); !ok || got.Type != v.Type {
			t.Errorf("VendorOf(%q) = %q, %v", v.Type, got.Type, ok)
		}
		if scheme := "https://"; v.NoKey {
			scheme = "http://127.0.0.1:"
			if !strings.HasPrefix(v.BaseURL, scheme) {
				t.Errorf("%s: BaseURL = %q, want a local one", v.Type, v.BaseURL)
			}
		} else if v.BaseURL != "" && !strings.HasPrefix(v.BaseURL, scheme) || strings.HasSuffix(v.BaseURL, "/") {
			t.Errorf("%s: BaseURL = %q, want https without a slash at its end", v.Type, v.BaseURL)
		}
		if v.Env == "" || v.Env != strings.ToUpper(v.Env) || len(v.Surfaces) == 0 {
			t.Errorf("%s: Env = %q, Surfaces = %v", v.Type, v.Env, v.Surfaces)
		}
		h := http.Header{}
		v.Authorize(h, "K")
		if len(h) != 1 {
			t.Errorf("%s: Authorize set %v, want exactly one header", v.Type, h)
		}
		if models := CatalogModels(v); len(models) == 0 && !v.OwnModels {
			t.Errorf("%s: no models in the catalog, and they are not its own", v.Type)
		}
	}
	if _, ok := VendorOf("nobody"); ok {
		t.Error("VendorOf(nobody) found one")
	}
}

func TestEveryVendorsAddressAndKey(t *testing.T) {
	all := []wire.Surface{wire.Chat, wire.Responses, wire.Messages, wire.Embeddings}
	tests := []struct {
		kind, url, header, value string
		surfaces                 []wire.Surface
	}{
		{"openai", "https://api.openai.com/v1", "Authorization", "Bearer K", []wire.Surface{wire.Chat, wire.Responses, wire.Embeddings}},
		{"anthropic", "https://api.anthropic.com/v1", "X-Api-Key", "K", []wire.Surface{wire.Messages}},
		{"gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "Authorization", "Bearer K", []wire.Surface{wire.Chat, wire.Embeddings}},
		{"groq", "https://api.groq.com/openai/v1", "Authorization", "Bearer K", []wire.Surface{wire.Chat, wire.Responses}},
		{"xai", "https://api.x.ai/v1", "Authorization", "Bearer K", []wire.Surface{wire.Chat, wire.Responses}},
		{"deepseek", "https://api.deepseek.com/v1", "Authorization", "Bearer K", []wire.Surface{wire.Chat}},
		{"mistral", "https://api.mistral.ai/v1", "Authorization", "Bearer K", []wire.Surface{wire.Chat, wire.Embeddings}},
		{"together", "https://api.together.xyz/v1", "Authorization", "Bearer K", []wire.Surface{wire.Chat, wire.Embeddings}},
		{"fireworks", "https://api.fireworks.ai/inference/v1", "Authorization", "Bearer K", all},
		{"cerebras", "https://api.cerebras.ai/v1", "Authorization", "Bearer K", []wire.Surface{wire.Chat}},
		{"openrouter", "https://openrouter.ai/api/v1", "Authorization", "Bearer K", all},
		{"opencode", "https://opencode.ai/zen/v1", "Authorization", "Bearer K", []wire.Surface{wire.Chat, wire.Responses}},
		{"azure", "", "Api-Key", "K", []wire.Surface{wire.Chat, wire.Responses, wire.Embeddings}},
		{"bedrock", "https://bedrock-runtime.{region}.amazonaws.com/openai/v1", "Authorization", "Bearer K", []wire.Surface{wire.Chat, wire.Responses}},
		{"ollama", "http://127.0.0.1:11434/v1", "Authorization", "Bearer K", all},
		{"vllm", "http://127.0.0.1:8000/v1", "Authorization", "Bearer K", all},
		{"lmstudio", "http://127.0.0.1:1234/v1", "Authorization", "Bearer K", all},
	}
	if len(tests) != len(Vendors()) {
		t.Errorf("%d vendors are checked, want all %d", len(tests), len(Vendors()))
	}
	for _, tt := range tests {
		v, _ := VendorOf(tt.kind)
		h := http.Header{}
		v.Authorize(h, "K")
		if v.BaseURL != tt.url || h.Get(tt.header) != tt.value {
			t.Errorf("%s: %s with %v, want %s with %s: %s", tt.kind, v.BaseURL, h, tt.url, tt.header, tt.value)
		}
		if diff := cmp.Diff(tt.surfaces, v.Surfaces); diff != "" {
			t.Errorf("%s: surfaces (-want +got):\n%s", tt.kind, diff)
		}
	}
}

// The catalog calls the price of a cache write "in cached" and that of a read "out cached".
func TestCatalogPrices(t *testing.T) {
	v, _ := VendorOf("anthropic")
	found := false
	for _, m := range CatalogModels(v) {
		if m.Upstream != m.ID {
			t.Errorf("%s: Upstream = %q", m.ID, m.Upstream)
		}
		if m.Pricing == nil || m.Pricing.CachedInput == nil || m.Pricing.CacheWrite == nil {
			continue
		}
		found = true
		if p := m.Pricing; *p.CachedInput >= *p.Input || *p.CacheWrite <= *p.Input || *p.Input >= *p.Output {
			t.Errorf("%s: read %d < in %d < write %d, out %d", m.ID, *p.CachedInput, *p.Input, *p.CacheWrite, *p.Output)
		}
	}
	if !found {
		t.Error("no model with cache prices")
	}
	for usd, want := range map[string]NanoUSD{"0.1": 100_000_000, "3.75": 3_750_000_000, "0.003625": 3_625_000} {
		if got := catalogRate(usd); got == nil || *got != want {
			t.Errorf("catalogRate(%s) = %v, want %d", usd, got, want)
		}
	}
	if got := catalogRate(""); got != nil {
		t.Errorf("catalogRate of nothing = %d, want unknown", *got)
	}
	if got := CatalogModels(Vendor{}); got != nil {
		t.Errorf("CatalogModels without catalog = %v", got)
	}
}
