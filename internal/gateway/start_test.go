package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/internal/auth"
	"switchboard/internal/config"
	"switchboard/internal/session"
	"switchboard/internal/upstreamtest"

	"switchboard/internal/gateway"
)

// start loads a configuration as a main does, up to the identifier.
func start(t *testing.T, yaml string) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "switchboard.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Source{Path: path})
	if err != nil {
		return err
	}
	_, err = session.New(cfg.Session, auth.Headers()...)
	return err
}

const provider = "providers: {A: {type: openai, base_url: \"http://a.test/v1\", api_keys: [sk-a-AAAABBBBCCCC], models: [m]}}\n"

// S-SID-06: a rule that names a credential header would have written it into audit rows. The
// start is refused, and the error names the header.
func TestSID06CredentialHeadersAreRefused(t *testing.T) {
	const open = "auth: {mode: none}\n" + provider
	if err := start(t, open+"session: {headers: [{header: X-My-Session}]}\n"); err != nil {
		t.Fatalf("a harmless rule is refused: %v", err)
	}
	for _, name := range []string{
		"Authorization", "authorization", "x-api-key", "X-API-Key", "api-key", "Cookie", "Set-Cookie", "Proxy-Authorization",
		"X-Goog-Api-Key", "X-Auth-Token", "X-Access-Token", "X-Amz-Security-Token",
	} {
		err := start(t, open+fmt.Sprintf("session: {headers: [{header: X-Fine}, {header: %s}]}\n", name))
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(name)) {
			t.Errorf("rule %s: error %v, want one that names it", name, err)
		}
	}
}

// S-SEC-04: an empty key, or none, must never mean open.
func TestSEC04NoKeysIsNeverOpen(t *testing.T) {
	empty := "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // SHA-256 of nothing
	for name, yaml := range map[string]string{
		"no auth at all":    provider,
		"no keys":           provider + "auth: {keys: []}\n",
		"mode keys":         provider + "auth: {mode: keys}\n",
		"empty digest":      provider + "auth: {keys: [{name: a, sha256: \"\"}]}\n",
		"digest of nothing": provider + "auth: {keys: [{name: a, sha256: " + empty + "}]}\n",
		"open to the world": provider + "listen: 0.0.0.0:8080\nauth: {mode: none}\n",
	} {
		if err := start(t, yaml); err == nil {
			t.Errorf("%s: the start is not refused", name)
		}
	}
	r := newRig(t, rigYAML(t))
	r.restart(t, func(o *gateway.Options) { o.Auth = auth.New(false, nil) })
	r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
	for _, header := range []string{"X-None: x", "Authorization: Bearer ", "Authorization: ", "X-Api-Key: ", "Api-Key: "} {
		request := post("/v1/chat/completions", chatBody)
		request.Header.Del("Authorization")
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
		if a := r.do(t.Context(), request); a.status != 401 {
			t.Errorf("%q = %d without any key configured, want 401", header, a.status)
		}
	}
}

// All refusals of authentication are one text: a caller learns nothing from them.
func TestSEC04OneGenericRefusal(t *testing.T) {
	r := newRig(t, rigYAML(t))
	var first string
	for i, key := range []string{"", "x", clientKey + "x", clientKey[:10], strings.ToUpper(clientKey), strings.Repeat("k", 10_000)} {
		request := post("/v1/chat/completions", chatBody)
		request.Header.Set("Authorization", "Bearer "+key)
		a := r.do(t.Context(), request)
		if i == 0 {
			first = a.text()
		}
		if a.status != 401 || a.text() != first {
			t.Errorf("key %.12q = %d %s, want 401 and the same text", key, a.status, a.text())
		}
	}
}
