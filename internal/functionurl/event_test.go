package functionurl

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
)

func eventOf(t testing.TB, v event) events.LambdaFunctionURLRequest {
	t.Helper()
	if v.now.IsZero() {
		v.now = time.UnixMilli(1583348638390)
	}
	v.id, v.trace = "id-1", "Root=1-2"
	if v.domain == "" {
		v.domain = v.request.Host
	}
	text := v.append(nil)
	var got events.LambdaFunctionURLRequest
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&got); err != nil {
		t.Fatalf("event is not JSON: %v\n%s", err, text)
	}
	if decoder.More() {
		t.Fatalf("more than one value: %s", text)
	}
	return got
}

func TestEvent(t *testing.T) {
	r := httptest.NewRequest("POST", "http://x.lambda-url.us-east-1.on.aws/a%20b/c?parameter1=value1&parameter1=value2&parameter2=v%26w&empty", nil)
	r.RemoteAddr = "192.0.2.1:1234"
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header.Add("X-Many", "one")
	r.Header.Add("X-Many", "Two")
	r.Header.Set("X-Session-Id", "S1")
	r.Header.Set("Cookie", "a=1; b=\"2\"")
	r.Header.Add("Cookie", "c=3")
	r.Header.Set("User-Agent", "agent")
	r.Header.Set("Connection", "keep-alive")
	r.Header.Set("X-Forwarded-For", "203.0.113.9")
	want := events.LambdaFunctionURLRequest{
		Version: "2.0", RawPath: "/a%20b/c", RawQueryString: "parameter1=value1&parameter1=value2&parameter2=v%26w&empty",
		Cookies: []string{"a=1", `b="2"`, "c=3"},
		Headers: map[string]string{
			"host": "x.lambda-url.us-east-1.on.aws", "content-type": "application/json; charset=utf-8", "content-length": "13",
			"x-many": "one,Two", "x-session-id": "S1", "cookie": `a=1; b="2"; c=3`, "user-agent": "agent",
			"x-amzn-trace-id": "Root=1-2", "x-forwarded-for": "203.0.113.9, 192.0.2.1", "x-forwarded-port": "80", "x-forwarded-proto": "http",
		},
		QueryStringParameters: map[string]string{"parameter1": "value1,value2", "parameter2": "v&w", "empty": ""},
		RequestContext: events.LambdaFunctionURLRequestContext{
			AccountID: "anonymous", RequestID: "id-1", APIID: "x", DomainName: "x.lambda-url.us-east-1.on.aws", DomainPrefix: "x",
			Time: "04/Mar/2020:19:03:58 +0000", TimeEpoch: 1583348638390,
			HTTP: events.LambdaFunctionURLRequestContextHTTPDescription{
				Method: "POST", Path: "/a b/c", Protocol: "HTTP/1.1", SourceIP: "192.0.2.1", UserAgent: "agent",
			},
		},
		Body: "{\"a\":\"é\\n\"}\n",
	}
	got := eventOf(t, event{request: r, body: []byte(want.Body)})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

func TestSLAM01BodyEncoding(t *testing.T) {
	for _, tt := range []struct {
		name, kind, encoding string
		body                 string
		force                bool
		want                 bool // base64
	}{
		{"json", "application/json", "", `{"é":1}`, false, false},
		{"json with charset", "Application/JSON; charset=utf-8", "", `{}`, false, false},
		{"text", "text/plain", "", "a\x00b\x1f\x7f\"\\/<>&\u2028", false, false},
		{"event stream", "text/event-stream", "", "data: 1\n\n", false, false},
		{"vendor json", "application/problem+json", "", "{}", false, false},
		{"xml", "application/xml", "", "<a/>", false, false},
		{"vendor xml", "image/svg+xml", "", "<a/>", false, false},
		{"javascript", "application/javascript", "", "1", false, false},
		{"form", "application/x-www-form-urlencoded", "", "a=b", false, true},
		{"multipart", "multipart/form-data; boundary=x", "", "--x--", false, true},
		{"no type", "", "", "{}", false, true},
		{"broken type", ";;", "", "{}", false, true},
		{"octets", "application/octet-stream", "", "abc", false, true},
		{"invalid UTF-8 as JSON", "application/json", "", "\"\xff\"", false, true},
		{"compressed", "application/json", "gzip", "\x1f\x8b", false, true},
		{"forced", "application/json", "", `{"é":1}`, true, true},
		{"empty", "application/octet-stream", "", "", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/", nil)
			if tt.kind != "" {
				r.Header.Set("Content-Type", tt.kind)
			}
			if tt.encoding != "" {
				r.Header.Set("Content-Encoding", tt.encoding)
			}
			got := eventOf(t, event{request: r, body: []byte(tt.body), base64: tt.force})
			body := []byte(got.Body)
			if got.IsBase64Encoded {
				var err error
				if body, err = base64.StdEncoding.DecodeString(got.Body); err != nil {
					t.Fatal(err)
				}
			}
			if got.IsBase64Encoded != tt.want || string(body) != tt.body {
				t.Errorf("body = %q, base64 %v, want %q, base64 %v", body, got.IsBase64Encoded, tt.body, tt.want)
			}
		})
	}
}

func TestQueryThatCannotBeDecoded(t *testing.T) {
	for query, want := range map[string]map[string]string{
		"":               nil,
		"&&":             nil,
		"a=%zz":          {"a": "%zz"},
		"a=1;b=2":        {"a": "1;b=2"},
		"a+b=c+d":        {"a b": "c d"},
		"=x&=y":          {"": "x,y"},
		"q=%22%5C%0a%ff": {"q": "\"\\\n\uFFFD"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.RawQuery = query
		if diff := cmp.Diff(want, eventOf(t, event{request: r}).QueryStringParameters); diff != "" {
			t.Errorf("parameters of %q (-want +got):\n%s", query, diff)
		}
	}
}

func TestNewID(t *testing.T) {
	a, b := newID(), newID()
	if a == b || len(a) != 36 || strings.Count(a, "-") != 4 || a[14] != '4' {
		t.Errorf("newID() = %q, then %q, want two random UUIDs", a, b)
	}
}

// FuzzEvent: whatever comes in, what encoding/json reads of the event is what was sent.
func FuzzEvent(f *testing.F) {
	f.Add("/a", "x=1&y", "X-A", "v", "a=1", []byte(`{"a":"b\\\n"}`), "application/json", false)
	f.Add("/é/%2F", "é=%ff", "X-A", "\xff\xfe", "a=\x80;;", []byte("\x00\x01\xffabcdefgh\"\"\"\"\"\"\"\""), "text/plain", true)
	f.Fuzz(func(t *testing.T, path, query, name, value, cookie string, body []byte, kind string, force bool) {
		r := httptest.NewRequest("POST", "/", nil)
		r.URL.Path, r.URL.RawQuery = path, query
		if isToken(name) {
			r.Header.Set(name, value)
		}
		r.Header["Cookie"] = []string{cookie}
		r.Header["Content-Type"] = []string{kind}
		got := eventOf(t, event{request: r, body: body, base64: force})
		valid := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
		if got.RawQueryString != valid(query) || got.RawPath != or(valid(r.URL.EscapedPath()), "/") || got.Headers["content-type"] != valid(kind) {
			t.Errorf("query %q path %q type %q, want %q %q %q", got.RawQueryString, got.RawPath, got.Headers["content-type"], query, r.URL.EscapedPath(), kind)
		}
		plain := []byte(got.Body)
		if got.IsBase64Encoded {
			plain, _ = base64.StdEncoding.DecodeString(got.Body)
		}
		if !bytes.Equal(plain, body) || force && !got.IsBase64Encoded && len(body) > 0 {
			t.Errorf("body = %q (base64 %v), want %q", plain, got.IsBase64Encoded, body)
		}
	})
}

func FuzzQuote(f *testing.F) {
	f.Add("")
	f.Add("plain text of more than eight bytes, é")
	f.Add("\"\\\n\r\t\x00\x1f\x7f\u2028\xff")
	f.Add("1234567\x80\"abcdefg\\")
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendQuoted(nil, s), &got); err != nil {
			t.Fatalf("appendQuoted(%q): %v", s, err)
		}
		if want := strings.ToValidUTF8(s, "\uFFFD"); got != want {
			t.Errorf("appendQuoted(%q) reads %q, want %q", s, got, want)
		}
		if utf8.ValidString(s) && !bytes.Equal(appendText(nil, s), appendText(nil, []byte(s))) {
			t.Errorf("appendText(%q) differs between string and bytes", s)
		}
	})
}

// BenchmarkEvent: compare with benchstat against the same in encoding/json, the second of each pair.
func BenchmarkEvent(b *testing.B) {
	for _, size := range []int{2 << 10, 100 << 10, 1 << 20} {
		unit := `{"role":"user","content":"What a \"benchmark\" says\nis what it measures."},`
		body := []byte(strings.Repeat(unit, size/len(unit)))
		r := httptest.NewRequest("POST", "/v1/chat/completions", nil)
		r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer x"}, "User-Agent": {"bench"}}
		b.Run(strings.Join([]string{"own", sizeName(size)}, "/"), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			out := make([]byte, 0, 2*size+eventOverhead)
			v := event{request: r, body: body, domain: "localhost", id: "id", trace: "t", now: time.Now()}
			for b.Loop() {
				_ = v.append(out)
			}
		})
		b.Run(strings.Join([]string{"json", sizeName(size)}, "/"), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				_, _ = json.Marshal(events.LambdaFunctionURLRequest{Version: "2.0", Body: string(body)})
			}
		})
	}
}

func sizeName(n int) string {
	if n >= 1<<20 {
		return "1MB"
	}
	return map[int]string{2 << 10: "2KB", 100 << 10: "100KB"}[n]
}
