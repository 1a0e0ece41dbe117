package session

import (
	"net/http"
	"strings"
	"testing"

	"switchboard/internal/wire"
)

func defaults() Settings {
	return Settings{Enabled: true, AutoDetect: true, BuiltinRules: true, MaxLength: 200}
}

func newIdentifier(t testing.TB, settings Settings, clientKeyHeaders ...string) *Identifier {
	t.Helper()
	i, err := New(settings, clientKeyHeaders...)
	if err != nil {
		t.Fatalf("New(%+v) = %v, want no error", settings, err)
	}
	return i
}

// request decodes a request as it would be sent; headers are name, value pairs.
func request(t testing.TB, path, body string, headers ...string) *wire.Request {
	t.Helper()
	h := http.Header{}
	for n := 0; n < len(headers); n += 2 {
		h.Add(headers[n], headers[n+1])
	}
	r, err := wire.Decode(wire.Operations()[path], "", h, []byte(body))
	if err != nil {
		t.Fatalf("Decode(%s) = %v", body, err)
	}
	return r
}

const (
	chatPath       = "/v1/chat/completions"
	messagesPath   = "/v1/messages"
	responsesPath  = "/v1/responses"
	embeddingsPath = "/v1/embeddings"
	hello          = `{"model":"m-oai","messages":[{"role":"user","content":"hi"}]}`
)

func identify(t testing.TB, path, body string, headers ...string) Identity {
	t.Helper()
	return newIdentifier(t, defaults()).Identify(request(t, path, body, headers...), "", nil)
}

// with is hello with more members at its end.
func with(members string) string { return strings.TrimSuffix(hello, "}") + "," + members + "}" }

// TestSID01 is case S-SID-01: three generations of one client's signal name one session.
func TestSID01OneSessionFromThreeGenerations(t *testing.T) {
	const uuid = "5d0c7a4e-1111-4222-8333-9f00aa00bb01"
	legacy := `{"model":"m-ant","max_tokens":9,"metadata":{"user_id":"user_ab12_account__session_` + uuid + `"},"messages":[{"role":"user","content":"hi"}]}`
	document := `{"model":"m-ant","max_tokens":9,"metadata":{"user_id":"{\"device_id\":\"d\",\"account_uuid\":\"\",\"session_id\":\"` + uuid + `\"}"},"messages":[{"role":"user","content":"yo"}]}`
	bare := `{"model":"m-ant","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`
	for _, c := range []struct {
		got    Identity
		source string
	}{
		{identify(t, messagesPath, legacy), "body:metadata.user_id"},
		{identify(t, messagesPath, document), "body:metadata.user_id"},
		{identify(t, messagesPath, bare, "x-claude-code-session-id", uuid), "header:x-claude-code-session-id"},
		{identify(t, "/v1/messages/count_tokens", legacy), "body:metadata.user_id"},
	} {
		if want := (Identity{uuid, uuid, c.source}); c.got != want {
			t.Errorf("Identify = %+v, want %+v", c.got, want)
		}
	}
}

func TestSID01UserIDs(t *testing.T) {
	const uuid = "5D0c7a4e-1111-4222-8333-9f00aa00bb01"
	for userID, want := range map[string]string{
		"user_x_account_y_session_" + uuid:                    uuid, // its case is kept
		"_session_" + uuid:                                    uuid,
		" _session_" + uuid + "\n":                            uuid,
		"a_session_b_session_" + uuid:                         uuid,
		`{"session_id":"any id"}`:                             "any id",
		` { "x":{"session_id":"no"}, "session\u005fid":"s" }`: "s",
		`{"session_id":" é "}`:                                "é",
		uuid:                                                  "",
		"session_" + uuid:                                     "",
		"user_session_" + uuid + "x":                          "",
		"user_session_" + uuid[1:]:                            "",
		"user_session_g" + uuid[1:]:                           "",
		"user_session_" + strings.ReplaceAll(uuid, "-", "0"):  "",
		"user_session_":                                       "",
		"user_deadbeef":                                       "",
		"":                                                    "",
		`{"session_id":42}`:                                   "",
		`{"session_id":null}`:                                 "",
		`{"session_id":""}`:                                   "",
		`{"session_id":"a"`:                                   "",
		`{"session_id":"a"} x`:                                "",
		`{"session_id":"a","session_id":"b"}`:                 "",
		`{"Session_ID":"a"}`:                                  "",
		`{"session_id":{"session_id":"a"}}`:                   "",
		`["session_id"]`:                                      "",
		`{"session_id":"` + strings.Repeat("a", 201) + `"}`:   "",
		`{"session_id":"\u0000\u0001"}`:                       "",
		`{"session_id":"\x"}`:                                 "",
	} {
		body := `{"model":"m-ant","messages":[],"metadata":{"user_id":` + string(wire.AppendQuoted(nil, userID)) + `}}`
		if got := identify(t, messagesPath, body).ID; got != want {
			t.Errorf("Identify(user_id %q) = %q, want %q", userID, got, want)
		}
	}
}

// TestSID03 is case S-SID-03: ids of one request are not sessions.
func TestSID03PerRequestIDs(t *testing.T) {
	for _, n := range []string{"1", "2"} {
		got := identify(t, chatPath, with(`"prompt_cache_key":"zed-77","request_id":"r`+n+`","id":"i`+n+`","user":"u"`),
			"X-Client-Request-Id", n, "X-Request-Id", "aa"+n, "Traceparent", "00-"+n, "X-Amzn-Trace-Id", n,
			"X-Correlation-Id", n, "Idempotency-Key", n, "User-Agent", n, "X-Forwarded-For", n)
		if want := (Identity{"zed-77", "zed-77", "body:prompt_cache_key"}); got != want {
			t.Errorf("Identify = %+v, want %+v", got, want)
		}
	}
}

func TestIdentifyOrder(t *testing.T) {
	var headers []string
	members := ""
	resolve := func(key string) (Identity, bool) {
		return Identity{"of " + key, "key", "previous_response_id"}, true
	}
	i := newIdentifier(t, Settings{Enabled: true, AutoDetect: true, BuiltinRules: true, Headers: []Rule{{Header: "x-first"}, {Header: "X-SECOND"}}})
	type step struct{ header, member, want, source string }
	steps := []step{{source: "auto"}}
	steps = append(steps, step{member: `"previous_response_id":"r1"`, want: "of r1", source: "previous_response_id"})
	for _, f := range []struct{ member, want, source string }{
		{`"conversation":{"id":"c1"}`, "c1", "body:conversation.id"},
		{`"prompt_cache_key":"p1"`, "p1", "body:prompt_cache_key"},
		{`"litellm_session_id":"l1"`, "l1", "body:litellm_session_id"},
		{`"session_id":"s1"`, "s1", "body:session_id"},
		{`"metadata":{"user_id":"{\"session_id\":\"u1\"}"}`, "u1", "body:metadata.user_id"},
	} {
		steps = append(steps, step{"", f.member, f.want, f.source})
	}
	for _, name := range []string{
		"x-bf-session-id", "X-Session-Affinity", "x-opencode-session", "agent-session-id", "Helicone-Session-Id",
		"x-litellm-session-id", "session_id", "session-id", "x-claude-code-session-id", "x-session-id", "X-Second", "x-FIRST",
	} {
		steps = append(steps, step{name, "", "of " + name, "header:" + strings.ToLower(name)})
	}
	// Each step adds a signal that goes before all earlier ones.
	for _, s := range steps {
		if s.member != "" {
			members += "," + s.member
		}
		if s.header != "" {
			headers = append(headers, s.header, s.want)
		}
		body := strings.TrimSuffix(hello, "}") + members + "}"
		got := i.Identify(request(t, chatPath, body, headers...), "", resolve)
		if got.Source != s.source || (s.want != "" && got.ID != s.want) {
			t.Errorf("Identify(%s, %q) = %+v, want %q from %s", body, headers, got, s.want, s.source)
		}
	}
	got := identify(t, chatPath, with(`"conversation":"c2"`))
	if want := (Identity{"c2", "c2", "body:conversation"}); got != want {
		t.Errorf("Identify = %+v, want %+v", got, want)
	}
}

// TestSID06 is case S-SID-06: bad values fall through to the next signal.
func TestSID06BadValuesFallThrough(t *testing.T) {
	for _, value := range []string{
		strings.Repeat("x", 301), strings.Repeat("x", 201), "   ", "", "\t", "a\tb", "a\x7fb", "a\x00b", "a\nb", "a\r\nX: 1", "a\x1b[0m",
		"a\u0085b", "a\u009bb", "\xff", "a\xc3", "\xed\xa0\x80", strings.Repeat("é", 101),
	} {
		for _, name := range []string{"X-Session-Id", "session_id", "X-Bf-Session-Id"} {
			if got := identify(t, chatPath, with(`"session_id":"ok-1"`), name, value); got.ID != "ok-1" || got.Source != "body:session_id" {
				t.Errorf("Identify(%s: %.20q) = %+v, want ok-1 of the body", name, value, got)
			}
		}
	}
	for _, value := range []string{`42`, `null`, `true`, `["a"]`, `{"id":"a"}`, `""`, `"  "`, `"a\u0000b"`, `"a\nb"`, `"\u007f"`, `"` + strings.Repeat("x", 201) + `"`} {
		for _, field := range []string{"session_id", "litellm_session_id", "prompt_cache_key"} {
			if got := identify(t, chatPath, with(`"`+field+`":`+value)); got.Source != "auto" || !strings.HasPrefix(got.ID, "auto-") {
				t.Errorf("Identify(%s %s) = %+v, want an automatic id", field, value, got)
			}
			if got := identify(t, chatPath, with(`"`+field+`":`+value+`,"conversation":"c"`)); got.ID != "c" {
				t.Errorf("Identify(%s %s, conversation) = %+v, want c", field, value, got)
			}
		}
	}
}

func TestSID06GoodValuesAreKept(t *testing.T) {
	for value, want := range map[string]string{
		" S1 ":                    "S1",
		strings.Repeat("x", 200):  strings.Repeat("x", 200),
		strings.Repeat("é", 100):  strings.Repeat("é", 100),
		"a,b":                     "a,b",
		"a, a":                    "a",
		"a,a,a":                   "a",
		"a,":                      "a,",
		"%0d%0aX-Evil:1":          "%0d%0aX-Evil:1",
		`{"a":1,"b":2}`:           `{"a":1,"b":2}`,
		"x\u00a0y":                "x\u00a0y",
		"00000000-0000-0000-0000": "00000000-0000-0000-0000",
	} {
		if got := identify(t, chatPath, hello, "X-Session-Id", value); got.ID != want || got.Key != want {
			t.Errorf("Identify(X-Session-Id: %q) = %+v, want %q", value, got, want)
		}
	}
	if got := identify(t, chatPath, hello, "X-Session-Id", "\t", "X-Session-Id", "second", "X-Session-Id", "third"); got.ID != "second" {
		t.Errorf("Identify of a header sent three times = %+v, want its first valid value", got)
	}
}

// TestAUD05 is case S-AUD-05: session ids are opaque text.
func TestAUD05IDsAreOpaque(t *testing.T) {
	ids := []string{"host/BLAH|x", "a%2Fb", "a/b", "a+b c&d=e#f", "会话-1", "../admin", "?x=1", "a;b", `a"b\c`, "😀", "-", "null", "auto-1"}
	seen := map[string]string{}
	for _, id := range ids {
		for _, got := range []Identity{
			identify(t, chatPath, hello, "X-Session-Id", id),
			identify(t, chatPath, with(`"session_id":`+string(wire.AppendQuoted(nil, id)))),
		} {
			if got.ID != id || (seen[got.Key] != "" && seen[got.Key] != id) {
				t.Errorf("Identify(%q) = %+v (key of %q), want the id as given", id, got, seen[got.Key])
			}
			seen[got.Key] = id
		}
	}
}

// TestSEC05 is case S-SEC-05: ids that would split a header or a log line.
func TestSEC05ForgingIDs(t *testing.T) {
	for _, body := range []string{
		with(`"session_id":"x\r\nSet-Cookie: a=1","prompt_cache_key":"next"`),
		with(`"session_id":"x\nlevel=error msg=forged","prompt_cache_key":"next"`),
		with(`"session_id":"x\u0085y","prompt_cache_key":"next"`),
		with(`"metadata":{"user_id":"{\"session_id\":\"\\u0000\\u0001\"}"},"prompt_cache_key":"next"`),
	} {
		if got := identify(t, chatPath, body); got.ID != "next" {
			t.Errorf("Identify(%s) = %+v, want the next signal", body, got)
		}
	}
	if got := identify(t, chatPath, hello, "X-Session-Id", "%0d%0aX-Evil:1"); got.ID != "%0d%0aX-Evil:1" {
		t.Errorf("Identify = %+v, want the literal", got)
	}
}

// TestDB04b is case S-DB-04 b: length is counted in bytes, so that no key is too long.
func TestDB04bLengthInBytes(t *testing.T) {
	id := strings.Repeat("会", 700)
	if got := identify(t, chatPath, hello, "X-Session-Id", id); got.Source != "auto" {
		t.Errorf("Identify(2100 bytes) = %+v, want an automatic id", got)
	}
	if got := identify(t, chatPath, hello, "X-Session-Id", id[:198]); got.ID != id[:198] {
		t.Errorf("Identify(198 bytes) = %+v, want the id", got)
	}
	settings := defaults()
	settings.MaxLength = 2100
	if _, err := New(settings); err == nil {
		t.Error("New(MaxLength 2100) = nil, want an error: such a key cannot be stored")
	}
	settings.MaxLength = -1
	if _, err := New(settings); err == nil {
		t.Error("New(MaxLength -1) = nil, want an error")
	}
	settings.MaxLength = 5
	if got := newIdentifier(t, settings).Identify(request(t, chatPath, hello, "X-Session-Id", "123456", "Session-Id", "12345"), "", nil); got.ID != "12345" {
		t.Errorf("Identify(MaxLength 5) = %+v, want 12345", got)
	}
}

func TestSwitches(t *testing.T) {
	full := with(`"prompt_cache_key":"p","metadata":{"user_id":"{\"session_id\":\"u\"}"}`)
	headers := []string{"X-Session-Id", "h", "X-Mine", "mine"}
	for _, c := range []struct {
		name    string
		edit    func(*Settings)
		body    string
		headers []string
		want    string // source
	}{
		{"disabled", func(s *Settings) { s.Enabled = false }, full, headers, ""},
		{"no detection", func(s *Settings) { s.AutoDetect = false }, hello, nil, ""},
		{"no detection, signal", func(s *Settings) { s.AutoDetect = false }, full, nil, "body:metadata.user_id"},
		{"no built-in rules", func(s *Settings) { s.BuiltinRules = false }, full, headers, "auto"},
		{"no built-in rules, own", func(s *Settings) { s.BuiltinRules = false; s.Headers = []Rule{{Header: "x-mine"}} }, full, headers, "header:x-mine"},
		{"own first", func(s *Settings) { s.Headers = []Rule{{Header: "X-Absent"}, {Header: "X-mine"}} }, full, headers, "header:x-mine"},
		{"nothing on", func(s *Settings) { s.BuiltinRules, s.AutoDetect = false, false }, full, headers, ""},
	} {
		settings := defaults()
		c.edit(&settings)
		got := newIdentifier(t, settings).Identify(request(t, chatPath, c.body, c.headers...), "/t", nil)
		if got.Source != c.want || (c.want == "") != (got == Identity{}) {
			t.Errorf("%s: Identify = %+v, want source %q", c.name, got, c.want)
		}
	}
}

func TestEmbeddingsAreNotDetected(t *testing.T) {
	const body = `{"model":"m-emb","input":"hi","messages":[{"role":"user","content":"hi"}],"prompt_cache_key":"p"}`
	if got := identify(t, embeddingsPath, `{"model":"m-emb","input":"hi"}`); got != (Identity{}) {
		t.Errorf("Identify(embeddings) = %+v, want none", got)
	}
	if got := identify(t, embeddingsPath, body); got.ID != "p" {
		t.Errorf("Identify(embeddings) = %+v, want p", got)
	}
	if got := identify(t, embeddingsPath, body, "Session-Id", "h"); got.ID != "h" {
		t.Errorf("Identify(embeddings) = %+v, want h", got)
	}
}
