//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSDKTranslated runs each official SDK against the other vendor's provider, in every
// target: plain, streamed, tools, images, thinking that has to come back as it went, errors.
func TestSDKTranslated(t *testing.T) {
	python, err := filepath.Abs(venvPython)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		prefix, dir string
		command     []string
	}{
		{"js-", "js", []string{"node", "--test", "translated.test.mjs"}},
		{"py-", "py", []string{python, "-W", "error", "-m", "unittest", "-v", "test_translated"}},
	} {
		t.Run(tt.dir, func(t *testing.T) {
			onEachTarget(t, func(t *testing.T, s *stack, board gateway, on target) {
				cmd := exec.CommandContext(t.Context(), tt.command[0], tt.command[1:]...)
				cmd.Dir = tt.dir
				cmd.Env = append(os.Environ(), s.suiteEnv(board, on)...)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %v\n%s\nlog:\n%s", tt.command, err, out, board.tail())
				}
				t.Logf("%s", out)
				checkTranslated(t, s, tt.prefix)
			})
		})
	}
}

func checkTranslated(t *testing.T, s *stack, prefix string) {
	for _, event := range slices.Concat(s.thread(prefix+"tr-chat", 2), s.thread(prefix+"tr-chat-talk", 4)) {
		want(t, "chat on Anthropic", event, "api_surface", "openai-chat-completions", "provider_identity", "n", "outcome", "ok",
			"input_tokens", "1000", "cached_input_tokens", "800", "cache_write_tokens", "100", "output_tokens", "20",
			"usage_quality", "exact", "cost_nano_usd", messageCost)
	}
	for _, event := range slices.Concat(s.thread(prefix+"tr-msg", 2), s.thread(prefix+"tr-msg-talk", 4)) {
		want(t, "messages on OpenAI", event, "api_surface", "anthropic-messages", "outcome", "ok",
			"input_tokens", "1000", "cached_input_tokens", "800", "output_tokens", "20", "usage_quality", "exact", "cost_nano_usd", chatCost)
	}
	for _, name := range []string{"tr-chat-talk", "tr-msg-talk"} {
		if talk := s.thread(prefix+name, 4); distinct(talk, "provider_identity", "key_id") != 1 || count(talk, "affinity", "pinned") != 3 {
			t.Errorf("%s did not stay where it began: %v", name, talk)
		}
	}
	for _, name := range []string{"tr-chat-cut", "tr-msg-cut"} {
		want(t, name, s.thread(prefix+name, 1)[0], "outcome", "upstream_error", "response_status", "200", "stream", "1")
	}
	for _, u := range s.upstreams() {
		for _, r := range u.requests() {
			wrong := strings.HasSuffix(r.Path, "/messages") != (u.name == "n")
			if wrong || r.Path == "/v1/messages" && r.Header.Get("Anthropic-Version") == "" || r.Header.Get("X-Stainless-Lang") != "" {
				t.Errorf("%s got %s with %v", u.name, r.Path, r.Header)
			}
		}
	}
}
