package session

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// auto is the automatic id of a body; it fails when another source named the session.
func auto(t testing.TB, path, body string) string {
	t.Helper()
	got := identify(t, path, body)
	if got.Source != "auto" || !regexp.MustCompile(`^auto-[0-9a-f]{32}$`).MatchString(got.ID) {
		t.Fatalf("Identify(%s) = %+v, want an automatic id", body, got)
	}
	return got.ID
}

// same checks that all bodies have one id, and returns it.
func same(t *testing.T, path string, bodies ...string) string {
	t.Helper()
	first := auto(t, path, bodies[0])
	for _, body := range bodies[1:] {
		if got := auto(t, path, body); got != first {
			t.Errorf("Identify(%s) = %s\nIdentify(%s) = %s, want the same", bodies[0], first, body, got)
		}
	}
	return first
}

// different checks that all bodies have ids of their own.
func different(t *testing.T, path string, bodies ...string) {
	t.Helper()
	seen := map[string]string{}
	for _, body := range bodies {
		id := auto(t, path, body)
		if other, ok := seen[id]; ok {
			t.Errorf("Identify(%s)\nIdentify(%s) = %s for both, want different ones", other, body, id)
		}
		seen[id] = body
	}
}

// none checks that no body has a session.
func none(t *testing.T, path string, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		if got := identify(t, path, body); got != (Identity{}) {
			t.Errorf("Identify(%.200s) = %+v, want none", body, got)
		}
	}
}

// TestSID02 is case S-SID-02: a user id without a session in it is not a session.
func TestSID02UserIDIsNoSession(t *testing.T) {
	const form = `{"model":"m-ant","max_tokens":9,"metadata":{"user_id":%q},"messages":[{"role":"user","content":%q}%s]}`
	turn2 := `,{"role":"assistant","content":"ok"},{"role":"user","content":"and bar"}`
	id := same(t, messagesPath,
		fmt.Sprintf(form, "user_deadbeef", "rename foo", ""),
		fmt.Sprintf(form, "user_0badf00d", "rename foo", turn2),
		fmt.Sprintf(form, "b7e4f0c2-9f14-4e57-8e31-77a0a0aa0001", "rename foo", turn2+turn2),
	)
	if other := auto(t, messagesPath, fmt.Sprintf(form, "user_deadbeef", "unrelated question", "")); other == id {
		t.Errorf("Identify of another first message = %s for both, want another id", other)
	}
	// Who calls from where with what key makes no session.
	i := newIdentifier(t, defaults())
	for n := range 3 {
		r := request(t, messagesPath, fmt.Sprintf(form, "u", "rename foo", ""), "User-Agent", fmt.Sprint(n), "X-Forwarded-For", fmt.Sprint(n), "Authorization", fmt.Sprint(n))
		if got := i.Identify(r, "", nil); got.ID != id {
			t.Errorf("Identify from client %d = %s, want %s", n, got.ID, id)
		}
	}
}

// TestSID04 is case S-SID-04: the opening hash ignores what clients rewrite on every turn.
func TestSID04RewrittenOpenings(t *testing.T) {
	same(t, messagesPath,
		`{"model":"m-ant","system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=9.1.0.aa1; cc_entrypoint=cli; cch=00a1f;"},{"type":"text","text":"You fix code."}],
     "messages":[{"role":"user","content":[{"type":"text","text":"fix a.go","cache_control":{"type":"ephemeral"}}]}]}`,
		`{"model":"m-ant","system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=9.1.0.b07; cc_entrypoint=cli; cch=9c3de;"},{"type":"text","text":"You fix code."}],
     "messages":[{"role":"user","content":"fix a.go"},{"role":"assistant","content":"done"},{"role":"user","content":[{"type":"text","text":"thanks","cache_control":{"type":"ephemeral"}}]}]}`,
		`{"messages":[{"content":"fix a.go","role":"user"}],"system":"You fix code.","model":"m-ant"}`,
		`{"model":"m-ant","system":[{"cache_control":{"type":"ephemeral","ttl":"1h"},"text":"You fix code.","type":"text"}],"messages":[{"role":"user","content":"fix\u0020a.go"}]}`,
		`{"model":"m-ant","stream":true,"max_tokens":1,"temperature":0.5,"tools":[],"system":"You fix code.","messages":[{"role":"user","content":"fix a.go","cache_control":null}]}`,
	)
	same(t, chatPath, // no system in any of them
		hello,
		`{"model":"m-oai","system":null,"messages":[{"role":"user","content":"hi"}]}`,
		`{"model":"m-oai","system":[],"tools":null,"messages":[{"role":"user","content":"hi"}]}`,
		`{"model":"m-oai","system":[{"type":"text","text":"x-anthropic-billing-header: 1","cache_control":{}}],"messages":[{"role":"user","content":"hi"}]}`,
		`{"model":"m-oai","system":"x-anthropic-billing-header: 2","messages":[{"role":"user","content":"hi"}]}`,
	)
}

func TestSID04RewrittenTools(t *testing.T) {
	const form = `{"model":"m","tools":[%s],"messages":[{"role":"user","content":"hi"}]}`
	same(t, messagesPath,
		fmt.Sprintf(form, `{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":"string"},"b":{"enum":[1,2.0]}}}}`),
		fmt.Sprintf(form, ` {"input_schema" : {"properties":{"b":{"enum":[1 , 2.0]},"a":{"type":"str\u0069ng"}},"type":"object"},"name":"f","cache_control":{"type":"ephemeral"}} `),
	)
	different(t, messagesPath,
		fmt.Sprintf(form, ``),
		fmt.Sprintf(form, `{"name":"f"}`),
		fmt.Sprintf(form, `{"name":"g"}`),
		fmt.Sprintf(form, `{"name":"f"},{"name":"g"}`),
		fmt.Sprintf(form, `{"name":"g"},{"name":"f"}`),
		fmt.Sprintf(form, `{"name":"f","n":1}`),
		fmt.Sprintf(form, `{"name":"f","n":"1"}`),
		fmt.Sprintf(form, `{"name":"f","n":1.0}`),
		fmt.Sprintf(form, `{"name":"f","n":true}`),
		fmt.Sprintf(form, `{"name":"f","n":null}`),
		fmt.Sprintf(form, `{"name":"f","n":[]}`),
		fmt.Sprintf(form, `{"name":"f","n":{}}`),
		fmt.Sprintf(form, `{"name":"f","n":[[]]}`),
		fmt.Sprintf(form, `{"name":"f","n":[[],[]]}`),
		fmt.Sprintf(form, `{"name":"f","n":[["a"],"b"]}`),
		fmt.Sprintf(form, `{"name":"f","n":[["a","b"]]}`),
		fmt.Sprintf(form, `{"name":"f","n":"a","m":"b"}`),
		fmt.Sprintf(form, `{"name":"f","n":"am","":"b"}`),
	)
}

// TestREQ02 is case S-REQ-02: developer and system both count as system context.
func TestREQ02DeveloperEqualsSystem(t *testing.T) {
	const user = `{"role":"user","content":"hi"}`
	same(t, chatPath,
		`{"model":"m","messages":[{"role":"system","content":"be terse"},`+user+`]}`,
		`{"model":"m","messages":[{"role":"developer","content":"be terse"},`+user+`]}`,
		`{"model":"m","messages":[{"content":[{"text":"be terse","type":"text"}],"role":"d\u0065veloper"},`+user+`,{"role":"assistant","content":"x"}]}`,
		`{"model":"m","messages":[{"role":"system","content":[{"type":"text","text":"x-anthropic-billing-header: 7"},{"type":"text","text":"be terse"}]},`+user+`]}`,
	)
	different(t, chatPath,
		`{"model":"m","messages":[`+user+`]}`,
		`{"model":"m","messages":[{"role":"system","content":"be terse"},`+user+`]}`,
		`{"model":"m","messages":[{"role":"assistant","content":"be terse"},`+user+`]}`,
		`{"model":"m","messages":[{"role":"system","content":"be long"},`+user+`]}`,
		`{"model":"m","messages":[{"role":"system","content":"be terse","name":"n"},`+user+`]}`,
		`{"model":"m","messages":[{"role":"system","content":"be"},{"role":"system","content":"terse"},`+user+`]}`,
		`{"model":"m","messages":[{"role":"user","content":"x-anthropic-billing-header: 7"}]}`, // the user may say so
		`{"model":"m","messages":[{"role":"user","content":"x-anthropic-billing-header: 8"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"developer"}]}`,
		`{"model":"n","messages":[`+user+`]}`,
		`{"model":"m","messages":[{"role":"user","content":["hi"]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"hi"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","text":"hi"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi","detail":1}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAB"}}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":null}]}`,
		`{"model":"m","messages":[{"role":"user"}]}`,
	)
}

// TestREQ04 is case S-REQ-04: input as string and as array are both accepted.
func TestREQ04InputForms(t *testing.T) {
	same(t, responsesPath,
		`{"model":"m","input":"hi"}`,
		`{"model":"m","input":"\u0068i","instructions":null}`,
		`{"model":"m","input":[{"role":"user","content":"hi"}]}`,
		`{"model":"m","input":[{"type":"message","role":"user","content":"hi"}]}`,
		`{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},{"role":"assistant","content":"x"}],"store":false}`,
		`{"model":"m","input":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`,
	)
	same(t, responsesPath,
		`{"model":"m","input":[{"role":"developer","content":"d"},{"role":"user","content":"hi"}]}`,
		`{"model":"m","input":[{"role":"system","content":[{"type":"input_text","text":"d"}]},{"role":"user","content":"hi"}]}`,
	)
	different(t, responsesPath,
		`{"model":"m","input":"hi"}`,
		`{"model":"m","input":"ho"}`,
		`{"model":"m","input":"hi","instructions":"be terse"}`,
		`{"model":"m","input":"hi","instructions":"be long"}`,
		`{"model":"m","input":"hi","tools":[{"type":"function","name":"f"}]}`,
		`{"model":"m","input":[{"role":"system","content":"be terse"},{"role":"user","content":"hi"}]}`,
		`{"model":"m","input":[{"type":"item_reference","id":"a"},{"role":"user","content":"hi"}]}`,
	)
}

func TestNoUserTurnNoID(t *testing.T) {
	system := `{"role":"system","content":"s"},`
	none(t, chatPath,
		`{"model":"m"}`,
		`{"model":"m","messages":null}`,
		`{"model":"m","messages":[]}`,
		`{"model":"m","messages":{}}`,
		`{"model":"m","messages":"hi"}`,
		`{"model":"m","messages":[{"role":"assistant","content":"x"}]}`,
		`{"model":"m","messages":[{"role":"User","content":"x"}]}`,
		`{"model":"m","messages":[{"content":{"role":"user"}}]}`,
		`{"model":"m","messages":["user"]}`,
		`{"model":"m","input":[{"role":"user","content":"hi"}]}`,
		`{"model":"m","messages":[`+strings.Repeat(system, 8)+`{"role":"user","content":"hi"}]}`,
		// Not JSON inside: the provider's to refuse.
		`{"model":"m","messages":[{"role":"user","content":tru}]}`,
		`{"model":"m","messages":[{"role":"user" "content":1}]}`,
		`{"model":"m","messages":[{"role":"user","content":"\q"}]}`,
		`{"model":"m","messages":[,{"role":"user"}]}`,
		`{"model":"m","tools":[{"a"}],"messages":[{"role":"user","content":"hi"}]}`,
		`{"model":"m","tools":[1,],"messages":[{"role":"user","content":"hi"}]}`,
		`{"model":"m","system":[,],"messages":[{"role":"user","content":"hi"}]}`,
	)
	none(t, responsesPath, `{"model":"m","input":[{"role":"assistant","content":"x"}]}`, `{"model":"m","input":7}`, hello)
	auto(t, chatPath, `{"model":"m","messages":[`+strings.Repeat(system, 7)+`{"role":"user","content":"hi"}]}`)
}

func TestHistoryBehindTheOpeningIsNotRead(t *testing.T) {
	body := func(history string) string {
		return `{"model":"m","messages":[{"role":"user","content":"hi"}` + history + `]}`
	}
	same(t, chatPath, body(""), body(`,{"role":"user","content":"more"}`), body(` "garbage": that only the provider judges`), body(strings.Repeat(`,{"x":[`, 3)+strings.Repeat(`]}`, 3)))
}

func TestTenantsHaveTheirOwnIDs(t *testing.T) {
	i := newIdentifier(t, defaults())
	ids, keys := map[string]bool{}, map[string]bool{}
	paths := []string{"", "/a", "/b", "/a/b", "/am-oai", "/a\x01"}
	for _, path := range paths {
		got := i.Identify(request(t, chatPath, hello), path, nil)
		ids[got.ID], keys[got.Key] = true, true
		if got.Key != Scope(path, got.ID) {
			t.Errorf("Identify(%q) = %+v, want key %q", path, got, Scope(path, got.ID))
		}
	}
	if len(ids) != len(paths) || len(keys) != len(paths) {
		t.Errorf("%d tenants have %d ids and %d keys, want as many", len(paths), len(ids), len(keys))
	}
}

func TestDeepOpenings(t *testing.T) {
	deep := func(inner string, depth int) string {
		return `{"model":"m","messages":[{"role":"user","content":` + strings.Repeat(`{"a":[`, depth) + inner + strings.Repeat(`]}`, depth) + `}]}`
	}
	for _, depth := range []int{10, 49, 50, 51, 1000, 300_000} {
		different(t, chatPath, deep(`1`, depth), deep(`2`, depth), deep(`"1"`, depth))
	}
	same(t, chatPath, deep(`{"b":1,"a":2}`, 20), deep(`{"a":2, "b":1}`, 20))
}

func TestAutomaticAllocations(t *testing.T) {
	i := newIdentifier(t, defaults())
	r := request(t, messagesPath, openingOf(20<<10, 100<<10))
	if n := testing.AllocsPerRun(50, func() { i.Identify(r, "", nil) }); n > 20 {
		// Two by itself; under the race detector a pool forgets a part of what it is given.
		t.Errorf("Identify of an opening allocates %v times, want at most 20", n)
	}
	r = request(t, messagesPath, openingOf(20<<10, 100<<10), "X-Session-Id", "s")
	if n := testing.AllocsPerRun(50, func() { i.Identify(r, "", nil) }); n > 0 {
		t.Errorf("Identify by header allocates %v times, want 0", n)
	}
}

// openingOf is a body of about size bytes whose opening (system, tools, first user turn) takes
// about opening bytes.
func openingOf(opening, size int) string {
	var b strings.Builder
	b.WriteString(`{"model":"m-ant","max_tokens":1024,"stream":true,"system":[{"type":"text","text":"x-anthropic-billing-header: cch=1;"},{"type":"text","text":"`)
	b.WriteString(strings.Repeat(`You fix code.\nBe terse. Use \"go test\".\n`, opening/2/42))
	b.WriteString(`","cache_control":{"type":"ephemeral"}}],"tools":[`)
	for n := 0; b.Len() < opening*9/10; n++ {
		if n > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"tool%d","description":"Reads a file, or a part of it.","input_schema":{"type":"object","properties":`+
			`{"path":{"type":"string","description":"where"},"limit":{"type":"integer","minimum":1}},"required":["path"],"additionalProperties":false}}`, n)
	}
	b.WriteString(`],"messages":[{"role":"user","content":[{"type":"text","text":"fix a.go"}]}`)
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintf(&b, `,{"role":"assistant","content":"turn %d"},{"role":"user","content":%q}`, n, strings.Repeat("text ", 200))
	}
	b.WriteString("]}")
	return b.String()
}

func BenchmarkIdentify(b *testing.B) {
	i := newIdentifier(b, defaults())
	for _, c := range []struct {
		name, path string
		headers    []string
		body       string
	}{
		{"header", "", []string{"X-Session-Id", "s1"}, openingOf(20<<10, 100<<10)},
		{"header with tenant", "/team/app", []string{"X-Session-Id", "s1"}, openingOf(20<<10, 100<<10)},
		{"auto 2KB", "/team/app", nil, openingOf(1<<10, 2<<10)},
		{"auto 20KB of 100KB", "/team/app", nil, openingOf(20<<10, 100<<10)},
		{"auto 20KB of 1MB", "/team/app", nil, openingOf(20<<10, 1<<20)},
		{"auto 100KB", "/team/app", nil, openingOf(100<<10, 101<<10)},
	} {
		r := request(b, messagesPath, c.body, c.headers...)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if i.Identify(r, c.path, nil) == (Identity{}) {
					b.Fatal("no session")
				}
			}
		})
	}
}
