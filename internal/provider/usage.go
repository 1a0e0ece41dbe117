package provider

import "switchboard/internal/wire"

// Qualities of usage; the same words as in the routing event.
const (
	usageExact   = "exact"
	usagePartial = "partial"
	usageUnknown = "unknown"
)

// field is one count of a vendor's usage object.
type field int

const (
	fInput field = iota
	fOutput
	fTotal
	fCached     // part of the input, OpenAI's spelling
	fCachedFlat // the same beside the totals: DeepSeek, Moonshot
	fCacheWrite // part of the input, OpenRouter
	fReasoning
	fAudioIn
	fAudioOut
	fCacheRead   // beside the input, Anthropic
	fCacheCreate // beside the input, Anthropic
	fCreate5m    // part of fCacheCreate
	fCreate1h    // part of fCacheCreate
	fieldCount
)

// tokens are the counts of a usage object as the vendor wrote them.
type tokens struct {
	n   [fieldCount]int64
	set uint16 // bit per field: a valid number was there
	bad uint16 // bit per field: something else was there
	charge
}

func (t *tokens) has(f field) bool { return t.set&(1<<f) != 0 }

func (t *tokens) take(c *cursor, f field) {
	n, present, valid := c.count()
	switch {
	case !present:
	case valid:
		t.n[f], t.set, t.bad = n, t.set|1<<f, t.bad&^(1<<f)
	default:
		t.bad |= 1 << f
	}
}

// read takes a usage object, in any vendor's spelling, over what is already there, and
// returns the service tier if it names one.
func (t *tokens) read(c *cursor) (tier []byte) {
	if !c.open('{') {
		return nil
	}
	for {
		key, ok := c.key()
		if !ok {
			return tier
		}
		switch string(key) {
		case "prompt_tokens", "input_tokens":
			t.take(c, fInput)
		case "completion_tokens", "output_tokens":
			t.take(c, fOutput)
		case "total_tokens":
			t.take(c, fTotal)
		case "cached_tokens", "prompt_cache_hit_tokens":
			t.take(c, fCachedFlat)
		case "cache_read_input_tokens":
			t.take(c, fCacheRead)
		case "cache_creation_input_tokens":
			t.take(c, fCacheCreate)
		case "cache_creation":
			t.parts(c, createPart)
		case "prompt_tokens_details", "input_tokens_details":
			t.parts(c, inputPart)
		case "completion_tokens_details", "output_tokens_details":
			t.parts(c, outputPart)
		case "service_tier":
			tier = c.str()
		case "cost":
			t.charge.take(c, cTotal, &t.total, 0)
		case "cost_in_usd_ticks": // xAI: 10^10 are a dollar
			t.charge.take(c, cTotal, &t.total, 10)
		case "is_byok":
			t.own = c.filled()
		case "cost_details":
			t.details(c)
		default:
			c.skip()
		}
	}
}

// parts reads an object of details; field names its members, fieldCount for others.
func (t *tokens) parts(c *cursor, which func(key []byte) field) {
	if !c.open('{') {
		return
	}
	for {
		key, ok := c.key()
		if !ok {
			return
		}
		if f := which(key); f < fieldCount {
			t.take(c, f)
		} else {
			c.skip()
		}
	}
}

func createPart(key []byte) field {
	switch string(key) {
	case "ephemeral_5m_input_tokens":
		return fCreate5m
	case "ephemeral_1h_input_tokens":
		return fCreate1h
	}
	return fieldCount
}

func inputPart(key []byte) field {
	switch string(key) {
	case "cached_tokens":
		return fCached
	case "cache_write_tokens":
		return fCacheWrite
	case "audio_tokens":
		return fAudioIn
	}
	return fieldCount
}

func outputPart(key []byte) field {
	switch string(key) {
	case "reasoning_tokens":
		return fReasoning
	case "audio_tokens":
		return fAudioOut
	}
	return fieldCount
}

// usage normalises the counts (DESIGN 7). final tells that no more are to come.
func (t *tokens) usage(surface wire.Surface, tier string, final bool) Usage {
	u := Usage{ServiceTier: tier, Quality: usageUnknown}
	if t.bad&(1<<fInput|1<<fOutput) != 0 {
		return u // a total that is nonsense makes the others doubtful
	}
	if surface == wire.Messages {
		t.anthropic(&u)
	} else {
		t.openAI(&u)
	}
	input, output := t.has(fInput), t.has(fOutput)
	switch {
	case surface == wire.Embeddings:
		output = true // has none, which is known
	case surface == wire.Messages:
		input = input || t.has(fCacheRead) || t.has(fCacheCreate)
	case input && t.has(fTotal):
		output = true
	}
	switch {
	case input && output && final:
		u.Quality = usageExact
	case input || t.has(fOutput):
		u.Quality = usagePartial
	}
	return u
}

// openAI: cached, audio and reasoning tokens are parts of the totals.
func (t *tokens) openAI(u *Usage) {
	u.Input, u.Output = t.n[fInput], t.n[fOutput]
	if t.has(fInput) && t.has(fTotal) {
		rest := t.n[fTotal] - u.Input - u.Output
		switch {
		case !t.has(fOutput):
			u.Output = max(rest, 0)
		case rest > 0 && rest == t.n[fReasoning]:
			u.Output += rest // xAI counts reasoning beside the completion
		}
	}
	u.CachedInput = t.n[fCached]
	if !t.has(fCached) {
		u.CachedInput = t.n[fCachedFlat]
	}
	u.CacheWrite = t.n[fCacheWrite]
	u.Reasoning = t.n[fReasoning]
	u.AudioInput, u.AudioOutput = t.n[fAudioIn], t.n[fAudioOut]
}

// anthropic: input_tokens is what was neither read from nor written to the cache. Writes
// that the split does not name are 5-minute ones.
func (t *tokens) anthropic(u *Usage) {
	u.CachedInput = t.n[fCacheRead]
	u.CacheWrite1h = t.n[fCreate1h]
	u.CacheWrite = max(t.n[fCacheCreate], t.n[fCreate5m]+t.n[fCreate1h])
	u.Input = t.n[fInput] + u.CachedInput + u.CacheWrite
	u.Output = t.n[fOutput]
	u.Reasoning = t.n[fReasoning]
}

// tierName is a response's service tier, empty for the names of the standard one.
func tierName(raw []byte) string {
	if standardTier(string(raw)) {
		return ""
	}
	return unquote(raw)
}

// standardTier tells whether a tier is the one that plain prices are for: OpenAI says
// default, Anthropic standard, Groq on_demand; auto is a wish that was not specified.
func standardTier(name string) bool {
	switch name {
	case "", "default", "standard", "auto", "on_demand":
		return true
	}
	return false
}
