package provider

import (
	"net/http"
	"net/url"

	"switchboard/internal/health"
	"switchboard/internal/wire"
)

// azure is Azure OpenAI (learn.microsoft.com/azure/foundry/openai/reference): with an
// api-version a call goes to the deployment's own URL, without one to the v1 API, where the
// deployment is the model. Models are deployments. The first chunk of a stream has no choices
// but prompt_filter_results; a filtered prompt is a 400 content_filter.
func azure() Vendor {
	return Vendor{
		Type:        "azure",
		Env:         "AZURE",
		Surfaces:    []wire.Surface{wire.Chat, wire.Responses, wire.Embeddings},
		Catalog:     "azure",
		Deployments: true,
		Authorize:   func(h http.Header, key string) { h.Set("Api-Key", key) },
		Locate:      locateAzure,
		Hints:       memberHints("prompt_cache_key", wire.Chat, wire.Responses),
		Meanings: []Meaning{
			{Status: 404, Word: "deploymentnotfound", Class: health.ModelNotFound},
			{Status: 404, Says: "resource not found", Class: health.ModelNotFound}, // an api-version without it
			{Status: 400, Word: "operationnotsupported", Class: health.ModelNotFound},
			{Status: 503, Class: health.Overloaded},
		},
	}
}

// locateAzure finds a deployment. Responses have one address for all of them. A client's own
// api-version is not passed on: it is the configuration's.
func locateAzure(p *Provider, call Call) (address, query string) {
	query = withoutVersion(call.Query)
	if p.APIVersion == "" {
		return p.BaseURL + call.Path, query
	}
	version := "api-version=" + url.QueryEscape(p.APIVersion)
	if query != "" {
		version += "&" + query
	}
	if call.Surface == wire.Responses {
		return p.BaseURL + call.Path, version
	}
	return p.BaseURL + "/deployments/" + url.PathEscape(call.Model) + call.Path, version
}

func withoutVersion(query string) string {
	if query == "" {
		return ""
	}
	values, err := url.ParseQuery(query)
	if err != nil || !values.Has("api-version") {
		return query
	}
	values.Del("api-version")
	return values.Encode()
}
