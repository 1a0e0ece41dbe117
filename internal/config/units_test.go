package config

import (
	"strings"
	"testing"

	"switchboard/internal/auth"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1B": 1, "2KB": 2000, "2KiB": 2048, "3MB": 3000000, "3MiB": 3 << 20, "32 MiB": 32 << 20,
		"": 0, "0": 0, "-1": 0, "1GB": 0, "1mb": 0, "1.5MiB": 0, "MiB": 0, "1MiBB": 0, "99999999999MiB": 0, "9999999999999999999": 0, "x": 0,
	} {
		got, err := parseSize(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("parseSize(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestParseUserPath(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "/": "", "/a": "/a", "/a/": "/a", "/team/app": "/team/app", "/ü": "/ü",
		"a": "!", "//": "!", "/a//b": "!", "/a\n": "!", "/a\x7f": "!", "/\xff": "!", " /a": "!", "/" + strings.Repeat("x", 200): "!",
	} {
		got, err := auth.ParseUserPath(text)
		if want == "!" && err == nil || want != "!" && (err != nil || got != want) {
			t.Errorf("ParseUserPath(%q) = %q, %v, want %q (!: an error)", text, got, err, want)
		}
	}
}

func TestParseBaseURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://api.openai.com/v1": "https://api.openai.com/v1", "http://127.0.0.1:9/": "http://127.0.0.1:9", "http://[::1]:9/v1//": "http://[::1]:9/v1",
		"": "!", "/v1": "!", "x.example/v1": "!", "https://": "!", "https:///v1": "!", "file:///etc": "!", "https:x.example": "!",
		"https://u@x.example": "!", "https://x.example?": "!", "https://x.example?a=b": "!", "https://x.example#": "!", "https://x.example/a b": "!",
		"https://x.example:0": "!", "https://x.example:70000": "!", "https://x.example/\n": "!", "javascript:alert(1)": "!",
	} {
		got, err := parseBaseURL(text)
		if want == "!" && err == nil || want != "!" && (err != nil || got != want) {
			t.Errorf("parseBaseURL(%q) = %q, %v, want %q (!: an error)", text, got, err, want)
		}
	}
}

func TestReaches(t *testing.T) {
	tests := []struct {
		base, listen string
		want         bool
	}{
		{"http://127.0.0.1:8080/v1", "127.0.0.1:8080", true},
		{"http://localhost:8080", "127.0.0.1:8080", true},
		{"http://127.0.0.1:8080", "localhost:8080", true},
		{"http://127.0.0.1:8080", ":8080", true},
		{"http://[::1]:8080", "[::]:8080", true},
		{"https://gate.example", "gate.example:443", true},
		{"http://127.0.0.1:8081", "127.0.0.1:8080", false},
		{"http://127.0.0.2:8080", "127.0.0.1:8080", false},
		{"http://192.0.2.1:8080", "127.0.0.1:8080", false},
		{"http://127.0.0.1:8080", "127.0.0.1:0", false},
		{"https://api.openai.com/v1", "0.0.0.0:443", false},
	}
	for _, tt := range tests {
		if got := reaches(tt.base, tt.listen); got != tt.want {
			t.Errorf("reaches(%q, %q) = %v, want %v", tt.base, tt.listen, got, tt.want)
		}
	}
}

func TestCheckName(t *testing.T) {
	for name, good := range map[string]bool{
		"a": true, "meta-llama/llama-3:free": true, "modèle": true, "a b": true,
		"": false, " a": false, "a ": false, "a\x00": false, "a\u0085b": false, "\xff": false, strings.Repeat("x", 201): false,
	} {
		if err := checkName(name); (err == nil) != good {
			t.Errorf("checkName(%q) = %v, want it to be fine: %v", name, err, good)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"base_url", "api_keys", "session_sticky_keys", "billing_model", "models", "type"}
	for name, want := range map[string]string{
		"base_ulr": "base_url", "BASE_URL": "base_url", "baseurl": "base_url", "api_key": "api_keys", "keys": "api_keys", "model": "models",
		"model_list": "models", "tpye": "type", "sticky": "session_sticky_keys", "zzz": "", "x": "", strings.Repeat("type", 20): "",
	} {
		if got := nearest(name, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestShowHidesWhatLooksLikeACredential(t *testing.T) {
	for text, shown := range map[string]bool{
		"round-robin": true, "5 seconds": true, "openai-responses-v2": true, "0.0.0.0:8080": true,
		secretKey: false, "sb-abc": false, "AKIAIOSFODNN7EXAMPLE": false, digestA: false, strings.Repeat("long ", 20): false,
	} {
		if got := strings.Contains(show(text), text); got != shown {
			t.Errorf("show(%q) = %s, want it shown: %v", text, show(text), shown)
		}
	}
}
