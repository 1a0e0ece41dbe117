package provider

import (
	"time"

	"switchboard/internal/health"
	"switchboard/internal/wire"
)

// bedrock is Amazon Bedrock's API for OpenAI's clients, with a Bedrock API key
// (docs.aws.amazon.com/bedrock/latest/userguide/inference-chat-completions.html,
// inference-responses-api.html; errors: troubleshooting-api-error-codes.html, named in
// x-amzn-ErrorType as well). The region is in the address; a base URL of
// https://bedrock-mantle.REGION.api.aws/v1 is the other endpoint. The catalog lists models of
// the Converse API, which this one does not serve, so that models are the operator's own.
func bedrock() Vendor {
	return Vendor{
		Type:       "bedrock",
		BaseURL:    "https://bedrock-runtime.{region}.amazonaws.com/openai/v1",
		Env:        "BEDROCK",
		Surfaces:   []wire.Surface{wire.Chat, wire.Responses},
		Catalog:    "bedrock",
		OwnModels:  true,
		Authorize:  bearer,
		FlatErrors: true,
		Meanings: []Meaning{
			{Word: "modelnotreadyexception", Class: health.Overloaded},
			{Word: "throttlingexception", Class: health.RateLimited},
			{Word: "servicequotaexceededexception", Class: health.RateLimited, Retry: time.Minute},
			{Word: "serviceunavailableexception", Class: health.Overloaded},
			{Word: "modelerrorexception", Class: health.ServerError},
			{Word: "resourcenotfoundexception", Class: health.ModelNotFound},
			{Status: 403, Says: "access to the model", Class: health.ModelNotFound},
			{Status: 400, Says: "model identifier is invalid", Class: health.ModelNotFound},
			{Status: 400, Says: "on-demand throughput", Class: health.ModelNotFound},
			{Status: 400, Says: "supported on this route", Class: health.ModelNotFound},
			{Status: 503, Class: health.Overloaded},
		},
	}
}
