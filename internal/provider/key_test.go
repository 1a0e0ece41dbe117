package provider

import (
	"strings"
	"testing"
)

func TestKeyPrint(t *testing.T) {
	// printf 'switchboard key\0sk-test' | sha256sum
	if got, want := KeyPrint("sk-test"), "cd50c4144700680e"; got != want {
		t.Errorf("KeyPrint(sk-test) = %s, want %s", got, want)
	}
	seen := map[string]string{}
	for _, text := range []string{"", "a", "A", "a ", "\x00", "sk-test", "sk-test2", strings.Repeat("k", 500)} {
		got := KeyPrint(text)
		if len(got) != 16 || strings.Trim(got, "0123456789abcdef") != "" {
			t.Errorf("KeyPrint(%q) = %q, want 16 hex digits", text, got)
		}
		if other, twice := seen[got]; twice {
			t.Errorf("KeyPrint(%q) = KeyPrint(%q)", text, other)
		}
		seen[got] = text
	}
}
