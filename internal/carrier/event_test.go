package carrier

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// seen is what is read of an event, in values.
type seen struct {
	Method, Host, SourceIP, Path, RawPath, RawQuery string
	Headers                                         map[string]string
	Cookies                                         []string
	Body                                            string
	Base64                                          bool
}

func seenBy(e *event) seen {
	text := func(s span) string { return string(e.text[s.from:s.to]) }
	got := seen{
		Method: text(e.method), Host: text(e.host), SourceIP: text(e.sourceIP), Path: text(e.path),
		RawPath: text(e.rawPath), RawQuery: text(e.rawQuery), Headers: map[string]string{}, Body: string(e.body), Base64: e.base64,
	}
	for _, f := range e.headers {
		got.Headers[text(f.name)] = text(f.value)
	}
	for _, c := range e.cookies {
		got.Cookies = append(got.Cookies, text(c))
	}
	return got
}

// oracle reads an event with encoding/json, by exact names; false when it is not one.
func oracle(event []byte) (want seen, ok bool) {
	ok = true
	members := func(raw json.RawMessage) (m map[string]json.RawMessage) {
		ok = ok && (len(raw) == 0 || json.Unmarshal(raw, &m) == nil)
		return m
	}
	into := func(v any, raw json.RawMessage) { ok = ok && (len(raw) == 0 || json.Unmarshal(raw, v) == nil) }
	m := members(event)
	context := members(m["requestContext"])
	request := members(context["http"])
	headers := map[string]string{}
	into(&want.Method, request["method"])
	into(&want.SourceIP, request["sourceIp"])
	into(&want.Path, request["path"])
	into(&want.Host, context["domainName"])
	into(&want.RawPath, m["rawPath"])
	into(&want.RawQuery, m["rawQueryString"])
	into(&headers, m["headers"])
	into(&want.Cookies, m["cookies"])
	into(&want.Body, m["body"])
	into(&want.Base64, m["isBase64Encoded"])
	want.Headers = map[string]string{}
	for name, value := range headers {
		want.Headers[http.CanonicalHeaderKey(name)] = value
	}
	if len(want.Cookies) == 0 {
		want.Cookies = nil
	}
	return want, ok && want.Method != "" && len(want.Headers) == len(headers)
}

// documented is the example of Lambda's documentation, shortened.
const documented = `{
  "version": "2.0", "routeKey": "$default", "rawPath": "/my/path", "rawQueryString": "parameter1=value1&parameter1=value2&parameter2=value",
  "cookies": ["cookie1=a", "cookie2=b; c"],
  "headers": {"header1": "value1", "header2": "value1,value2", "host": "id.lambda-url.us-west-2.on.aws", "cookie": "cookie1=a; cookie2=b"},
  "queryStringParameters": {"parameter1": "value1,value2", "parameter2": "value"},
  "requestContext": {
    "accountId": "123456789012", "apiId": "<urlid>", "authentication": null,
    "authorizer": {"iam": {"accessKey": "AKIA", "cognitoIdentity": null, "userId": "AIDA"}},
    "domainName": "id.lambda-url.us-west-2.on.aws", "domainPrefix": "id",
    "http": {"method": "POST", "path": "/my/path", "protocol": "HTTP/1.1", "sourceIp": "123.123.123.123", "userAgent": "agent"},
    "requestId": "id", "routeKey": "$default", "stage": "$default", "time": "12/Mar/2020:19:03:58 +0000", "timeEpoch": 1583348638390
  },
  "body": "Hello from client!", "pathParameters": null, "isBase64Encoded": false, "stageVariables": null
}`

func eventSeeds() []string {
	return []string{
		documented,
		functionURL("POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"é \"x\" 😀"}]}`),
		functionURL("POST", "/", base64.StdEncoding.EncodeToString([]byte("x")), func(e *events.LambdaFunctionURLRequest) { e.IsBase64Encoded = true }),
		`{"requestContext":{"http":{"method":"GET"}}}`,
		`{"requestContext":{"http":{"method":"GET"}},"body":null,"headers":null,"cookies":null,"rawPath":null}`,
		`{"requestContext":{"http":{"method":"GET"}},"headers":{"x":null,"x-a":"1","x-a":"2"},"cookies":[null]}`,
		`{"body":"first","requestContext":{"http":{"method":"PUT"}},"body":"second"}`,
		`{"\u0062ody":"\ud83d\ude00\ud83d\\\/\b\f\n\r\t","requestContext":{"\u0068ttp":{"method":"\u0047ET"}}}`,
		`{"body":"\ud83d\ud83d\ude00 \udead\u0000 \uDE00\uD83D","requestContext":{"http":{"method":"A"}}}`,
		`{"a":[[[{"b":"]}\\\""}]]],"n":-1.5e+10,"t":true,"f":false,"requestContext":{"x":1,"http":{"method":"A","y":[]}}}`,
		`{"requestContext":{"http":{"method":"A"}},"body":5}`,
		`{"requestContext":{"http":{"method":"A"}},"body":"\x"}`,
		`{"requestContext":{"http":{"method":"A"}},"body":"\u12`,
		`{"requestContext":{"http":{"method":"A"}}} x`,
		`{,}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `[`, `{"a":[1,2}`, `{null:1}`, `{"body":"`, `{"body":"\`, ``, `  `,
	}
}

func checkEvent(t *testing.T, in string) {
	t.Helper()
	want, ok := oracle([]byte(in))
	var e event
	// A second event in the same scratch must not see the first.
	if err := e.decode([]byte(documented)); err != nil {
		t.Fatal(err)
	}
	err := e.decode([]byte(in))
	if !ok || !utf8.ValidString(in) {
		return // what encoding/json does not read may be read, or not
	}
	if err != nil {
		t.Fatalf("decode(%q) = %v, want none", in, err)
	}
	if diff := cmp.Diff(want, seenBy(&e)); diff != "" {
		t.Fatalf("decode(%q) (-want +got):\n%s", in, diff)
	}
}

func TestDecodeEvent(t *testing.T) {
	read := 0
	for _, in := range eventSeeds() {
		checkEvent(t, in)
		if _, ok := oracle([]byte(in)); ok {
			read++
		}
	}
	if read < 9 {
		t.Errorf("the oracle reads %d of the seeds", read)
	}
}

func FuzzDecodeEvent(f *testing.F) {
	for _, in := range eventSeeds() {
		f.Add(in)
	}
	f.Fuzz(checkEvent)
}

func TestDecodeRefuses(t *testing.T) {
	for _, in := range []string{
		``, ` `, `null`, `[]`, `"x"`, `{}`, `{"a":1}`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,}`, `{"a" 1}`, `{a:1}`, `{null:1}`,
		`{"requestContext":{"http":{"method":""}}}`, `{"requestContext":{"http":{"method":1}}}`, `{"requestContext":{"http":[]}}`, `{"requestContext":"x"}`,
		`{"requestContext":{"http":{"method":"A"}}}}`, `{"requestContext":{"http":{"method":"A"}}}{}`,
		`{"requestContext":{"http":{"method":"A"}},"body":5}`, `{"requestContext":{"http":{"method":"A"}},"body":nullx}`,
		`{"requestContext":{"http":{"method":"A"}},"body":"\x"}`, `{"requestContext":{"http":{"method":"A"}},"body":"\u12g4"}`,
		`{"requestContext":{"http":{"method":"A"}},"body":"\u1`, `{"requestContext":{"http":{"method":"A"}},"body":"\`, `{"requestContext":{"http":{"method":"A"}},"body":"x`,
		`{"requestContext":{"http":{"method":"A"}},"headers":{"a":1}}`, `{"requestContext":{"http":{"method":"A"}},"headers":["a"]}`,
		`{"requestContext":{"http":{"method":"A"}},"cookies":{"a":"b"}}`, `{"requestContext":{"http":{"method":"A"}},"cookies":"a"}`,
		`{"a":],"requestContext":{"http":{"method":"A"}}}`, `{"a":"\`, `{"a":[`, `{"a":[}`, `{"a":x`,
	} {
		var e event
		if err := e.decode([]byte(in)); err == nil {
			t.Errorf("decode(%q) = nil, want an error", in)
		}
	}
}

// Any text, escaped in any of the ways JSON has, comes out as encoding/json reads it,
// wherever it stands in the buffer.
func TestUnescape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in strings.Builder
		in.WriteString(strings.Repeat("x", rapid.IntRange(0, 9).Draw(t, "offset")))
		from := in.Len()
		for _, piece := range rapid.SliceOf(rapid.SampledFrom([]string{
			"a", "plain text ", "longer than a word of a machine ", "é", "\u2028", "😀", `\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`,
			`\u0041`, `\u00e9`, `\u2028`, `\ud83d\ude00`, `\uD83D`, `\ude00`, `\ud83d\u0041`, `\ud83d\n`, `\u0000`, `\uffff`,
		})).Draw(t, "pieces") {
			in.WriteString(piece)
		}
		end := in.Len()
		in.WriteString(`"`)
		after := rapid.SampledFrom([]string{"", ",", `,"b":"\\"}`, "        ,"}).Draw(t, "after")
		buf := []byte(in.String() + after)
		var want string
		if err := json.Unmarshal([]byte(`"`+in.String()[from:]), &want); err != nil {
			t.Fatal(err)
		}
		to, next, err := unescape(buf, from)
		if err != nil || string(buf[from:to]) != want || next != end+1 || string(buf[next:]) != after {
			t.Fatalf("unescape(%q, %d) = %q, %d, %v and then %q, want %q, %d and %q", in.String()+after, from, buf[from:to], next, err, buf[next:], want, end+1, after)
		}
	})
}

func TestCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOf(rapid.RuneFrom([]rune("abzABZ09-_.! \x00é:\x7f{"))).Draw(t, "name")
		got := []byte(name)
		canonical(got)
		if want := http.CanonicalHeaderKey(name); string(got) != want {
			t.Fatalf("canonical(%q) = %q, want %q", name, got, want)
		}
	})
}

func TestRequest(t *testing.T) {
	var e event
	if err := e.decode([]byte(documented)); err != nil {
		t.Fatal(err)
	}
	r := e.request(t.Context())
	body, err := io.ReadAll(r.Body)
	if err != nil || string(body) != "Hello from client!" || r.ContentLength != 18 {
		t.Errorf("body %q of %d bytes, %v", body, r.ContentLength, err)
	}
	const uri = "/my/path?parameter1=value1&parameter1=value2&parameter2=value"
	got := []string{r.Method, r.URL.Path, r.URL.RawPath, r.URL.RawQuery, r.URL.String(), r.RequestURI, r.Host, r.RemoteAddr, r.Proto, r.FormValue("parameter2")}
	want := []string{"POST", "/my/path", "", uri[9:], uri, uri, "id.lambda-url.us-west-2.on.aws", "123.123.123.123:0", "HTTP/1.1", "value"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	header := http.Header{"Header1": {"value1"}, "Header2": {"value1,value2"}, "Cookie": {"cookie1=a; cookie2=b; c"}}
	if diff := cmp.Diff(header, r.Header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	r.Header.Add("Header1", "more") // does not reach into another's values
	if diff := cmp.Diff([]string{"value1,value2"}, r.Header["Header2"]); diff != "" {
		t.Errorf("after Add (-want +got):\n%s", diff)
	}
}

// The request is the one a socket gives for the same request line.
func TestRequestTarget(t *testing.T) {
	for _, tt := range []struct{ rawPath, path, query string }{
		{"/", "/", ""},
		{"/v1/models/a%2Fb", "/", ""},
		{"/a b", "/", ""},
		{"/%C3%A9", "/", "x=%20&y"},
		{"/a//b/../c", "/", "?"},
		{"/a;b=c", "/", "q=a?b"},
		{"/a%zz", "/", ""},
		{"/%", "/", "%"},
		{"", "/from/context", "a=b"},
		{"", "", ""},
		{"relative", "/", ""},
		{"/é", "/", ""},
	} {
		in := functionURL("GET", tt.rawPath, "", func(e *events.LambdaFunctionURLRequest) {
			e.RawQueryString, e.RequestContext.HTTP.Path = tt.query, tt.path
		})
		var e event
		if err := e.decode([]byte(in)); err != nil {
			t.Fatal(err)
		}
		r := e.request(t.Context())
		wantURI := tt.rawPath
		if wantURI == "" {
			wantURI = tt.path
		}
		if !strings.HasPrefix(wantURI, "/") {
			wantURI = "/" + wantURI
		}
		want, err := url.ParseRequestURI(wantURI)
		if err != nil {
			want = &url.URL{Path: wantURI}
		}
		want.RawQuery = tt.query
		if tt.query != "" {
			wantURI += "?" + tt.query
		}
		if diff := cmp.Diff(want, r.URL); diff != "" || r.RequestURI != wantURI {
			t.Errorf("target of %q %q %q: URI %q, want %q (-want +got):\n%s", tt.rawPath, tt.path, tt.query, r.RequestURI, wantURI, diff)
		}
	}
}

func TestHost(t *testing.T) {
	for _, tt := range []struct {
		headers map[string]string
		domain  string
		want    string
	}{
		{map[string]string{"host": "api.example"}, "x.on.aws", "api.example"},
		{map[string]string{"Host": "api.example"}, "", "api.example"},
		{nil, "x.on.aws", "x.on.aws"},
		{nil, "", ""},
	} {
		in := functionURL("GET", "/", "", func(e *events.LambdaFunctionURLRequest) {
			e.Headers, e.RequestContext.DomainName = tt.headers, tt.domain
		})
		var e event
		if err := e.decode([]byte(in)); err != nil {
			t.Fatal(err)
		}
		if r := e.request(t.Context()); r.Host != tt.want || r.Header["Host"] != nil {
			t.Errorf("Host of %v, %q = %q and header %q, want %q and none", tt.headers, tt.domain, r.Host, r.Header["Host"], tt.want)
		}
	}
}

// The prelude is JSON whatever a handler puts into its headers.
func TestPrelude(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("\"\\\x00\x1f\x7f\r\n é😀")))), 1, 3).Draw(t, "values")
		raw := rapid.SliceOf(rapid.Byte()).Draw(t, "raw")
		header := http.Header{"X-Values": values, "X-Raw": {string(raw)}, "Set-Cookie": values, "Bad name": {"x"}, "Transfer-Encoding": {"chunked"}, "X-None": nil}
		out := appendPrelude(nil, 207, header)
		var got answered
		text, rest, _ := bytes.Cut(out, []byte(preludeEnd))
		if err := json.Unmarshal(text, &got); err != nil || len(rest) != 0 {
			t.Fatalf("prelude %q: %v", out, err)
		}
		clean := func(s string) string {
			return strings.Map(func(r rune) rune {
				if unicode.IsControl(r) && r < 0x80 && r != '\t' {
					return ' '
				}
				return r
			}, string([]rune(s)))
		}
		want := answered{Status: 207, Headers: map[string]string{"X-Values": clean(strings.Join(values, ","))}}
		for _, v := range values {
			want.Cookies = append(want.Cookies, clean(v))
		}
		if got.Headers["X-Raw"] = ""; !cmp.Equal(want.Headers["X-Values"], got.Headers["X-Values"]) || !cmp.Equal(want.Cookies, got.Cookies) || len(got.Headers) != 2 {
			t.Fatalf("prelude %q = %+v, want %+v and X-Raw", out, got, want)
		}
	})
}

func TestDecodeBase64InPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		got, err := decodeBase64([]byte(base64.StdEncoding.EncodeToString(want)))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("decodeBase64(%s) = %v, %v, want %v", base64.StdEncoding.EncodeToString(want), got, err, want)
		}
	})
	if _, err := decodeBase64([]byte("a")); err == nil || !strings.Contains(fmt.Sprint(err), "body") {
		t.Errorf("decodeBase64(a) = %v, want an error about the body", err)
	}
}
