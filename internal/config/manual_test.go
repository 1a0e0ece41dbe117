package config

import (
	"os"
	"strings"
	"testing"

	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// docs/providers.md has a row for every type, which says what the type has.
func TestManualDescribesEveryType(t *testing.T) {
	manual, err := os.ReadFile("../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(manual)) {
		if cells := strings.Split(line, " | "); len(cells) == 8 && strings.HasPrefix(line, "| `") {
			rows[strings.Trim(cells[0], "|` ")] = cells
		}
	}
	short := map[wire.Surface]string{wire.Chat: "c", wire.Responses: "r", wire.Messages: "m", wire.Embeddings: "e"}
	for _, v := range provider.Vendors() {
		row := rows[v.Type]
		if row == nil {
			t.Errorf("docs/providers.md has no row of type %s", v.Type)
			continue
		}
		delete(rows, v.Type)
		var surfaces []string
		for _, s := range v.Surfaces {
			surfaces = append(surfaces, short[s])
		}
		wants := map[int][]string{
			1: {"`" + v.Env + "_API_KEY`", "`" + v.Env + "_BASE_URL`"},
			2: {"`" + strings.ReplaceAll(v.BaseURL, "{region}", "REGION")},
			3: {strings.Join(surfaces, " ")},
		}
		for _, h := range v.Hints {
			wants[6] = append(wants[6], "`"+strings.ToLower(h.Header+h.Member)+"`")
		}
		if len(v.Hints) == 0 {
			wants[6] = []string{"none"}
		} else if !v.HintByDefault {
			wants[6] = append(wants[6], "only when configured")
		}
		for i, texts := range wants {
			for _, want := range texts {
				if !strings.Contains(row[i], want) {
					t.Errorf("docs/providers.md, %s: %q does not say %s", v.Type, row[i], want)
				}
			}
		}
	}
	for name := range rows {
		t.Errorf("docs/providers.md describes a type %q that there is not", name)
	}
	for _, file := range []string{"../../docs/configuration.md", exampleFile} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range provider.Vendors() {
			if !strings.Contains(string(text), v.Type) {
				t.Errorf("%s does not name type %s", file, v.Type)
			}
		}
	}
}
