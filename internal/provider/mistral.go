package provider

import (
	"switchboard/internal/health"
	"switchboard/internal/wire"
)

// mistral (docs.mistral.ai/resources/error-glossary): stream_options.include_usage is a 422
// (github.com/openai/openai-agents-python/issues/442), and usage comes on the last content
// chunk without it. A 429 service_tier_capacity_exceeded is the model's, not the key's.
func mistral() Vendor {
	return Vendor{
		Type:            "mistral",
		BaseURL:         "https://api.mistral.ai/v1",
		Env:             "MISTRAL",
		Surfaces:        []wire.Surface{wire.Chat, wire.Embeddings},
		OwnModels:       true,
		Authorize:       bearer,
		NoStreamOptions: true,
		FlatErrors:      true,
		Meanings: []Meaning{
			{Word: "service_tier_capacity_exceeded", Class: health.Overloaded},
			{Status: 400, Says: "invalid model", Class: health.ModelNotFound},
			{Status: 503, Class: health.Overloaded},
		},
	}
}
