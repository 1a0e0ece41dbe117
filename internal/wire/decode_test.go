package wire

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func chat() Operation { return Operations()["/v1/chat/completions"] }

// decoded decodes a body that must be accepted.
func decoded(t testing.TB, body string) *Request {
	t.Helper()
	r, err := Decode(chat(), "", nil, []byte(body))
	if err != nil {
		t.Fatalf("Decode(%q) = %v, want no error", body, err)
	}
	return r
}

// refused decodes a body that must be refused as a 400.
func refused(t *testing.T, body string) *Error {
	t.Helper()
	r, err := Decode(chat(), "", nil, []byte(body))
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("Decode(%.200q) = %v, %v, want an *Error", body, r, err)
	}
	if e.Status != http.StatusBadRequest || e.Type != "invalid_request_error" {
		t.Errorf("Decode(%.200q) = status %d, type %q, want 400, invalid_request_error", body, e.Status, e.Type)
	}
	return e
}

func TestDecodeKeepsTheRequest(t *testing.T) {
	op := Operations()["/v1/messages"]
	header := http.Header{"Accept": {"*/*"}}
	body := []byte(`{"model":"m"}`)
	r, err := Decode(op, "beta=true", header, body)
	if err != nil {
		t.Fatal(err)
	}
	if r.Operation != op || r.Query != "beta=true" || &r.Body[0] != &body[0] || r.Header.Get("Accept") != "*/*" {
		t.Errorf("Decode = %+v, want the operation, query, header and body as given", r)
	}
}

func TestDecodeFields(t *testing.T) {
	type want struct {
		Model, User, Session, Litellm, Cache, Conversation, ConversationID, Previous string
		Stream, Usage                                                                bool
	}
	for body, want := range map[string]want{
		`{"model":"m"}`:                                                   {Model: "m"},
		" \r\n\t{ \"model\" :\n\"m\"\t} \n":                               {Model: "m"},
		`{"\u006dodel":"m"}`:                                              {Model: "m"},
		`{"mod\u0065l":"m-\u00e9\ud83d\ude00\n"}`:                         {Model: "m-é😀\n"},
		`{"model":"a\ud83d"}`:                                             {Model: "a\ufffd"},
		`{"model":"a\ude00\ud83d\u0041"}`:                                 {Model: "a\ufffd\ufffdA"},
		`{"model":"m","stream":true}`:                                     {Model: "m", Stream: true},
		`{"model":"m","stream":false}`:                                    {Model: "m"},
		`{"model":"m","stream":null}`:                                     {Model: "m"},
		`{"model":"m","Model":"x","STREAM":1,"Session_Id":"x"}`:           {Model: "m"},
		`{"model":"m","stream_options":{"include_usage":true}}`:           {Model: "m", Usage: true},
		`{"model":"m","stream_options":{"include_usage":"true"}}`:         {Model: "m"},
		`{"model":"m","stream_options":{"include_usage":false}}`:          {Model: "m"},
		`{"model":"m","stream_options":null}`:                             {Model: "m"},
		`{"model":"m","metadata":{"a":{"user_id":"no"},"user_id":"yes"}}`: {Model: "m", User: "yes"},
		`{"model":"m","metadata":{"user_id":7}}`:                          {Model: "m"},
		`{"model":"m","metadata":"x","conversation":[1]}`:                 {Model: "m"},
		`{"model":"m","conversation":"c1"}`:                               {Model: "m", Conversation: "c1"},
		`{"model":"m","conversation":{"id":"c2"}}`:                        {Model: "m", ConversationID: "c2"},
		`{"model":"m","conversation":{"id":null}}`:                        {Model: "m"},
		`{"model":"m","session_id":"s","litellm_session_id":"l","prompt_cache_key":"p","previous_response_id":"r"}`: {
			Model: "m", Session: "s", Litellm: "l", Cache: "p", Previous: "r",
		},
		`{"model":"m","session_id":42,"litellm_session_id":null,"prompt_cache_key":["p"],"previous_response_id":{}}`: {Model: "m"},
		`{"zz_new":{"b":1,"a":[1.0,1e21,-0.5E-7]},"n":-0,"t":[true,false,null],"e":{},"f":[],"model":"m"}`:           {Model: "m"},
	} {
		f := decoded(t, body).Fields
		got := want
		got.Model, got.User, got.Session, got.Litellm, got.Cache = f.Model, f.MetadataUserID, f.SessionID, f.LitellmSessionID, f.PromptCacheKey
		got.Conversation, got.ConversationID, got.Previous = f.Conversation, f.ConversationID, f.PreviousResponse
		got.Stream, got.Usage = f.Stream, f.IncludeUsage
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Decode(%s): fields differ (-want +got):\n%s", body, diff)
		}
	}
}

func TestDecodeSpans(t *testing.T) {
	body := ` { "tools" : [1] ,"system":"s","messages":[{"a":"]"}], "input":{"x":1},"instructions":null,"model":"m","stream_options":{"include_usage":true}}`
	f := decoded(t, body).Fields
	got := map[string]string{}
	for name, span := range map[string]Span{
		"tools": f.Tools, "system": f.System, "messages": f.Messages, "input": f.Input,
		"instructions": f.Instructions, "model": f.ModelSpan, "stream_options": f.StreamOptions, "include_usage": f.IncludeUsageSpan,
	} {
		got[name] = string(span.Of([]byte(body)))
	}
	want := map[string]string{
		"tools": "[1]", "system": `"s"`, "messages": `[{"a":"]"}]`, "input": `{"x":1}`, "instructions": "null",
		"model": `"m"`, "stream_options": `{"include_usage":true}`, "include_usage": "true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Decode: spans differ (-want +got):\n%s", diff)
	}
	if f.FirstMember != 2 || f.Empty {
		t.Errorf("Decode: FirstMember, Empty = %d, %v, want 2, false", f.FirstMember, f.Empty)
	}
}

// TestREQ02 is case S-REQ-02: the router has no opinion on what messages hold.
func TestREQ02ContentsAreTheProvidersBusiness(t *testing.T) {
	for _, messages := range []string{
		`[{"role":"assistant","content":null},{"role":"tool","content":""},{"role":"new"},{}]`,
		`null`, `[]`, `{}`, `"text"`, `0`, `[null,1,"x"]`,
		`[{"a":1,"a":2}]`, // duplicates inside are passed on
	} {
		decoded(t, `{"model":"m","messages":`+messages+`,"x":1}`)
	}
	decoded(t, `{"model":"m","tools":[{"model":1,"model":2}],"unknown":1,"unknown":2}`)
}

func TestDecodeMalformed(t *testing.T) {
	for _, c := range []struct {
		body string
		at   int // the byte the message must name
	}{
		{"", 0},
		{"  ", 2},
		{"[]", 0},
		{`"model"`, 0},
		{"42", 0},
		{"null", 0},
		{"\ufeff{\"model\":\"m\"}", 0},
		{"{", 1},
		{`{"model"`, 8},
		{`{"model"}`, 8},
		{`{"model":`, 9},
		{`{"model":}`, 9},
		{`{"model":"m"`, 12},
		{`{"model":"m",}`, 13},
		{`{,"model":"m"}`, 1},
		{`{"model":"m" "x":1}`, 13},
		{`{"model":"m";"x":1}`, 12},
		{`{model:"m"}`, 1},
		{`{'model':"m"}`, 1},
		{`{"model":"m`, 9},
		{`{"model":"m\"}`, 9},
		{`{"model":"m"}}`, 13},
		{`{"model":"m"} {"model":"n"}`, 14},
		{`{"model":"m"}x`, 13},
		{"{\"model\":\"m\"}\x00", 13},
		{`{"model":"m","x":tru}`, 17},
		{`{"model":"m","x":nulL}`, 17},
		{`{"model":"m","x":True}`, 17},
		{`{"model":"m","x":NaN}`, 17},
		{`{"model":"m","x":01}`, 17},
		{`{"model":"m","x":+1}`, 17},
		{`{"model":"m","x":-}`, 17},
		{`{"model":"m","x":1.}`, 17},
		{`{"model":"m","x":.5}`, 17},
		{`{"model":"m","x":1e}`, 17},
		{`{"model":"m","x":1e+}`, 17},
		{`{"model":"m","x":1 2}`, 19},
		{`{"model":"m","x":[1}`, 19},
		{`{"model":"m","x":{"a":[1}]}`, 24},
		{`{"model":"m","x":[`, 18},
		{`{"model":"m","x":["a]}`, 18},
		{`{"model":"m","x":[1]]}`, 20},
		{`{"model":"m\x"}`, 9},
		{`{"model":"\u12"}`, 9},
		{`{"model":"\u12g4"}`, 9},
		{"{\"model\":\"a\nb\"}", 9},
		{"{\"mo\ndel\":\"a\"}", 4},
		{`{"mod\qel":"a"}`, 1},
		{`{"model":"m","session_id":"\q"}`, 26},
		{`{"model":"m","metadata":{"user_id" "x"}}`, 35},
	} {
		e := refused(t, c.body)
		if e.Code != "invalid_json" || !strings.Contains(e.Message, fmt.Sprintf("(byte %d)", c.at)) {
			t.Errorf("Decode(%q) = code %q, %q, want invalid_json at byte %d", c.body, e.Code, e.Message, c.at)
		}
	}
}

func TestDecodeCutAnywhereIsMalformed(t *testing.T) {
	body := `{"model":"m\u00e9","stream":true,"metadata":{"user_id":"a\\"},"x":[{"y":-1.5e3},null,"]\"}"],"conversation":{"id":"c"}} `
	decoded(t, body)
	for cut := range len(body) - 1 {
		if e := refused(t, body[:cut]); e.Code != "invalid_json" {
			t.Errorf("Decode(%q) = code %q, want invalid_json", body[:cut], e.Code)
		}
	}
}

func TestDecodeDepthCostsNoStack(t *testing.T) {
	const depth = 1_000_000
	decoded(t, `{"model":"m","x":`+strings.Repeat("[", depth)+strings.Repeat("]", depth)+`}`)
	decoded(t, `{"model":"m","x":`+strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth)+`}`)
	for _, body := range []string{
		strings.Repeat("[", depth),
		`{"model":"m","x":` + strings.Repeat("[", depth),
		`{"model":"m","x":` + strings.Repeat("[", depth) + strings.Repeat("]", depth-1) + "}}",
		`{"model":"m","x":` + strings.Repeat(`{"a":`, depth),
		strings.Repeat(`{"model":`, depth),
	} {
		refused(t, body)
	}
}

// TestREQ03 is case S-REQ-03: router and provider must see the same request.
func TestREQ03DuplicatesThatRoute(t *testing.T) {
	members := map[string]string{
		"model": `"m"`, "stream": "true", "stream_options": "{}", "metadata": "{}", "session_id": `"s"`,
		"litellm_session_id": `"s"`, "prompt_cache_key": `"s"`, "conversation": `"s"`, "previous_response_id": `"s"`,
		"messages": "[]", "input": `""`, "system": `""`, "instructions": `""`, "tools": "[]", "service_tier": `"auto"`,
	}
	for name, value := range members {
		escaped := fmt.Sprintf(`\u%04x`, name[0]) + name[1:]
		every := ""
		for _, c := range name {
			every += fmt.Sprintf(`\u%04X`, c)
		}
		for _, second := range []string{name, escaped, every} {
			for _, other := range []string{value, "null", `"else"`, "[1]"} {
				body := fmt.Sprintf(`{"first":0,%q:%s,"x":"m","%s":%s}`, name, value, second, other)
				e := refused(t, body)
				if e.Code != "duplicate_field" || e.Param != name || !strings.Contains(e.Message, name) || !strings.Contains(e.Message, "byte ") {
					t.Errorf("Decode(%s) = %+v, want duplicate_field of %q with its place", body, e, name)
				}
			}
		}
	}
}

func TestREQ03DuplicatesInside(t *testing.T) {
	for body, param := range map[string]string{
		`{"model":"m","metadata":{"user_id":"a","user_id":"b"}}`:                                 "metadata.user_id",
		`{"model":"m","metadata":{"user_id":1,"x":2,"user\u005fid":1}}`:                          "metadata.user_id",
		`{"model":"m","stream_options":{"include_usage":true,"include_usage":true}}`:             "stream_options.include_usage",
		`{"model":"m","conversation":{"id":"a","\u0069d":"a"}}`:                                  "conversation.id",
		`{"model":"m","conversation":{"id":null,"id":"a"},"metadata":{"user_id":"a","other":1}}`: "conversation.id",
	} {
		if e := refused(t, body); e.Code != "duplicate_field" || e.Param != param {
			t.Errorf("Decode(%s) = code %q, param %q, want duplicate_field, %q", body, e.Code, e.Param, param)
		}
	}
	decoded(t, `{"model":"m","metadata":{"x":1,"x":2,"User_id":"a","user_id":"b"}}`)
}

func TestDecodeRefusesFields(t *testing.T) {
	for _, c := range []struct{ body, code, param string }{
		{`{}`, "missing_field", "model"},
		{`{"Model":"m"}`, "missing_field", "model"},
		{`{"messages":[{"model":"m"}]}`, "missing_field", "model"},
		{`{"model":""}`, "invalid_field", "model"},
		{`{"model":null}`, "invalid_field", "model"},
		{`{"model":42}`, "invalid_field", "model"},
		{`{"model":["m"]}`, "invalid_field", "model"},
		{`{"model":{"id":"m"}}`, "invalid_field", "model"},
		{"{\"model\":\"\xff\"}", "invalid_field", "model"},
		{`{"model":"m","stream":"true"}`, "invalid_field", "stream"},
		{`{"model":"m","stream":1}`, "invalid_field", "stream"},
		{`{"model":"m","stream":0}`, "invalid_field", "stream"},
		{`{"model":"m","stream":{}}`, "invalid_field", "stream"},
		{`{"stream":[],"model":"m"}`, "invalid_field", "stream"},
	} {
		e := refused(t, c.body)
		if e.Code != c.code || e.Param != c.param || !strings.Contains(e.Message, c.param) {
			t.Errorf("Decode(%q) = code %q, param %q, %q, want %q, %q", c.body, e.Code, e.Param, e.Message, c.code, c.param)
		}
	}
}

func TestDecodeKeepsInvalidUTF8(t *testing.T) {
	f := decoded(t, "{\"model\":\"m\",\"session_id\":\"a\xff\",\"prompt_cache_key\":\"\xed\xa0\x80\",\"metadata\":{\"user_id\":\"\xc3\"}}").Fields
	if f.SessionID != "a\xff" || f.PromptCacheKey != "\xed\xa0\x80" || f.MetadataUserID != "\xc3" {
		t.Errorf("Decode: %q %q %q, want the bytes as they came", f.SessionID, f.PromptCacheKey, f.MetadataUserID)
	}
}

func TestDecodeAllocations(t *testing.T) {
	body := conversationOf(100 << 10)
	if n := testing.AllocsPerRun(20, func() {
		if _, err := Decode(chat(), "", nil, body); err != nil {
			t.Fatal(err)
		}
	}); n > 4 {
		t.Errorf("Decode allocates %v times, want at most 4 (the request and its strings)", n)
	}
}

// A name of megabytes would be written into the pin, the event and the log.
func TestModelNamesAreBounded(t *testing.T) {
	for n, want := range map[int]bool{maxModel: true, maxModel + 1: false, 1 << 20: false} {
		_, err := Decode(Operation{Surface: Chat}, "", nil, []byte(`{"model":"`+strings.Repeat("m", n)+`"}`))
		if (err == nil) != want {
			t.Errorf("Decode(model of %d bytes) = %v, want accepted %v", n, err, want)
		}
	}
}
