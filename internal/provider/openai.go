package provider

import (
	"net/http"

	"switchboard/internal/wire"
)

// openAI takes prompt_cache_key (developers.openai.com/api/docs/guides/prompt-caching), which
// is only sent when the configuration says so: caching works without it, and it bounds how
// many requests a minute share a cache.
func openAI() Vendor {
	return Vendor{
		Type:      "openai",
		BaseURL:   "https://api.openai.com/v1",
		Env:       "OPENAI",
		Surfaces:  []wire.Surface{wire.Chat, wire.Responses, wire.Embeddings},
		Catalog:   "openai",
		Authorize: bearer,
		Hints:     memberHints("prompt_cache_key", wire.Chat, wire.Responses),
	}
}

func bearer(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }
