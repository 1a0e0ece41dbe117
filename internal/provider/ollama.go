package provider

import "switchboard/internal/health"

// ollama: docs.ollama.com/api/openai-compatibility and /api/anthropic-compatibility, which
// has no count_tokens. A full queue is a 503 (docs.ollama.com/faq).
func ollama() Vendor {
	v := local("ollama", "http://127.0.0.1:11434/v1", "OLLAMA", Meaning{Status: 503, Class: health.Overloaded})
	v.NoCountTokens = true
	return v
}
