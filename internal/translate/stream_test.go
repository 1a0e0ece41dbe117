package translate_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"switchboard/internal/sse"
	"switchboard/internal/translate"
	"switchboard/internal/wire"
)

type recording struct {
	from, to wire.Surface
	data     []byte
}

// recorded are the streams of testdata.
func recorded(t testing.TB) (streams []recording) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			one := recording{wire.Chat, wire.Messages, append(f.Data, '\n')}
			switch f.Name {
			case "stream chat":
			case "stream messages":
				one.from, one.to = one.to, one.from
			default:
				continue
			}
			streams = append(streams, one)
		}
	}
	if len(streams) == 0 {
		t.Fatal("no streams")
	}
	return streams
}

// TestAnyCutGivesTheSameStream: metamorphic; CRLF line ends and byte-wise cuts as well.
func TestAnyCutGivesTheSameStream(t *testing.T) {
	for _, s := range recorded(t) {
		want := string(stream(s.from, s.to, s.data, len(s.data)))
		crlf := bytes.ReplaceAll(s.data, []byte("\n"), []byte("\r\n"))
		for _, n := range []int{1, 2, 3, 7, 64, 1000} {
			if got := string(stream(s.from, s.to, s.data, n)); got != want {
				t.Errorf("in pieces of %d the stream is\n%s\nwant\n%s", n, got, want)
			}
			if got := string(stream(s.from, s.to, crlf, n)); got != want {
				t.Errorf("with CRLF in pieces of %d the stream is\n%s\nwant\n%s", n, got, want)
			}
		}
		rapid.Check(t, func(t *rapid.T) {
			x := translate.NewStream(s.from, s.to, reply())
			var got []byte
			for rest := s.data; len(rest) > 0; {
				n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
				got = append(got, x.Feed(rest[:n])...)
				rest = rest[n:]
			}
			if got = append(got, x.Close()...); string(got) != want {
				t.Fatalf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestACutStreamNeverLooksComplete: S-SSE-07. Wherever a stream of testdata that ends well is
// cut before its last events, the client gets no finish and no end marker.
func TestACutStreamNeverLooksComplete(t *testing.T) {
	for _, s := range recorded(t) {
		end := bytes.Index(s.data, []byte("event: message_stop"))
		ends := []string{"[DONE]", `"finish_reason":"`}
		if s.from == wire.Chat {
			end = bytes.Index(s.data, []byte(`"finish_reason":"`))
			ends = []string{"message_stop", "message_delta"}
		}
		for cut := range max(end, 0) {
			got := string(stream(s.from, s.to, s.data[:cut], 50))
			for _, sign := range ends {
				if strings.Contains(got, sign) {
					t.Fatalf("cut at %d, the client gets %s:\n%s", cut, sign, got)
				}
			}
		}
	}
}

// TestNothingFollowsTheEnd: neither an end marker nor an error.
func TestNothingFollowsTheEnd(t *testing.T) {
	for _, s := range recorded(t) {
		x := translate.NewStream(s.from, s.to, reply())
		whole := string(x.Feed(s.data))
		if !strings.Contains(whole, "[DONE]") && !strings.Contains(whole, "message_stop") && !strings.Contains(whole, `"error"`) {
			continue
		}
		if more := x.Feed(s.data); len(more) > 0 {
			t.Errorf("after the end comes %s", more)
		}
		if more := x.Close(); len(more) > 0 {
			t.Errorf("after the end comes %s", more)
		}
	}
}

// TestLongLines: S-SSE-03. An event of 5 MiB is translated; one that is too large ends the
// stream with an error, not in silence.
func TestLongLines(t *testing.T) {
	long := func(n int) []byte {
		return []byte(`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"` + strings.Repeat("a", n) + `"}}]}}]}` + "\n\n")
	}
	for _, n := range []int{300_000, 5 << 20} {
		if got := stream(wire.Chat, wire.Messages, long(n), 32<<10); !bytes.Contains(got, bytes.Repeat([]byte("a"), n)) {
			t.Errorf("an event of %d bytes gives %d bytes, want its arguments whole", n, len(got))
		}
	}
	s := translate.NewStream(wire.Chat, wire.Messages, reply())
	if got := s.Feed(long(17 << 20)); !bytes.HasPrefix(got, []byte("event: error")) || !s.Broken() {
		t.Errorf("an event that is too large gives %.200s, broken %v, want an error", got, s.Broken())
	}
}

// checkEvents fails when a stream is not what its surface's clients can read.
func checkEvents(t testing.TB, to wire.Surface, out []byte) {
	t.Helper()
	var scanner sse.Scanner
	scanner.Limit = 64 << 20
	scanner.Feed(out)
	for {
		event, ok := scanner.Next()
		if !ok {
			break
		}
		if event.Comment || to == wire.Chat && string(event.Data) == "[DONE]" {
			continue
		}
		if !json.Valid(event.Data) {
			t.Fatalf("event data is no JSON: %s", event.Data)
		}
		var kind struct{ Type string }
		if err := json.Unmarshal(event.Data, &kind); to == wire.Messages && (err != nil || kind.Type != string(event.Name)) {
			t.Fatalf("event %q has the type %q", event.Name, kind.Type)
		}
	}
	if scanner.Partial() > 0 {
		t.Fatalf("the stream ends within an event: %s", out)
	}
}

func TestStreamsAreEvents(t *testing.T) {
	for _, s := range recorded(t) {
		checkEvents(t, s.to, stream(s.from, s.to, s.data, 100))
	}
}
