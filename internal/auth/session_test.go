package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

func TestSession(t *testing.T) {
	sum := sha256.Sum256([]byte(adminKey))
	a := NewAdmin(&sum)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	token, ok := a.NewSession(adminKey, now.Add(time.Hour))
	if !ok || !a.Session(token, now) || !a.Session(token, now.Add(time.Hour-time.Second)) {
		t.Fatalf("NewSession = %q, %v", token, ok)
	}
	if again, _ := a.NewSession(adminKey, now.Add(time.Hour)); again == token {
		t.Error("two sessions have one token")
	}
	for _, later := range []time.Duration{time.Hour, 24 * time.Hour} {
		if a.Session(token, now.Add(later)) {
			t.Errorf("the session lasts %s", later)
		}
	}
	other := sha256.Sum256([]byte(alphaKey))
	for name, b := range map[string]Admin{"zero": {}, "another key": NewAdmin(&other)} {
		if b.Session(token, now) || b.CheckFormToken(token, a.FormToken(token)) || b.CheckFormToken(token, "") && name == "zero" {
			t.Errorf("%s takes the token", name)
		}
	}
	for _, key := range []string{"", alphaKey, adminKey + "x", adminKey[:10], strings.ToUpper(adminKey), string(sum[:])} {
		if _, ok := a.NewSession(key, now.Add(time.Hour)); ok {
			t.Errorf("NewSession(%q) makes a session", key)
		}
	}
}

// No byte of a token can be changed, also not the time at which it ends.
func TestSessionForged(t *testing.T) {
	sum := sha256.Sum256([]byte(adminKey))
	a := NewAdmin(&sum)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	token, _ := a.NewSession(adminKey, now.Add(time.Hour))
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		forged := append([]byte(nil), raw...)
		forged[i] ^= 1
		if a.Session(base64.RawURLEncoding.EncodeToString(forged), now) {
			t.Errorf("byte %d can be changed", i)
		}
	}
	for _, bad := range []string{"", ".", "AA", token[:len(token)-1], token + "A", token + "=", base64.RawURLEncoding.EncodeToString(raw[:20]), strings.Repeat("A", 1<<20)} {
		if a.Session(bad, now) {
			t.Errorf("Session(%.20q) is one", bad)
		}
	}
	if strings.Contains(string(raw), adminKey) {
		t.Error("the token shows the key")
	}
	// Who knows the digest, and no key, can make nothing but this.
	sealed := a.seal().Seal(append([]byte(nil), raw[:tokenHead+tokenNonce]...), raw[tokenHead:tokenHead+tokenNonce], sum[:], raw[:tokenHead])
	if a.Session(base64.RawURLEncoding.EncodeToString(sealed), now) {
		t.Error("the digest is enough to make a session")
	}
}

func TestFormToken(t *testing.T) {
	sum := sha256.Sum256([]byte(adminKey))
	a := NewAdmin(&sum)
	now := time.Now()
	one, _ := a.NewSession(adminKey, now.Add(time.Hour))
	two, _ := a.NewSession(adminKey, now.Add(time.Hour))
	form := a.FormToken(one)
	if !a.CheckFormToken(one, form) || a.CheckFormToken(two, form) || a.CheckFormToken(one, "") || a.CheckFormToken(one, form+"x") || a.CheckFormToken("", form) {
		t.Error("a form belongs to another session than its own")
	}
}
