package provider

import (
	"net/http"

	"switchboard/internal/wire"
)

// Not here: anthropic-version. It is the client's own header and passes as it came.
func anthropic() Vendor {
	return Vendor{
		Type:      "anthropic",
		BaseURL:   "https://api.anthropic.com/v1",
		Env:       "ANTHROPIC",
		Version:   "/v1",
		Surfaces:  []wire.Surface{wire.Messages},
		Catalog:   "anthropic",
		Authorize: func(h http.Header, key string) { h.Set("X-Api-Key", key) },
	}
}
