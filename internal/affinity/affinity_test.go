package affinity_test

import (
	"testing"

	"switchboard/internal/affinity"
)

func TestSame(t *testing.T) {
	const none = ""
	to := func(provider, id, keyPrint, model string) affinity.Target {
		return affinity.Target{Provider: provider, KeyID: id, KeyPrint: keyPrint, Model: model}
	}
	for _, tt := range []struct {
		name string
		a, b affinity.Target
		want bool
	}{
		{"equal", to("A", "1", "p", "m"), to("A", "1", "p", "m"), true},
		{"key in another place", to("A", "1", "p", "m"), to("A", "2", "p", "m"), true},
		{"another key in the same place", to("A", "1", "p", "m"), to("A", "1", "q", "m"), false},
		{"another key", to("A", "1", "p", "m"), to("A", "2", "q", "m"), false},
		{"one print unknown", to("A", "1", none, "m"), to("A", "1", "p", "m"), true},
		{"one print unknown, another id", to("A", "1", none, "m"), to("A", "2", "p", "m"), false},
		{"no prints", to("A", "1", none, "m"), to("A", "1", none, "m"), true},
		{"no prints, another id", to("A", "1", none, "m"), to("A", "2", none, "m"), false},
		{"no keys", to("A", "", none, "m"), to("A", "", none, "m"), true},
		{"any key", to("A", "", none, "m"), to("A", "1", "p", "m"), true},
		{"any key, no print", to("A", "", none, "m"), to("A", "1", none, "m"), true},
		{"any key of another provider", to("B", "", none, "m"), to("A", "1", "p", "m"), false},
		{"any key, another model", to("A", "", none, "m"), to("A", "1", "p", "n"), false},
		{"another provider", to("A", "1", "p", "m"), to("B", "1", "p", "m"), false},
		{"another model", to("A", "1", "p", "m"), to("A", "1", "p", "n"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.a.Same(tt.b); got != tt.want {
				t.Errorf("%+v.Same(%+v) = %v, want %v", tt.a, tt.b, got, tt.want)
			}
			if got := tt.b.Same(tt.a); got != tt.want {
				t.Errorf("%+v.Same(%+v) = %v, want %v", tt.b, tt.a, got, tt.want)
			}
		})
	}
	chat, responses := to("A", "1", "p", "m"), to("A", "1", "p", "m")
	chat.Surface, responses.Surface = "openai-chat-completions", "openai-responses"
	if !chat.Same(responses) {
		t.Error("another surface is another place, want the same")
	}
}
