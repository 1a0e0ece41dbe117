package provider

import "switchboard/internal/health"

// lmStudio: lmstudio.ai/docs/developer/openai-compat and /anthropic-compat, which has no
// count_tokens; a token when Require Authentication is on.
func lmStudio() Vendor {
	v := local("lmstudio", "http://127.0.0.1:1234/v1", "LMSTUDIO",
		Meaning{Status: 400, Says: "no models loaded", Class: health.ModelNotFound},
		Meaning{Status: 400, Says: "failed to load model", Class: health.ModelNotFound},
		Meaning{Status: 404, Says: "no models loaded", Class: health.ModelNotFound},
	)
	v.NoCountTokens = true
	return v
}
