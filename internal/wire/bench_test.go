package wire

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// Compare two commits with:
//
//	go test -run '^$' -bench . -count 10 ./internal/wire > old.txt   # and new.txt
//	go run golang.org/x/perf/cmd/benchstat@latest old.txt new.txt

// conversationOf returns a coding conversation of about size bytes: turns of escaped code and
// tool calls whose arguments are JSON in a string.
func conversationOf(size int) []byte {
	var b strings.Builder
	b.WriteString(`{"model": "m-oai", "stream": true, "temperature": 0, "prompt_cache_key": "zed-77", "tools": [` +
		`{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}], ` +
		`"messages": [{"role": "system", "content": "You fix code."}`)
	code := strings.Repeat(`\tif err != nil {\n\t\treturn fmt.Errorf(\"read %s: %w\", name, err)\n\t}\n`, 12)
	for n := 0; b.Len() < size-1200; n++ {
		fmt.Fprintf(&b, `, {"role": "user", "content": "step %d: %s"}, {"role": "assistant", "content": null, "tool_calls": `+
			`[{"id": "t%d", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a.go\"}"}}]}`, n, code, n)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

func sizes() []int { return []int{2 << 10, 100 << 10, 1 << 20} }

func BenchmarkDecode(b *testing.B) {
	op := Operations()["/v1/chat/completions"]
	for _, size := range sizes() {
		body := conversationOf(size)
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode(op, "", nil, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSplice(b *testing.B) {
	r, err := Decode(Operations()["/v1/chat/completions"], "", nil, conversationOf(100<<10))
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name, model string
		askUsage    bool
	}{{"unchanged", "m-oai", false}, {"model and usage", "other", true}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				body := Splice(r.Body, r.Edits(c.model, c.askUsage)...)
				if _, err := io.Copy(io.Discard, body.NewReader()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkReadBody(b *testing.B) {
	body := string(conversationOf(100 << 10))
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buf, err = ReadBody(strings.NewReader(body), int64(len(body)), 1<<20, buf); err != nil {
			b.Fatal(err)
		}
	}
}
