package provider

import (
	"net/http"

	"switchboard/internal/wire"
)

func openAI() Vendor {
	return Vendor{
		Type:      "openai",
		BaseURL:   "https://api.openai.com/v1",
		Env:       "OPENAI",
		Surfaces:  []wire.Surface{wire.Chat, wire.Responses, wire.Embeddings},
		Catalog:   "openai",
		Authorize: bearer,
	}
}

func bearer(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }
