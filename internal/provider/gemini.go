package provider

import (
	"switchboard/internal/health"
	"switchboard/internal/wire"
)

// gemini is Google's API for OpenAI's clients (ai.google.dev/gemini-api/docs/openai). Its
// errors come in an array, as google.rpc.Status with RetryInfo; a bad key is a 400
// (ai.google.dev/gemini-api/docs/troubleshooting). Of a model that thinks, completion_tokens
// is the answer alone while total_tokens counts the thoughts, which are billed as output.
func gemini() Vendor {
	return Vendor{
		Type:           "gemini",
		BaseURL:        "https://generativelanguage.googleapis.com/v1beta/openai",
		Env:            "GEMINI",
		Surfaces:       []wire.Surface{wire.Chat, wire.Embeddings},
		Catalog:        "gemini",
		Authorize:      bearer,
		WrapsErrors:    true,
		ThoughtsBeside: true,
		Meanings: []Meaning{
			{Status: 400, Says: "api key not valid", Class: health.Unauthorized},
			{Status: 400, Says: "api key expired", Class: health.Unauthorized},
			{Status: 400, Says: "user location is not supported", Class: health.ModelNotFound},
			{Status: 503, Class: health.Overloaded}, // of a model: "The model is overloaded"
		},
	}
}
