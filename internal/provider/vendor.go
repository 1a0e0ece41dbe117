package provider

import (
	"net/http"

	"switchboard/internal/wire"
)

// Vendor is what differs between provider types. One file each, listed in Vendors.
type Vendor struct {
	Type     string
	BaseURL  string         // default
	Env      string         // OPENAI: OPENAI_API_KEY, OPENAI_API_KEY_2, OPENAI_BASE_URL
	Surfaces []wire.Surface // default
	Catalog  string         // id of the vendor in the embedded catalog
	// Authorize sets the one credential header.
	Authorize func(h http.Header, key string)
}
