package translate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"switchboard/internal/translate"
	"switchboard/internal/wire"
)

var update = flag.Bool("update", false, "rewrite the golden parts of testdata/*.txtar")

// TestGolden translates what testdata/*.txtar holds. A section "request chat", "answer
// messages", "stream chat" or "error 429 messages" is in the shape it names; the section
// behind it, "gives …", is golden: what it becomes in the other. A section "options" sets
// translate.Options for the requests that follow. A request's golden part begins with what
// was dropped; one that is refused has the error's field and message.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var out []txtar.File
			o := translate.Options{Cache: translate.DefaultCache()}
			changed := false
			for i, f := range archive.Files {
				if strings.HasPrefix(f.Name, "gives ") {
					continue
				}
				out = append(out, f)
				if f.Name == "options" {
					o = translate.Options{}
					if err := json.Unmarshal(f.Data, &o); err != nil {
						t.Fatal(err)
					}
					continue
				}
				got := translated(t, f.Name, bytes.TrimSuffix(f.Data, []byte("\n")), o)
				want := []byte(nil)
				if next := i + 1; next < len(archive.Files) && strings.HasPrefix(archive.Files[next].Name, "gives ") {
					want = archive.Files[next].Data
				}
				if !bytes.Equal(got, want) {
					changed = true
					if !*update {
						t.Errorf("%s gives\n%s\nwant\n%s", f.Name, got, want)
					}
				}
				out = append(out, txtar.File{Name: "gives " + f.Name, Data: got})
			}
			if changed && *update {
				archive.Files = out
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func surfaceOf(t *testing.T, name string) (from, to wire.Surface) {
	t.Helper()
	switch name {
	case "chat":
		return wire.Chat, wire.Messages
	case "messages":
		return wire.Messages, wire.Chat
	}
	t.Fatalf("no surface %q", name)
	return "", ""
}

// translated is the golden text of a section.
func translated(t *testing.T, name string, data []byte, o translate.Options) []byte {
	t.Helper()
	words := strings.Fields(name)
	from, to := surfaceOf(t, words[len(words)-1])
	switch words[0] {
	case "request":
		body, dropped, err := translate.Request(from, to, data, o)
		if err != nil {
			var e *wire.Error
			if !errors.As(err, &e) || e.Status != 400 || body != nil {
				t.Fatalf("%s: %v, want a *wire.Error 400 alone", name, err)
			}
			return []byte("refused " + e.Param + "\n" + e.Message + "\n")
		}
		return []byte("dropped " + strings.Join(dropped, ",") + "\n" + indent(t, body))
	case "answer":
		body, err := translate.Answer(from, to, data, reply())
		if err != nil {
			return []byte(err.Error() + "\n")
		}
		return []byte(indent(t, body))
	case "error":
		status, err := strconv.Atoi(words[1])
		if err != nil {
			t.Fatal(err)
		}
		return []byte(indent(t, translate.Error(from, to, status, data)))
	case "stream":
		return append(stream(from, to, append(data, "\n\n"...), len(data)+2), '\n')
	}
	t.Fatalf("unknown section %q", name)
	return nil
}

func reply() translate.Reply {
	return translate.Reply{Model: "m-asked", Created: 1700000000, Usage: true}
}

// stream translates a stream in pieces of n bytes.
func stream(from, to wire.Surface, data []byte, n int) []byte {
	s := translate.NewStream(from, to, reply())
	var out []byte
	for len(data) > 0 {
		k := min(n, len(data))
		out = append(out, s.Feed(data[:k])...)
		data = data[k:]
	}
	return append(out, s.Close()...)
}

func indent(t *testing.T, body []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, body, "", " "); err != nil {
		t.Fatalf("no JSON: %v\n%s", err, body)
	}
	return out.String() + "\n"
}
