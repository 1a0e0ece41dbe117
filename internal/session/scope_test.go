package session

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestSID05 is case S-SID-05: tenant scoping cannot be forged with a delimiter.
func TestSID05ScopesNeverMeet(t *testing.T) {
	form := regexp.MustCompile(`^scoped-[0-9a-f]{32}$`)
	seen := map[string]string{}
	add := func(path, id string) {
		key := Scope(path, id)
		if other, ok := seen[key]; ok {
			t.Errorf("Scope(%q, %q) = %q, which is also that of %s", path, id, key, other)
		}
		seen[key] = fmt.Sprintf("%q, %q", path, id)
		if path != "" && !form.MatchString(key) {
			t.Errorf("Scope(%q, %q) = %q, want scoped- and 32 hex digits", path, id, key)
		}
	}
	for _, pair := range [][2]string{
		{"/a", "b|c"},
		{"/a|b", "c"},
		{"/a", "20260101_1"},
		{"/z", "20260101_1"},
		{"", "20260101_1"},
		{"/a/b", "c"},
		{"/a", "/b/c"},
		{"/a", "b/c"},
		{"/", "ab/c"},
		{"/ab", "c"},
		{"/a b", "c"},
		{"/a", " b c"},
		{"/a", "5d0c7a4e-1111-4222-8333-9f00aa00bb01"},
		{"/b", "5d0c7a4e-1111-4222-8333-9f00aa00bb01"},
	} {
		add(pair[0], pair[1])
	}
	// Somebody without a user path must not name another tenant's key.
	for key := range seen {
		if strings.HasPrefix(key, "scoped-") {
			add("", key)
			break
		}
	}
}

func TestScopeValue(t *testing.T) {
	sum := sha256.Sum256([]byte("/team/app\x00s1"))
	want := fmt.Sprintf("scoped-%x", sum[:16])
	if got := Scope("/team/app", "s1"); got != want {
		t.Errorf("Scope = %q, want %q", got, want)
	}
	if got := Scope("", "s1"); got != "s1" {
		t.Errorf("Scope without a user path = %q, want s1", got)
	}
	if got := Scope("/a", ""); got != "" {
		t.Errorf("Scope of no id = %q, want none", got)
	}
	long := Scope("/"+strings.Repeat("p", 3000), strings.Repeat("i", 3000))
	if len(long) != len("scoped-")+32 {
		t.Errorf("Scope of long parts has %d bytes, want %d", len(long), len("scoped-")+32)
	}
}

func TestIdentifyScopes(t *testing.T) {
	i := newIdentifier(t, defaults())
	r := request(t, chatPath, hello, "X-Session-Id", "s1")
	if got, want := i.Identify(r, "/a", nil), (Identity{"s1", Scope("/a", "s1"), "header:x-session-id"}); got != want {
		t.Errorf("Identify = %+v, want %+v", got, want)
	}
}

// TestREQ04 is case S-REQ-04: a follow-up joins the session of the response it continues.
func TestREQ04PreviousResponse(t *testing.T) {
	i := newIdentifier(t, defaults())
	home := Identity{"s0", "scoped-0", "previous_response_id"}
	asked := []string{}
	found := func(key string) (Identity, bool) { asked = append(asked, key); return home, true }
	missing := func(key string) (Identity, bool) { asked = append(asked, key); return Identity{}, false }
	const body = `{"model":"m-oai","previous_response_id":"resp_a1","input":[{"role":"user","content":"next"}]}`
	r := request(t, responsesPath, body)
	if got := i.Identify(r, "/a", found); got != home {
		t.Errorf("Identify = %+v, want %+v", got, home)
	}
	if want := Scope("/a", "resp_a1"); len(asked) != 1 || asked[0] != want {
		t.Errorf("resolve was asked %q, want once for %q", asked, want)
	}
	asked = nil
	if got := i.Identify(request(t, responsesPath, body, "Session-Id", "h"), "/a", found); got.ID != "h" || len(asked) != 0 {
		t.Errorf("Identify = %+v (asked %q), want the header and no question", got, asked)
	}
	// Unknown: not the session of everybody who ever said "next".
	one := i.Identify(r, "/a", missing)
	two := i.Identify(request(t, responsesPath, strings.Replace(body, "resp_a1", "resp_b2", 1)), "/a", missing)
	opening := i.Identify(request(t, responsesPath, strings.Replace(body, "previous_response_id", "x", 1)), "/a", nil)
	if one.Source != "auto" || one.ID == two.ID || one.ID == opening.ID || one != i.Identify(r, "/a", nil) {
		t.Errorf("Identify of unknown responses = %+v, %+v, opening %+v, want three automatic ids", one, two, opening)
	}
	settings := defaults()
	settings.BuiltinRules = false
	if got := newIdentifier(t, settings).Identify(r, "/a", found); got != home {
		t.Errorf("Identify without built-in rules = %+v, want %+v", got, home)
	}
	asked = nil
	i.Identify(request(t, responsesPath, strings.Replace(body, "resp_a1", strings.Repeat("r", 1025), 1)), "/a", found)
	i.Identify(request(t, responsesPath, strings.Replace(body, "resp_a1", `a\u0000b`, 1)), "/a", found)
	if len(asked) != 0 {
		t.Errorf("resolve was asked %q, want nothing for ids that cannot be", asked)
	}
}
