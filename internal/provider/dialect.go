package provider

// What differs between those who speak chat completions, for requests that are translated to
// it. A client's own request says what its client wants it to.

// ShortMaxTokens tells whether the limit is called max_tokens. OpenAI, and who follows it, has
// max_completion_tokens, and refuses the old name for models that reason.
func (p *Provider) ShortMaxTokens() bool {
	switch p.Type {
	case "mistral", "deepseek", "together", "fireworks", "ollama", "vllm", "lmstudio", "opencode":
		return true
	}
	return false
}

// ExtendedChat tells whether cache_control, reasoning_content and thinking_blocks may stand in
// messages. OpenAI refuses members that it does not know.
func (p *Provider) ExtendedChat() bool { return p.Type == "openrouter" }
