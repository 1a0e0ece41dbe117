package auth

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

const (
	alphaKey = "sb-alpha-0123456789abcdefghijklmnopqrstuvwxyz"
	betaKey  = "sb-beta-0123456789abcdefghijklmnopqrstuvwxyz"
	adminKey = "sb-admin-0123456789abcdefghijklmnopqrstuvwxyz"
)

func clients() *Authenticator {
	return New(false, []Key{
		{Name: "alpha", SHA256: sha256.Sum256([]byte(alphaKey)), UserPath: "/team/alpha"},
		{Name: "beta", SHA256: sha256.Sum256([]byte(betaKey))},
	})
}

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

const sigV4 = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261103/eu-west-1/lambda/aws4_request, SignedHeaders=host, Signature=00"

func TestAuthenticate(t *testing.T) {
	alpha, beta := Principal{"alpha", "/team/alpha"}, Principal{"beta", ""}
	tests := []struct {
		name string
		h    http.Header
		want Principal // zero: refused
	}{
		{"bearer", header("Authorization", "Bearer "+alphaKey), alpha},
		{"bearer in lower case", header("authorization", "bearer "+alphaKey), alpha},
		{"bearer in upper case", header("AUTHORIZATION", "BEARER "+betaKey), beta},
		{"bearer with more blanks", header("Authorization", "Bearer   "+alphaKey+" "), alpha},
		{"x-api-key", header("x-api-key", alphaKey), alpha},
		{"api-key", header("api-key", betaKey), beta},
		{"AWS signature beside x-api-key", header("Authorization", sigV4, "x-api-key", alphaKey), alpha},
		{"Basic beside api-key", header("Authorization", "Basic Zm9vOmJhcg==", "api-key", alphaKey), alpha},
		{"a dummy bearer beside x-api-key", header("Authorization", "Bearer dummy", "x-api-key", alphaKey), alpha},
		{"a dummy x-api-key beside bearer", header("x-api-key", "dummy", "Authorization", "Bearer "+alphaKey), alpha},
		{"two valid keys", header("x-api-key", betaKey, "Authorization", "Bearer "+alphaKey), alpha},
		{"two valid keys, other headers", header("api-key", alphaKey, "x-api-key", betaKey), beta},

		{"nothing", header(), Principal{}},
		{"another header", header("X-Goog-Api-Key", alphaKey), Principal{}},
		{"key without a scheme", header("Authorization", alphaKey), Principal{}},
		{"scheme without a blank", header("Authorization", "Bearer"+alphaKey), Principal{}},
		{"another scheme", header("Authorization", "Basic "+alphaKey), Principal{}},
		{"AWS signature alone", header("Authorization", sigV4), Principal{}},
		{"bearer twice", header("Authorization", "Bearer Bearer "+alphaKey), Principal{}},
		{"bearer in x-api-key", header("x-api-key", "Bearer "+alphaKey), Principal{}},
		{"the digest", header("x-api-key", fmt.Sprintf("%x", sha256.Sum256([]byte(alphaKey)))), Principal{}},
		{"the name", header("x-api-key", "alpha"), Principal{}},
		{"both keys in one", header("x-api-key", alphaKey+", "+betaKey), Principal{}},
		{"very long", header("x-api-key", strings.Repeat(alphaKey, 1000)), Principal{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := clients().Authenticate(tt.h)
			if ok != (tt.want.Name != "") || got != tt.want {
				t.Errorf("Authenticate = %+v, %v, want %+v", got, ok, tt.want)
			}
		})
	}
}

// S-SEC-04: nothing but the exact key lets in, in whatever header, and nothing at all when
// no key or only an empty one is configured.
func TestSSEC04_AuthenticationCannotBeTalkedAround(t *testing.T) {
	none := New(false, nil)
	empty := New(false, []Key{{Name: "empty", SHA256: sha256.Sum256(nil)}, {Name: "zero"}})
	var texts []string
	for i := range len(alphaKey) {
		texts = append(texts, alphaKey[:i], alphaKey[i+1:], alphaKey[:i]+"_"+alphaKey[i+1:])
	}
	texts = append(texts, alphaKey+"x", alphaKey+"\x00", "x"+alphaKey, strings.ToUpper(alphaKey), alphaKey+alphaKey,
		" ", "  ", "\t", "null", "undefined", "Bearer", "*", "%", "' OR 1=1 --", "\x00", adminKey)
	carried := func(text string) []http.Header {
		return []http.Header{
			header("Authorization", "Bearer "+text), header("x-api-key", text), header("api-key", text),
			header("Authorization", sigV4, "x-api-key", text), header("Authorization", text),
		}
	}
	for _, text := range texts {
		for _, h := range carried(text) {
			for name, a := range map[string]*Authenticator{"keys": clients(), "none": none, "empty": empty} {
				if got, ok := a.Authenticate(h); ok || got != (Principal{}) {
					t.Errorf("%s: Authenticate(%q) = %+v, %v, want refused", name, h, got, ok)
				}
			}
		}
	}
	for _, h := range carried(alphaKey) {
		if _, ok := none.Authenticate(h); ok {
			t.Errorf("no keys: Authenticate(%q) = true, want false", h)
		}
	}
	served := header("Authorization", sigV4, "x-api-key", alphaKey)
	if _, ok := clients().Authenticate(served); !ok {
		t.Error("AWS signature beside a client key: refused, want served")
	}
}

func TestOpenLetsEverybodyInWithoutUserPath(t *testing.T) {
	open := New(true, []Key{{Name: "alpha", SHA256: sha256.Sum256([]byte(alphaKey)), UserPath: "/team/alpha"}})
	for _, h := range []http.Header{nil, header(), header("x-api-key", "whatever"), header("x-api-key", alphaKey)} {
		if got, ok := open.Authenticate(h); !ok || got != (Principal{}) {
			t.Errorf("Authenticate(%q) = %+v, %v, want nobody, true", h, got, ok)
		}
	}
}

func TestKeysAreCopied(t *testing.T) {
	keys := []Key{{Name: "alpha", SHA256: sha256.Sum256([]byte(alphaKey))}}
	a := New(false, keys)
	keys[0].SHA256 = sha256.Sum256([]byte(betaKey))
	if _, ok := a.Authenticate(header("x-api-key", betaKey)); ok {
		t.Error("changing the caller's list has let another key in")
	}
}

// S-SEC-04: the admin API needs its own key.
func TestSSEC04_ClientKeyIsNoAdminKey(t *testing.T) {
	sum := sha256.Sum256([]byte(adminKey))
	admin := NewAdmin(&sum)
	sum[0]++ // the caller's own copy
	emptySum := sha256.Sum256(nil)
	tests := []struct {
		name  string
		admin Admin
		h     http.Header
		want  bool
	}{
		{"admin key", admin, header("Authorization", "Bearer "+adminKey), true},
		{"admin key in x-api-key", admin, header("Authorization", sigV4, "x-api-key", adminKey), true},
		{"admin key in api-key", admin, header("api-key", adminKey), true},
		{"client key", admin, header("Authorization", "Bearer "+alphaKey), false},
		{"nothing", admin, header(), false},
		{"empty", admin, header("Authorization", "Bearer ", "x-api-key", ""), false},
		{"one character more", admin, header("x-api-key", adminKey+"x"), false},
		{"other case", admin, header("x-api-key", strings.ToUpper(adminKey)), false},
		{"no admin key configured", NewAdmin(nil), header("x-api-key", adminKey), false},
		{"zero value", Admin{}, header("x-api-key", ""), false},
		{"empty admin key configured", NewAdmin(&emptySum), header("Authorization", "Bearer "), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.admin.Authenticate(tt.h); got != tt.want {
				t.Errorf("Authenticate = %v, want %v", got, tt.want)
			}
		})
	}
	if !admin.Check(adminKey) || admin.Check("") || admin.Check(alphaKey) || NewAdmin(&emptySum).Check("") {
		t.Error("Check takes another key than the admin key")
	}
	if !admin.Enabled() || NewAdmin(nil).Enabled() {
		t.Error("Enabled: want true with a key, false without")
	}
}

func TestNewKey(t *testing.T) {
	shape := regexp.MustCompile(`^sb-[A-Za-z0-9_-]{43}$`)
	seen := map[string]bool{}
	for range 100 {
		text, digest, err := NewKey()
		if err != nil {
			t.Fatal(err)
		}
		if !shape.MatchString(text) || seen[text] {
			t.Fatalf("NewKey = %q, want a new one that matches %v", text, shape)
		}
		seen[text] = true
		a := New(false, []Key{{Name: "new", SHA256: digest}})
		if _, ok := a.Authenticate(header("Authorization", "Bearer "+text)); !ok {
			t.Fatal("a new key does not match its digest")
		}
	}
}

// Every header that is read must be listed: the list is what is kept from providers and
// from session rules.
func TestHeadersListsWhatIsRead(t *testing.T) {
	for _, name := range Headers() {
		value := alphaKey
		if name == "Authorization" {
			value = "Bearer " + alphaKey
		}
		if _, ok := clients().Authenticate(header(name, value)); !ok {
			t.Errorf("%s is listed and not read", name)
		}
	}
}

func TestAuthenticateAllocatesNothing(t *testing.T) {
	a, h := clients(), header("Authorization", "Bearer "+betaKey)
	if got := testing.AllocsPerRun(100, func() { a.Authenticate(h) }); got != 0 {
		t.Errorf("Authenticate = %v allocations, want 0", got)
	}
}

// Compare with benchstat: go test -bench . -count 10 ./internal/auth > new.txt; benchstat old.txt new.txt
func BenchmarkAuthenticate(b *testing.B) {
	a, h := clients(), header("Authorization", "Bearer "+betaKey)
	b.ReportAllocs()
	for b.Loop() {
		a.Authenticate(h)
	}
}
