package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// A session token stands for the admin key in a browser's cookie. No server keeps it, because
// on Lambda the next request may reach another one: it is the admin key itself, sealed
// (AES-256-GCM) under a key that is derived from its digest, with the time at which it ends.
// So a token made without the admin key is none, even for those who know the digest from the
// configuration, and a token alone does not show the key.
//
//	version (1) | end, epoch seconds (8) | nonce (12) | sealed admin key, tag (16)
const (
	tokenVersion = 1
	tokenHead    = 1 + 8
	tokenNonce   = 12
	// tokenKey bounds the admin key of a session, because browsers drop cookies of over 4 KB.
	tokenKey = 1024
)

// NewSession returns a token for who has presented the admin key; false: it is not the key.
func (a Admin) NewSession(key string, ends time.Time) (token string, ok bool) {
	if !a.Check(key) || len(key) > tokenKey {
		return "", false
	}
	out := make([]byte, tokenHead+tokenNonce, tokenHead+tokenNonce+len(key)+16)
	out[0] = tokenVersion
	binary.BigEndian.PutUint64(out[1:], uint64(ends.Unix()))
	rand.Read(out[tokenHead:]) //nolint:errcheck // it never fails
	out = a.seal().Seal(out, out[tokenHead:], []byte(key), out[:tokenHead])
	return base64.RawURLEncoding.EncodeToString(out), true
}

// Session tells whether a token is one of ours and has not ended.
func (a Admin) Session(token string, now time.Time) bool {
	if a.sum == nil || len(token) > 2*tokenKey {
		return false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) < tokenHead+tokenNonce || raw[0] != tokenVersion {
		return false
	}
	head, nonce, sealed := raw[:tokenHead], raw[tokenHead:tokenHead+tokenNonce], raw[tokenHead+tokenNonce:]
	key, err := a.seal().Open(nil, nonce, sealed, head)
	return err == nil && a.Check(string(key)) && now.Unix() < int64(binary.BigEndian.Uint64(head[1:]))
}

// FormToken is what a form of the session with this token carries, so that no other site's
// form is taken for ours.
func (a Admin) FormToken(token string) string {
	if a.sum == nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(a.derive("admin form 1:" + token))
}

// CheckFormToken compares in constant time.
func (a Admin) CheckFormToken(token, form string) bool {
	return a.sum != nil && hmac.Equal([]byte(a.FormToken(token)), []byte(form))
}

func (a Admin) derive(purpose string) []byte {
	mac := hmac.New(sha256.New, a.sum[:])
	mac.Write([]byte("switchboard " + purpose))
	return mac.Sum(nil)
}

func (a Admin) seal() cipher.AEAD {
	block, err := aes.NewCipher(a.derive("admin session 1"))
	if err != nil {
		panic(err) // cannot happen: 32 bytes
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // cannot happen: AES
	}
	return gcm
}
