package config

import (
	"strings"
	"testing"
)

func TestTranslation(t *testing.T) {
	const providers = "providers:\n  A: {type: openai, api_keys: [k-aaaa], models: [m]%s}\n"
	tests := []struct {
		text      string
		own       string
		translate bool
		markers   bool
		maxTokens int
	}{
		{"", "", true, true, 8192},
		{"translation: false\n", "", false, true, 8192},
		{"translation: true\n", "", true, true, 8192},
		{"translation: {enabled: false}\n", "", false, true, 8192},
		{"translation: {cache_control: keep, max_tokens: 100}\n", "", true, false, 100},
		{"translation: false\n", ", translation: true", true, true, 8192},
		{"", ", translation: false", false, true, 8192},
	}
	for _, tt := range tests {
		for _, text := range []string{tt.text + strings.ReplaceAll(providers, "%s", tt.own), strings.ReplaceAll(providers, "%s", tt.own) + tt.text} {
			p := mustLoad(t, text).Providers[0]
			if p.Translate != tt.translate || p.CacheMarkers != tt.markers || p.TranslatedMaxTokens != tt.maxTokens {
				t.Errorf("%s: translate %v, markers %v, max_tokens %d, want %v, %v, %d",
					text, p.Translate, p.CacheMarkers, p.TranslatedMaxTokens, tt.translate, tt.markers, tt.maxTokens)
			}
		}
	}
	c, err := Load(Source{Getenv: env("OPENAI_API_KEY=k-one")})
	if err != nil || !c.Providers[0].Translate {
		t.Errorf("a provider of the environment is not translated for: %v", err)
	}
}
