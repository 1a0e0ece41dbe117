package provider

import (
	"time"

	"switchboard/internal/health"
	"switchboard/internal/wire"
)

// tooLarge is how long a key is left alone for a request that is larger than its limit for a
// minute: hardly at all, as smaller ones fit.
const tooLarge = time.Second

// groq (console.groq.com/docs/errors, /docs/rate-limits, /docs/flex-processing): 498 is a
// full flex tier, 413 with rate_limit_exceeded a request above the tokens of a minute. A
// stream has its usage in x_groq of the last content chunk, asked for or not
// (github.com/vercel/ai/issues/1651).
func groq() Vendor {
	return Vendor{
		Type:      "groq",
		BaseURL:   "https://api.groq.com/openai/v1",
		Env:       "GROQ",
		Surfaces:  []wire.Surface{wire.Chat, wire.Responses},
		Catalog:   "groq",
		Authorize: bearer,
		Meanings: []Meaning{
			{Status: 498, Class: health.Overloaded},
			{Word: "capacity_exceeded", Class: health.Overloaded},
			{Status: 503, Class: health.Overloaded}, // "… is currently over capacity"
			{Status: 413, Word: "rate_limit_exceeded", Class: health.RateLimited, Retry: tooLarge},
			{Status: 400, Word: "organization_restricted", Class: health.Unauthorized},
		},
	}
}

// readGroq takes the member x_groq of a chunk; true: it reports an error.
func (s *Stream) readGroq(c *cursor) (failed bool) {
	if !c.open('{') {
		return false
	}
	for {
		key, ok := c.key()
		if !ok {
			return failed
		}
		switch string(key) {
		case "usage":
			s.takeUsage(c)
		case "error":
			failed = c.filled() || failed
		default:
			c.skip()
		}
	}
}
