package provider

import (
	"net/http"

	"switchboard/internal/wire"
)

// Vendor is what differs between provider types. One file each, listed in Vendors. What is
// left out is what OpenAI does. Its functions and lists are not to be changed.
type Vendor struct {
	Type     string
	BaseURL  string         // default; {region} stands for the configured region. Empty: has to be configured
	Env      string         // OPENAI: OPENAI_API_KEY, OPENAI_API_KEY_2, OPENAI_BASE_URL
	Version  string         // of a base URL from the environment, added when it is not there: "/v1"
	Surfaces []wire.Surface // default
	Catalog  string         // id of the vendor in the embedded catalog
	// Authorize sets the one credential header.
	Authorize func(h http.Header, key string)

	NoKey       bool // needs no key unless one is configured
	OwnModels   bool // no list of models by default; any can be asked for as provider/model
	Deployments bool // models are the operator's deployments and have to be listed

	// Locate is where a call goes; nil: the path after the base URL, with the client's query.
	Locate func(p *Provider, call Call) (address, query string)

	NoStreamOptions bool // refuses stream_options; see Provider.StreamOptions
	NoCountTokens   bool // has anthropic-messages without count_tokens
	WrapsErrors     bool // puts its error objects into an array
	FlatErrors      bool // has the members of an error lie open, without "error" around them
	ThoughtsBeside  bool // total_tokens has thoughts that completion_tokens has not
	ReportsCost     bool // usage has what the request was charged; see Usage.Reported

	Hints         []Hint    // where the provider takes a hint of the session
	HintByDefault bool      // they are sent unless the configuration says otherwise
	Meanings      []Meaning // of errors, where they differ from what Classify makes of them
}

// Call is what a request asks of a provider.
type Call struct {
	Surface wire.Surface
	Path    string // of the operation: /chat/completions
	Query   string // of the client
	Model   string // upstream
}

// Address is the URL of a call and its query.
func (v *Vendor) Address(p *Provider, call Call) (address, query string) {
	if v.Locate == nil {
		return p.BaseURL + call.Path, call.Query
	}
	return v.Locate(p, call)
}
