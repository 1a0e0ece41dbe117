package provider

import (
	"switchboard/internal/health"
	"switchboard/internal/wire"
)

// xAI: docs.x.ai/developers/cost-tracking (usage.cost_in_usd_ticks is what was billed),
// /developers/advanced-api-usage/prompt-caching (x-grok-conv-id, or prompt_cache_key on
// Responses, leads to the server with the cache), /developers/debugging (a wrong key is a
// 400, no credits a 403). Reasoning is counted beside the completion.
func xAI() Vendor {
	return Vendor{
		Type:        "xai",
		BaseURL:     "https://api.x.ai/v1",
		Env:         "XAI",
		Surfaces:    []wire.Surface{wire.Chat, wire.Responses},
		Catalog:     "xai",
		Authorize:   bearer,
		ReportsCost: true,
		FlatErrors:  true,
		Hints: append(headerHints("X-Grok-Conv-Id", wire.Chat),
			memberHints("prompt_cache_key", wire.Responses)...),
		HintByDefault: true,
		Meanings: []Meaning{
			{Status: 400, Says: "incorrect api key", Class: health.Unauthorized},
			{Status: 403, Says: "credits", Class: health.NoCredit},
			{Status: 429, Says: "used all available credits", Class: health.NoCredit},
		},
	}
}
