package provider

import (
	"switchboard/internal/health"
	"switchboard/internal/wire"
)

// deepSeek (api-docs.deepseek.com/quick_start/error_codes, /quick_start/rate_limit): 402 is
// an empty balance, 503 an overload. A busy server keeps a stream open with comments
// (": keep-alive"), a plain answer with empty lines. Cache hits stand beside the totals, as
// prompt_cache_hit_tokens. Not here: its Anthropic endpoint, which is at another address;
// that is a provider of type anthropic.
func deepSeek() Vendor {
	return Vendor{
		Type:      "deepseek",
		BaseURL:   "https://api.deepseek.com/v1",
		Env:       "DEEPSEEK",
		Surfaces:  []wire.Surface{wire.Chat},
		Catalog:   "deepseek",
		Authorize: bearer,
		Meanings:  []Meaning{{Status: 503, Class: health.Overloaded}},
	}
}
