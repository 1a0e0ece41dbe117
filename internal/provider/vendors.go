package provider

// Vendors lists the known provider types in a fixed order.
func Vendors() []Vendor {
	return []Vendor{
		openAI(),
		anthropic(),
		gemini(),
		groq(),
		xAI(),
		deepSeek(),
		mistral(),
		together(),
		fireworks(),
		cerebras(),
		openRouter(),
		openCode(),
		azure(),
		bedrock(),
		ollama(),
		vLLM(),
		lmStudio(),
	}
}

// VendorOf finds a type.
func VendorOf(providerType string) (Vendor, bool) {
	for _, v := range Vendors() {
		if v.Type == providerType {
			return v, true
		}
	}
	return Vendor{}, false
}
