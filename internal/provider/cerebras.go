package provider

import (
	"switchboard/internal/health"
	"switchboard/internal/wire"
)

// cerebras (inference-docs.cerebras.ai/support/error, /support/rate-limits): limits per
// minute, hour and day with a header each; a 429 queue_exceeded is high traffic at the model
// and no limit of the key. Usage comes on the last content chunk.
func cerebras() Vendor {
	return Vendor{
		Type:       "cerebras",
		BaseURL:    "https://api.cerebras.ai/v1",
		Env:        "CEREBRAS",
		Surfaces:   []wire.Surface{wire.Chat},
		Catalog:    "cerebras",
		Authorize:  bearer,
		FlatErrors: true,
		Meanings: []Meaning{
			{Word: "queue_exceeded", Class: health.Overloaded},
			{Status: 429, Says: "experiencing high traffic", Class: health.Overloaded},
			{Status: 503, Class: health.Overloaded},
		},
	}
}
