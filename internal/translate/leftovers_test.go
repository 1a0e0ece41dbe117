package translate_test

import (
	"io"
	"testing"

	"switchboard/internal/translate"
	"switchboard/internal/wire"
)

func TestLeftovers(t *testing.T) {
	tests := []struct {
		name       string
		surface    wire.Surface
		body, want string
	}{
		{
			"chat", wire.Chat,
			`{"messages":[{"role":"user","content":"a"},{"thinking_blocks":[{"type":"thinking"}], "role": "assistant","reasoning_content":"hm","content":"b","zz":1.0},{"role":"assistant","content":"c","reasoning_content":"another's"}],"x":1}`,
			`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","zz":1.0},{"role":"assistant","content":"c","reasoning_content":"another's"}],"x":1}`,
		},
		{
			"messages", wire.Messages,
			`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":""},{"type":"text","text":"b"},{"type":"thinking","thinking":"t","signature":"s"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t"}]},{"role":"user","content":[{"type":"thinking"}]}]}`,
			`{"messages":[{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"thinking","thinking":"t","signature":"s"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t"}]},{"role":"user","content":[{"type":"thinking"}]}]}`,
		},
		{"nothing of the kind", wire.Chat, `{"messages":[{"role":"assistant","content":"thinking_blocks"}]}`, ""},
		{"no JSON", wire.Messages, `{"messages":[{"role":"assistant","content":[{"type":"thinking"`, ""},
	}
	for _, tt := range tests {
		edits := translate.Leftovers(tt.surface, []byte(tt.body))
		if tt.want == "" {
			if edits != nil {
				t.Errorf("%s: %d edits, want none", tt.name, len(edits))
			}
			continue
		}
		got, _ := io.ReadAll(wire.Splice([]byte(tt.body), edits...).NewReader())
		if string(got) != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
		}
	}
}
