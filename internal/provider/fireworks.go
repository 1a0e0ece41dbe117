package provider

import (
	"switchboard/internal/health"
	"switchboard/internal/wire"
)

// fireworks: docs.fireworks.ai/guides/inference-error-codes (412 is a suspended account),
// /guides/prompt-caching (x-session-affinity leads to the replica with the cache),
// /tools-sdks/anthropic-compatibility (messages, with the same bearer key). Usage comes on
// the last content chunk, asked for or not.
func fireworks() Vendor {
	surfaces := []wire.Surface{wire.Chat, wire.Responses, wire.Messages, wire.Embeddings}
	return Vendor{
		Type:          "fireworks",
		BaseURL:       "https://api.fireworks.ai/inference/v1",
		Env:           "FIREWORKS",
		Surfaces:      surfaces,
		Catalog:       "fireworks",
		Authorize:     bearer,
		NoCountTokens: true,
		Hints:         headerHints("X-Session-Affinity", wire.Chat, wire.Responses, wire.Messages),
		HintByDefault: true,
		Meanings: []Meaning{
			{Status: 412, Says: "suspended", Class: health.NoCredit},
			{Status: 412, Says: "account", Class: health.NoCredit},
			{Status: 412, Class: health.ModelNotFound}, // a LoRA model that does not load
			{Status: 503, Class: health.Overloaded},
		},
	}
}
