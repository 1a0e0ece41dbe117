package provider

import "switchboard/internal/wire"

// openCode is OpenCode Zen (opencode.ai/docs/zen). x-opencode-session leads the turns of a
// conversation together. Not here: its Messages, which take the key in x-api-key; that is a
// provider of type anthropic with this base URL.
func openCode() Vendor {
	return Vendor{
		Type:          "opencode",
		BaseURL:       "https://opencode.ai/zen/v1",
		Env:           "OPENCODE",
		Surfaces:      []wire.Surface{wire.Chat, wire.Responses},
		Catalog:       "opencode-zen",
		Authorize:     bearer,
		Hints:         headerHints("X-Opencode-Session", wire.Chat, wire.Responses),
		HintByDefault: true,
	}
}
