package session

import (
	"strings"
	"testing"
)

// TestSID06 is case S-SID-06 r4: a rule that names a credential header stops the start.
func TestSID06CredentialHeadersAreRefused(t *testing.T) {
	for _, name := range []string{
		"Authorization", "authorization", "AUTHORIZATION", " Authorization ", "Proxy-Authorization", "Cookie", "set-cookie", "x-api-key", "X-API-KEY",
		"api-key", "Api_Key", "X-Goog-Api-Key", "X-Auth-Token", "x-access-token", "X-Amz-Security-Token", "x_amz_security_token", "X-Client-Key",
	} {
		settings := defaults()
		settings.Headers = []Rule{{Header: "X-Fine"}, {Header: name}}
		for _, builtin := range []bool{true, false} {
			settings.BuiltinRules = builtin
			if _, err := New(settings, "x-CLIENT-key"); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("New(header %q) = %v, want an error that names it", name, err)
			}
		}
	}
	newIdentifier(t, Settings{Headers: []Rule{{Header: "X-Client-Key"}}})
}

func TestNewRefusesRules(t *testing.T) {
	for _, rule := range []Rule{
		{Header: ""},
		{Header: "  "},
		{Header: "X Session"},
		{Header: "X-Session:"},
		{Header: "X-Sessión"},
		{Header: "a\nb"},
		{Header: "a/b"},
		{Header: "X-Fine", Transform: "uuid"},
		{Header: "X-Fine", Transform: "Session-UUID"},
	} {
		settings := defaults()
		settings.Headers = []Rule{rule}
		_, err := New(settings)
		if err == nil || (rule.Transform != "" && (!strings.Contains(err.Error(), rule.Transform) || !strings.Contains(err.Error(), "X-Fine"))) {
			t.Errorf("New(%+v) = %v, want an error that names it", rule, err)
		}
	}
}

func TestTransformOfAHeader(t *testing.T) {
	const uuid = "5d0c7a4e-1111-4222-8333-9f00aa00bb01"
	settings := defaults()
	settings.Headers = []Rule{{Header: "x-user", Transform: SessionUUID}, {Header: "x-session-id", Transform: SessionUUID}}
	i := newIdentifier(t, settings)
	for _, c := range []struct{ header, value, want string }{
		{"X-User", "user_1_session_" + uuid, uuid},
		{"X-User", `{"session_id":"s","x":1}`, "s"},
		{"X-User", `{"x":[1,1],"session_id":"s"}`, "s"},
		{"X-User", "user_1", ""},
		{"X-User", uuid, ""},
		{"X-Session-Id", "plain", ""}, // the built-in rule of that name must not take it raw
		{"Session-Id", "plain", "plain"},
	} {
		got := i.Identify(request(t, chatPath, hello, c.header, c.value), "", nil)
		if c.want == "" && got.Source != "auto" || c.want != "" && got.ID != c.want {
			t.Errorf("Identify(%s: %s) = %+v, want %q", c.header, c.value, got, c.want)
		}
	}
}

func TestBuiltinHeaderThatCarriesClientKeysIsLeftOut(t *testing.T) {
	i := newIdentifier(t, defaults(), "session-ID")
	if got := i.Identify(request(t, chatPath, hello, "Session-Id", "secret", "Session_id", "secret"), "", nil); got.Source != "auto" {
		t.Errorf("Identify = %+v, want no client key as id", got)
	}
}
