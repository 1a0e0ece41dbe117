package functionurl

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPrelude(t *testing.T) {
	octets := http.Header{"Content-Type": {"application/octet-stream"}}
	for _, tt := range []struct {
		text   string
		status int
		header http.Header
	}{
		{`{}`, 200, octets},
		{` {"statusCode":201} `, 201, octets},
		{`{"statusCode":"404"}`, 404, octets},
		{`{"statusCode":204}`, 204, http.Header{}},
		{`{"statusCode":304}`, 304, http.Header{}},
		{`{"statusCode":200,"headers":null,"cookies":null}`, 200, octets},
		{
			`{"headers":{"content-TYPE":"text/event-stream","x-a":"é, b","x-n":7,"x-b":true}}`, 200,
			http.Header{"Content-Type": {"text/event-stream"}, "X-A": {"é, b"}, "X-N": {"7"}, "X-B": {"true"}},
		},
		{
			`{"cookies":["a=1","b=2; Path=/"],"headers":{"set-cookie":"c=3","content-type":"a/b"}}`, 200,
			http.Header{"Content-Type": {"a/b"}, "Set-Cookie": {"c=3", "a=1", "b=2; Path=/"}},
		},
		{
			`{"headers":{"content-length":"9","connection":"close","transfer-encoding":"chunked","content-type":"a/b"}}`, 200,
			http.Header{"Content-Type": {"a/b"}},
		},
		{`{"unknown":{"x":[1]},"body":"ignored"}`, 200, octets},
	} {
		a, err := parsePrelude([]byte(tt.text))
		if err != nil {
			t.Errorf("parsePrelude(%s) = %v", tt.text, err)
			continue
		}
		header := http.Header{}
		a.write(header)
		if diff := cmp.Diff(tt.header, header); a.status != tt.status || diff != "" {
			t.Errorf("parsePrelude(%s) = %d, want %d; headers (-want +got):\n%s", tt.text, a.status, tt.status, diff)
		}
	}
}

func TestMalformedPrelude(t *testing.T) {
	for _, text := range []string{
		``, ` `, `null`, `[]`, `"a"`, `12`, `{`, `{"statusCode":200`, `{"statusCode":200}x`, "\xff",
		`{"statusCode":100}`, `{"statusCode":103}`, `{"statusCode":199}`, `{"statusCode":600}`, `{"statusCode":-1}`,
		`{"statusCode":200.5}`, `{"statusCode":"abc"}`, `{"statusCode":[]}`, `{"statusCode":null}`,
		`{"headers":[]}`, `{"headers":{"":"a"}}`, `{"headers":{"a b":"c"}}`, `{"headers":{"a\r\nb":"c"}}`, `{"headers":{"é":"c"}}`,
		`{"headers":{"a":"b\r\nset-cookie: c"}}`, `{"headers":{"a":"b\u0000"}}`, `{"headers":{"a":["b"]}}`, `{"headers":{"a":null}}`,
		`{"headers":{"a":{}}}`, `{"cookies":"a=1"}`, `{"cookies":[1]}`, `{"cookies":["a=1\r\nx: y"]}`,
	} {
		if a, err := parsePrelude([]byte(text)); !errors.Is(err, errPrelude) {
			t.Errorf("parsePrelude(%q) = %+v, %v, want errPrelude", text, a, err)
		}
	}
}

func TestBuffered(t *testing.T) {
	for _, tt := range []struct {
		text, kind string
		status     int
		typed      string
		body       string
	}{
		{`{"statusCode":201,"body":"é"}`, "application/json", 201, "application/json", "é"},
		{`{"statusCode":200,"body":"AP8=","isBase64Encoded":true,"headers":{"content-type":"a/b"}}`, "", 200, "a/b", "\x00\xff"},
		{`{"statusCode":204}`, "", 204, "", ""},
		{`{"message":"no status"}`, "", 200, "application/json", `{"message":"no status"}`},
		{`{"body":{"not":"a text"}}`, "", 200, "application/json", `{"body":{"not":"a text"}}`},
		{`"text"`, "", 200, "application/json", `"text"`},
		{`[1]`, "", 200, "application/json", `[1]`},
		{`null`, "", 200, "application/json", `null`},
		{`no JSON`, "text/plain", 200, "text/plain", `no JSON`},
		{``, "", 200, "application/octet-stream", ``},
		{`{"statusCode":200,"body":7}`, "", 502, "", ""},
		{`{"statusCode":200,"body":"A","isBase64Encoded":true}`, "", 502, "", ""},
		{`{"statusCode":99}`, "", 502, "", ""},
	} {
		a, body, err := parseBuffered([]byte(tt.text), tt.kind)
		if errors.Is(err, errAnswer) {
			a.status = 502
		} else if err != nil {
			t.Errorf("parseBuffered(%s) = %v", tt.text, err)
		}
		header := http.Header{}
		a.write(header)
		if a.status != tt.status || string(body) != tt.body || header.Get("Content-Type") != tt.typed {
			t.Errorf("parseBuffered(%s) = %d %q %q, want %d %q %q", tt.text, a.status, header.Get("Content-Type"), body, tt.status, tt.typed, tt.body)
		}
	}
}

// FuzzPrelude: never a panic, and what is accepted can be written to any client.
func FuzzPrelude(f *testing.F) {
	f.Add([]byte(`{"statusCode":200,"headers":{"content-type":"a/b"},"cookies":["a=1"]}`))
	f.Add([]byte(`{"headers":{"a":1e999}}`))
	f.Add([]byte("\x00{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parsePrelude(data)
		if err != nil {
			if !errors.Is(err, errPrelude) {
				t.Errorf("parsePrelude(%q) = %v, want errPrelude", data, err)
			}
			return
		}
		if a.status < 200 || a.status > 599 || !json.Valid(data) {
			t.Errorf("parsePrelude(%q) = %+v", data, a)
		}
		header := http.Header{}
		a.write(header)
		var out strings.Builder
		if err := header.Write(&out); err != nil {
			t.Fatal(err)
		}
		lines := 0
		for _, values := range header {
			lines += len(values)
		}
		if got := strings.Count(out.String(), "\n"); got != lines {
			t.Errorf("%q: %d lines of %d headers:\n%s", data, got, lines, out.String())
		}
	})
}
