package translate_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"switchboard/internal/translate"
	"switchboard/internal/wire"
)

// seeds adds the sections of testdata that begin with a word.
func seeds(f *testing.F, word string) {
	files, _ := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, section := range archive.Files {
			if strings.HasPrefix(section.Name, word) {
				f.Add(section.Data, strings.HasSuffix(section.Name, "chat"), 7)
			}
		}
	}
}

func direction(chat bool) (from, to wire.Surface) {
	if chat {
		return wire.Chat, wire.Messages
	}
	return wire.Messages, wire.Chat
}

// FuzzRequest: no body makes it panic; what it gives is JSON, and the same the second time.
func FuzzRequest(f *testing.F) {
	seeds(f, "request")
	f.Fuzz(func(t *testing.T, body []byte, chat bool, n int) {
		from, to := direction(chat)
		o := translate.Options{Cache: translate.DefaultCache(), Extended: n%2 == 0, AskUsage: n%3 == 0}
		out, _, err := translate.Request(from, to, body, o)
		if err != nil {
			var e *wire.Error
			if !errors.As(err, &e) || e.Status != 400 {
				t.Fatalf("%v, want a *wire.Error 400", err)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatalf("a body that is no JSON was translated: %s", body)
		}
		if !json.Valid(out) {
			t.Fatalf("gives no JSON: %s", out)
		}
		again, _, _ := translate.Request(from, to, body, o)
		if string(again) != string(out) {
			t.Fatalf("gives %s and then %s", out, again)
		}
	})
}

// FuzzStream: no stream makes it panic; what it gives are events of the client's surface, the
// same however it is cut.
func FuzzStream(f *testing.F) {
	seeds(f, "stream")
	f.Fuzz(func(t *testing.T, data []byte, chat bool, n int) {
		from, to := direction(chat)
		whole := stream(from, to, data, max(1, len(data)))
		if cut := stream(from, to, data, 1+int(uint(n)%100)); string(cut) != string(whole) {
			t.Fatalf("whole it gives\n%s\ncut\n%s", whole, cut)
		}
		checkEvents(t, to, whole)
	})
}

// FuzzAnswer: no answer and no error body makes it panic; what it gives is JSON.
func FuzzAnswer(f *testing.F) {
	seeds(f, "answer")
	seeds(f, "error")
	f.Fuzz(func(t *testing.T, body []byte, chat bool, n int) {
		from, to := direction(chat)
		if out, err := translate.Answer(from, to, body, reply()); err == nil && !json.Valid(out) {
			t.Fatalf("gives no JSON: %s", out)
		}
		if out := translate.Error(from, to, 400+n%200, body); !json.Valid(out) {
			t.Fatalf("gives no JSON: %s", out)
		}
	})
}
