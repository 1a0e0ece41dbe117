package provider

import (
	"switchboard/internal/health"
	"switchboard/internal/wire"
)

// together (docs.together.ai/docs/error-codes): 402 is the monthly limit, 503 an overloaded
// engine, and a 403 may be a prompt that is too long. Usage comes on the last content chunk,
// asked for or not.
func together() Vendor {
	return Vendor{
		Type:      "together",
		BaseURL:   "https://api.together.xyz/v1",
		Env:       "TOGETHER",
		Surfaces:  []wire.Surface{wire.Chat, wire.Embeddings},
		OwnModels: true,
		Authorize: bearer,
		Meanings: []Meaning{
			{Word: "credit_limit", Class: health.NoCredit},
			{Says: "credit limit exceeded", Class: health.NoCredit},
			{Status: 403, Says: "max_tokens", Class: health.Request},
			{Status: 403, Says: "max_new_tokens", Class: health.Request},
			{Status: 403, Says: "token count", Class: health.Request},
			{Status: 503, Class: health.Overloaded},
		},
	}
}
