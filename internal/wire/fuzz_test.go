package wire

import (
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"
)

// FuzzDecode compares with encoding/json: what we accept with a valid body must read the
// same there, and what we refuse must be malformed, or refused for a reason of routing.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		`{"model":"m"}`, `{"mod\u0065l":"m","stream":true,"session_id":"\ud83d\ude00","x":[{"y":[]}]}`,
		`{"model":"m","metadata":{"user_id":"u"},"conversation":{"id":"c"},"stream_options":{"include_usage":true}}`,
		`{"model":"m","model":"n"}`, `{"model":"m","x":-1.5e+3}`, "{\"model\":\"m\",\"x\":\"\\\\\"}", `[[[`, `{"model":"m",}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := Decode(chat(), "", nil, body)
		var members map[string]json.RawMessage
		valid := json.Unmarshal(body, &members) == nil
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Status != 400 || e.Message == "" {
				t.Fatalf("Decode(%q) = %v, want a 400 with a message", body, err)
			}
			if valid && members != nil && e.Code == "invalid_json" {
				t.Fatalf("Decode(%q) = %v, want it accepted: it is valid", body, err)
			}
			return
		}
		if !valid || !utf8.Valid(body) {
			return // the contents of other members are the provider's business
		}
		text := func(name string) (s string) {
			if raw := members[name]; len(raw) > 0 && raw[0] == '"' {
				if err := json.Unmarshal(raw, &s); err != nil {
					t.Fatal(err)
				}
			}
			return s
		}
		f := r.Fields
		for name, got := range map[string]string{
			"model": f.Model, "session_id": f.SessionID, "litellm_session_id": f.LitellmSessionID,
			"prompt_cache_key": f.PromptCacheKey, "conversation": f.Conversation, "previous_response_id": f.PreviousResponse,
		} {
			if want := text(name); got != want {
				t.Errorf("Decode(%q): %s = %q, want %q", body, name, got, want)
			}
		}
		for name, span := range map[string]Span{
			"model": f.ModelSpan, "messages": f.Messages, "input": f.Input, "system": f.System,
			"instructions": f.Instructions, "tools": f.Tools, "stream_options": f.StreamOptions,
		} {
			if got, want := string(span.Of(body)), string(members[name]); got != want {
				t.Errorf("Decode(%q): %s = %s, want %s", body, name, got, want)
			}
		}
		if want := string(members["stream"]) == "true"; f.Stream != want {
			t.Errorf("Decode(%q): stream = %v, want %v", body, f.Stream, want)
		}
	})
}
