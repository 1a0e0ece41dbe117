package translate

import "strconv"

// usage is what an answer consumed. input leaves out what was read from the cache or written
// to it, as Anthropic counts; OpenAI's total has both in it.
type usage struct {
	known                                          bool
	input, cacheRead, cacheWrite, output, thinking int64
	write5m, write1h                               int64
	tier                                           string // in the words of the surface that it came from
}

const tokenLimit = 1_000_000_000_000 // more is no count

func count(v value) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(v.raw()), 10, 64)
	return n, err == nil && n >= 0 && n <= tokenLimit
}

// take sets a count that is there. Anthropic's are cumulative: one that has shrunk to nothing
// is what some gateways fill in.
func take(to *int64, v value) {
	if n, ok := count(v); ok && n > 0 {
		*to = n
	}
}

// messages reads a usage object of Anthropic's over what is known.
func (u *usage) messages(v value) {
	if !v.isObject() {
		return
	}
	u.known = true
	take(&u.input, v.get("input_tokens"))
	take(&u.output, v.get("output_tokens"))
	take(&u.cacheRead, v.get("cache_read_input_tokens"))
	take(&u.cacheWrite, v.get("cache_creation_input_tokens"))
	take(&u.write5m, v.at("cache_creation", "ephemeral_5m_input_tokens"))
	take(&u.write1h, v.at("cache_creation", "ephemeral_1h_input_tokens"))
	take(&u.thinking, v.at("output_tokens_details", "thinking_tokens"))
	if tier := v.get("service_tier"); tier.isText() {
		u.tier = string(tier.text())
	}
}

// chat reads a usage object of OpenAI's, or of those who speak like it.
func (u *usage) chat(v value) {
	if !v.isObject() {
		return
	}
	*u = usage{known: true, tier: u.tier}
	details := v.get("prompt_tokens_details")
	take(&u.input, v.get("prompt_tokens"))
	take(&u.output, v.get("completion_tokens"))
	take(&u.cacheRead, v.get("prompt_cache_hit_tokens")) // DeepSeek
	take(&u.cacheRead, v.get("cached_tokens"))           // Moonshot
	take(&u.cacheRead, details.get("cached_tokens"))
	take(&u.cacheWrite, details.get("cache_write_tokens")) // OpenRouter
	take(&u.thinking, v.at("completion_tokens_details", "reasoning_tokens"))
	u.cacheRead = min(u.cacheRead, u.input)
	u.cacheWrite = min(u.cacheWrite, u.input-u.cacheRead)
	u.input -= u.cacheRead + u.cacheWrite
}

// asChat writes the usage as OpenAI has it. What OpenAI has no word for goes by OpenRouter's
// and LiteLLM's.
func (u *usage) asChat(w *buf) {
	prompt := u.input + u.cacheRead + u.cacheWrite
	w.key("usage")
	w.open('{')
	w.count("prompt_tokens", prompt)
	w.count("completion_tokens", u.output)
	w.count("total_tokens", prompt+u.output)
	w.key("prompt_tokens_details")
	w.open('{')
	w.count("cached_tokens", u.cacheRead)
	if u.cacheWrite > 0 {
		w.count("cache_write_tokens", u.cacheWrite)
	}
	w.shut('}')
	w.key("completion_tokens_details")
	w.open('{')
	w.count("reasoning_tokens", u.thinking)
	w.shut('}')
	if u.cacheWrite > 0 {
		w.count("cache_creation_input_tokens", u.cacheWrite)
	}
	w.shut('}')
}

// asMessages writes the usage as Anthropic has it.
func (u *usage) asMessages(w *buf) {
	w.key("usage")
	w.open('{')
	w.count("input_tokens", u.input)
	w.count("cache_creation_input_tokens", u.cacheWrite)
	w.count("cache_read_input_tokens", u.cacheRead)
	w.count("output_tokens", u.output)
	if u.thinking > 0 {
		w.key("output_tokens_details")
		w.open('{')
		w.count("thinking_tokens", u.thinking)
		w.shut('}')
	}
	if tier := tierForMessages(u.tier); tier != "" {
		w.word("service_tier", tier)
	}
	w.shut('}')
}

func (w *buf) count(name string, n int64) {
	w.key(name)
	w.number(n)
}

func tierForMessages(tier string) string {
	switch tier {
	case "default":
		return "standard"
	case "priority":
		return tier
	}
	return ""
}

func tierForChat(tier string) string {
	switch tier {
	case "standard":
		return "default"
	case "priority":
		return tier
	}
	return ""
}

// finishReason is OpenAI's word for why an answer of Anthropic's ended.
func finishReason(stop string) string {
	switch stop {
	case "max_tokens", "model_context_window_exceeded":
		return "length"
	case "tool_use":
		return "tool_calls"
	case "refusal":
		return "content_filter"
	}
	return "stop" // end_turn, stop_sequence, pause_turn
}

// stopReason is Anthropic's word for why an answer of OpenAI's ended. Some servers say stop
// when tools are called.
func stopReason(finish string, called, refused bool) string {
	switch {
	case finish == "length":
		return "max_tokens"
	case finish == "content_filter", refused:
		return "refusal"
	case called, finish == "tool_calls", finish == "function_call":
		return "tool_use"
	}
	return "end_turn"
}
