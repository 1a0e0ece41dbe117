package sse

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Any way of cutting a stream gives the same events at the same places.
func TestPropertyCuttingChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{
			"data: ", "data:", "data", "event: e", "event:", ": c", ":", "id: 1", "x", "é", "[DONE]",
			"\n", "\r", "\r\n", "\n\n", "\r\n\r\n", "\r\r", "\xef\xbb\xbf", " ", `{"a":"b\n"}`,
		})
		stream := strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "stream"), "")
		var chunks []string
		for rest := stream; rest != ""; {
			n := rapid.IntRange(0, min(len(rest), 20)).Draw(t, "cut")
			chunks, rest = append(chunks, rest[:n]), rest[n:]
		}
		if diff := cmp.Diff(scan(t, stream), scan(t, chunks...)); diff != "" {
			t.Fatalf("%q in %q (-whole +cut):\n%s", stream, chunks, diff)
		}
	})
}

// What the scanner says equals what a plain reading of the format says.
func TestPropertyEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"data: a", "data:b", "data", "event: n", "event: m", ": c", "id: 1", "zz", ""})
		eol := rapid.SampledFrom([]string{"\n", "\r\n", "\r"})
		var lines []string
		var b strings.Builder
		for _, l := range rapid.SliceOfN(line, 0, 30).Draw(t, "lines") {
			lines = append(lines, l)
			b.WriteString(l)
			end := eol.Draw(t, "eol")
			if end == "\n" && strings.HasSuffix(b.String(), "\r") {
				end = "\r\n" // a CR and an LF that meet would be one line end
			}
			b.WriteString(end)
		}
		var plain []got
		for _, e := range scan(t, b.String()) {
			e.End = 0
			plain = append(plain, e)
		}
		if diff := cmp.Diff(reference(lines), plain); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", b.String(), diff)
		}
	})
}

// reference groups lines to events, without offsets.
func reference(lines []string) []got {
	var events []got
	var e got
	var dataLines []string
	open, others := 0, 0
	flush := func() {
		e.HasData = dataLines != nil
		e.Data = strings.Join(dataLines, "\n")
		e.Comment = open > 0 && others == 0
		events = append(events, e)
		e, dataLines, open, others = got{}, nil, 0, 0
	}
	for _, l := range lines {
		if l == "" {
			flush()
			continue
		}
		open++
		if !strings.HasPrefix(l, ":") {
			others++
		}
		field, value, _ := strings.Cut(l, ":")
		switch value = strings.TrimPrefix(value, " "); field {
		case "data":
			dataLines = append(dataLines, value)
		case "event":
			e.Name = value
		}
	}
	if open > 0 {
		flush()
	}
	return events
}

func FuzzScanner(f *testing.F) {
	f.Add([]byte("data: a\n\n"), uint8(3))
	f.Add([]byte(":\r\rdata:x\r\n\r\n\n\r"), uint8(1))
	f.Add([]byte("\xef\xbb\xbfevent: e\ndata: {}\ndata\n\n"), uint8(2))
	f.Fuzz(func(t *testing.T, stream []byte, n uint8) {
		whole := scan(t, string(stream))
		pieces := scan(t, cut(string(stream), int(n)+1)...)
		if diff := cmp.Diff(whole, pieces); diff != "" {
			t.Errorf("cut every %d (-whole +cut):\n%s", int(n)+1, diff)
		}
	})
}
