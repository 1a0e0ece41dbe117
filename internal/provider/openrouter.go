package provider

import (
	"switchboard/internal/health"
	"switchboard/internal/wire"
)

// openRouter: openrouter.ai/docs/api/reference/errors-and-debugging (502 and 503 are about
// the model, behind which other hosts stand; a 402 of the in-flight budget passes soon;
// errors after output come as a chunk with finish_reason error), /docs/use-cases/usage-accounting
// (usage.cost is what was charged; with the owner's own key, is_byok, the host's price comes
// on top), /docs/guides/best-practices/prompt-caching (session_id keeps a session on one
// host). Keeps streams open with ": OPENROUTER PROCESSING".
func openRouter() Vendor {
	return Vendor{
		Type:          "openrouter",
		BaseURL:       "https://openrouter.ai/api/v1",
		Env:           "OPENROUTER",
		Surfaces:      []wire.Surface{wire.Chat, wire.Responses, wire.Messages, wire.Embeddings},
		Catalog:       "openrouter",
		Authorize:     bearer,
		NoCountTokens: true,
		ReportsCost:   true,
		Hints:         memberHints("session_id", wire.Chat, wire.Responses, wire.Messages),
		HintByDefault: true,
		Meanings: []Meaning{
			{Status: 402, Word: "openrouter_in_flight_budget", Class: health.RateLimited},
			{Status: 403, Says: "limit exceeded", Class: health.NoCredit}, // of the key
			{Status: 502, Class: health.Overloaded},
			{Status: 503, Class: health.Overloaded},
		},
	}
}
