package provider

import (
	"switchboard/internal/wire"
)

// local is a server on the operator's own machine. It needs no key, and what it serves is
// what has been loaded.
func local(name, address, env string, meanings ...Meaning) Vendor {
	return Vendor{
		Type:      name,
		BaseURL:   address,
		Env:       env,
		Version:   "/v1",
		Surfaces:  []wire.Surface{wire.Chat, wire.Responses, wire.Messages, wire.Embeddings},
		OwnModels: true,
		NoKey:     true,
		Authorize: bearer,
		Meanings:  meanings,
	}
}
