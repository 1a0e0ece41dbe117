package provider

// NanoUSD is money: a billionth of a US dollar.
type NanoUSD = int64

// Pricing is what a model's tokens cost, in nano-USD per million tokens (1 USD per million
// is 1e9). A nil rate falls back as its comment says.
type Pricing struct {
	Rates
	// ServiceTiers are rates of other tiers than the standard one ("default", "standard",
	// "auto", ""), by the name in the response. A tier that is not here has no known price.
	ServiceTiers map[string]Tier
	// Above are rates for prompts of more than that many tokens (all parts together); the
	// highest threshold that is exceeded decides.
	Above []AboveTier // ascending by Tokens
}

// Rates are prices per million tokens, in nano-USD.
type Rates struct {
	Input        *NanoUSD // nil: unknown price
	CachedInput  *NanoUSD // nil: Input
	CacheWrite   *NanoUSD // 5 minutes; nil: Input
	CacheWrite1h *NanoUSD // nil: CacheWrite
	Output       *NanoUSD // nil: unknown price (embeddings: not needed when there is no output)
	AudioInput   *NanoUSD // nil: Input
	AudioOutput  *NanoUSD // nil: Output
}

// Tier is a service tier: the standard rates times Numerator/Denominator, which are exact
// (0.5 is 1/2), or Rates of its own where set.
type Tier struct {
	Numerator, Denominator int64
	Rates                  Rates
}

// AboveTier replaces the rates it sets for prompts of more than Tokens tokens.
type AboveTier struct {
	Tokens int64
	Rates  Rates
}

// Usage is what a request consumed, in tokens, normalised over vendors (DESIGN 7). Parts
// are included in their totals.
type Usage struct {
	Input        int64 // all prompt tokens
	CachedInput  int64 // read from the cache
	CacheWrite   int64 // written to the cache, 5 min and 1 h together
	CacheWrite1h int64 // of which 1 h
	Output       int64
	Reasoning    int64
	AudioInput   int64
	AudioOutput  int64
	ServiceTier  string // the tier that served; empty is the standard one
	Quality      string // record.UsageExact, UsagePartial, UsageUnknown
	Reported     Charge // of a vendor that says what it charged
}

// Cost is the price of a usage in nano-USD, rounded half up once per part sum.
type Cost struct {
	Input, Output NanoUSD
}
