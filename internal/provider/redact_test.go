package provider

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRedact(t *testing.T) {
	const key = "sk-test-AAAABBBBCCCCDDDD1234"
	tests := []struct {
		name, in string
		keys     []string
		want     string
	}{
		{"nothing", "an ordinary error", []string{key}, "an ordinary error"},
		{"no keys", "text " + key, nil, "text " + key},
		{"empty key", "text", []string{""}, "text"},
		{"whole", "key " + key + " bad", []string{key}, "key [redacted] bad"},
		{"S-SEC-03 fragment", "Incorrect API key provided: sk-test-AAAA************1234.", []string{key}, "Incorrect API key provided: [redacted]************1234."},
		{"eight characters", "x CCCCDDDD y", []string{key}, "x [redacted] y"},
		{"seven characters", "x CCCDDDD y", []string{key}, "x CCCDDDD y"},
		{"at both ends", "AAAABBBB-1234CCCCDDDD1234", []string{key}, "[redacted]-1234[redacted]"},
		{"two keys", "one-key-1 two-key-2", []string{"one-key-1", "two-key-2"}, "[redacted] [redacted]"},
		{"two keys that touch", "one-key-1two-key-2", []string{"one-key-1", "two-key-2"}, "[redacted]"},
		{"short key", "pw is abc12, not abc1", []string{"abc12"}, "pw is [redacted], not abc1"},
		{"other case", strings.ToLower(key), []string{"AAAABBBBCCCC"}, strings.ToLower(key)},
		{"characters", "é " + key + " 北", []string{key}, "é [redacted] 北"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := []byte(tt.in)
			got := Redact(in, tt.keys)
			if string(got) != tt.want {
				t.Errorf("Redact(%q) = %q, want %q", tt.in, got, tt.want)
			}
			if tt.in == tt.want && len(in) > 0 && &got[0] != &in[0] {
				t.Error("Redact copied a text without keys")
			}
			if string(in) != tt.in {
				t.Error("Redact changed its argument")
			}
		})
	}
}

// S-SEC-03: after redaction no run of 8 characters of a key is left, and what has nothing
// to do with keys is.
func TestPropertySEC03NoRunLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[a-d0-3]{8,30}`)
		keys := rapid.SliceOfN(key, 1, 3).Draw(t, "keys")
		var text strings.Builder
		for range rapid.IntRange(0, 8).Draw(t, "pieces") {
			if rapid.Bool().Draw(t, "of a key") {
				k := rapid.SampledFrom(keys).Draw(t, "key")
				from := rapid.IntRange(0, len(k)).Draw(t, "from")
				text.WriteString(k[from:rapid.IntRange(from, len(k)).Draw(t, "to")])
			} else {
				text.WriteString(rapid.StringMatching(`[a-d0-3XYZ ]{0,12}`).Draw(t, "noise"))
			}
		}
		in := text.String()
		got := string(Redact([]byte(in), keys))
		for _, k := range keys {
			for i := 0; i+8 <= len(k); i++ {
				if strings.Contains(got, k[i:i+8]) {
					t.Fatalf("Redact(%q, %q) = %q shows %q", in, keys, got, k[i:i+8])
				}
			}
		}
		rest := in
		for _, part := range strings.Split(got, string(redacted)) {
			at := strings.Index(rest, part)
			if at < 0 {
				t.Fatalf("Redact(%q, %q) = %q, which is not the text less some runs", in, keys, got)
			}
			rest = rest[at+len(part):]
		}
	})
}
