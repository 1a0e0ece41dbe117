package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/affinity"
	"switchboard/internal/fleettest"
	"switchboard/internal/functionurl"
)

// pins are those of a session of alpha's.
func (s *stack) pins(session string) []affinity.View {
	s.Helper()
	var found struct{ Sessions []affinity.View }
	s.get(&found, "/admin/sessions", "session_id", session, "user_path", "/team/alpha")
	return found.Sessions
}

// What the route function has learnt of a provider and of sessions is what the operator sees,
// and what the operator changes is what the next request follows.
func TestOperatorMovesAndClears(t *testing.T) {
	s := newStack(t, functionurl.Options{Environments: 2, Spread: true})
	s.a.Does(uses(tokens{1000, 800, 20}))
	s.b.Does(uses(tokens{1000, 800, 20}))
	ask := turn{session: "moving"}
	s.serve(ask, http.StatusOK, "A")
	s.serve(turn{key: betaKey, session: "moving"}, http.StatusOK, "A")
	s.route.Rest()
	pins := s.pins("moving")
	if len(pins) != 1 || pins[0].Provider != "A" || !pins[0].IsActive || pins[0].UserPath != "/team/alpha" || pins[0].TotalInputTokens != 1000 {
		t.Fatalf("pins = %+v, want alpha's one on A", pins)
	}
	move := func(epoch int64) string {
		return fmt.Sprintf(`{"session_id":"moving","user_path":"/team/alpha","model":"m","provider":"B","epoch":%d}`, epoch)
	}
	s.ask(http.StatusConflict, http.MethodPut, "/admin/sessions/pin", move(pins[0].Epoch+1))
	var moved struct{ Moved, Switched bool }
	if err := json.Unmarshal(s.ask(http.StatusOK, http.MethodPut, "/admin/sessions/pin", move(pins[0].Epoch)), &moved); err != nil || !moved.Moved || !moved.Switched {
		t.Errorf("move = %+v, %v", moved, err)
	}
	s.serve(ask, http.StatusOK, "B")
	s.serve(turn{key: betaKey, session: "moving"}, http.StatusOK, "A") // the other tenant's stays
	s.route.Rest()
	if pins = s.pins("moving"); len(pins) != 1 || pins[0].Provider != "B" || pins[0].SwitchCount != 1 {
		t.Errorf("pins after the move = %+v", pins)
	}
	s.ask(http.StatusOK, http.MethodDelete, "/admin/sessions?session_id=moving&user_path=/team/alpha&model=m", "")
	if pins = s.pins("moving"); len(pins) != 0 {
		t.Errorf("pins after they were cleared = %+v", pins)
	}
	s.serve(ask, http.StatusOK, "A") // as a new one
}

func TestOperatorSeesADegradation(t *testing.T) {
	s := newStack(t, functionurl.Options{})
	s.a.Does(fleettest.Fails(http.StatusTooManyRequests))
	s.b.Does(uses(tokens{1, 0, 1}))
	s.serve(turn{}, http.StatusOK, "B")
	s.route.Rest()
	var found struct {
		Providers []struct {
			Identity string
			Health   []struct {
				KeyID         string `json:"key_id"`
				Model, Reason string
				RetryAt       *time.Time `json:"retry_at"`
			}
		}
	}
	s.get(&found, "/admin/providers")
	if len(found.Providers) != 3 || len(found.Providers[0].Health) != 1 || len(found.Providers[1].Health) != 0 {
		t.Fatalf("providers = %+v, want that A alone is not well", found.Providers)
	}
	ill := found.Providers[0].Health[0]
	if wait := time.Until(*ill.RetryAt); ill.KeyID != "1" || ill.Model != "m" || ill.Reason != "rate_limited" || wait < 9*time.Minute || wait > 10*time.Minute {
		t.Errorf("A = %+v, want a rate limit on key and model for its ten minutes", ill)
	}
	text := string(s.ask(http.StatusOK, http.MethodGet, "/admin/providers", "")) + string(s.ask(http.StatusOK, http.MethodGet, "/admin/ui/providers", ""))
	for _, secret := range []string{"sk-a-", "sk-b-", "sk-c-", adminKey, alphaKey} {
		if strings.Contains(text, secret) {
			t.Errorf("a key is shown: %s…", secret)
		}
	}
}

// What is explained is what then happens, and explaining calls and writes nothing.
func TestExplainIsWhatHappens(t *testing.T) {
	s := newStack(t, functionurl.Options{})
	s.a.Does(fleettest.Fails(http.StatusTooManyRequests))
	s.b.Does(uses(tokens{1, 0, 1}))
	s.serve(turn{session: "s"}, http.StatusOK, "B") // A is left alone from now on
	s.route.Rest()
	calls, pins, events := s.a.Calls()+s.b.Calls(), s.pins("s"), len(s.cloud.Lines())
	var plan struct {
		Attempts []struct{ Provider string }
	}
	body := s.ask(http.StatusOK, http.MethodPost, "/admin/explain",
		`{"path":"/v1/chat/completions","headers":{"X-Session-Id":"s"},"user_path":"/team/alpha","body":{"model":"m","messages":[]}}`)
	if err := json.Unmarshal(body, &plan); err != nil || len(plan.Attempts) == 0 || plan.Attempts[0].Provider != "B" || !strings.Contains(string(body), "rate_limited") {
		t.Errorf("explained, %v: %s; want B, and why not A", err, body)
	}
	if n := s.a.Calls() + s.b.Calls(); n != calls {
		t.Errorf("%d calls of providers for an explanation", n-calls)
	}
	if diff := cmp.Diff(pins, s.pins("s")); diff != "" || len(s.cloud.Lines()) != events {
		t.Errorf("explaining left something: %s, %d events more", diff, len(s.cloud.Lines())-events)
	}
	s.serve(turn{session: "s"}, http.StatusOK, "B")
}

// A virtual model that an operator saves is served by every instance within ten seconds.
func TestSavedModelIsServedWithinTenSeconds(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds of real time")
	}
	s := newStack(t, functionurl.Options{Environments: 2, Spread: true})
	s.a.Does(uses(tokens{1, 0, 1}))
	s.b.Does(uses(tokens{1, 0, 1}))
	for range 2 { // both have looked
		s.serve(turn{}, http.StatusOK, "A")
		s.serve(turn{model: "smart"}, http.StatusNotFound, "")
	}
	s.ask(http.StatusOK, http.MethodPut, "/admin/virtual-models", `{"source":"smart","target_model":"B/m","version":0}`)
	s.ask(http.StatusConflict, http.MethodPut, "/admin/virtual-models", `{"source":"smart","target_model":"A/m","version":0}`) // another editor
	for saved, served := time.Now(), 0; served < 4; time.Sleep(100 * time.Millisecond) {
		served = 0
		asked := time.Since(saved)
		for range 4 {
			response := s.begin(turn{model: "smart"})
			response.Body.Close() //nolint:errcheck // only the head counts
			if response.StatusCode == http.StatusOK && response.Header.Get("X-Switchboard-Provider") == "B" {
				served++
			}
		}
		if served < 4 && asked > 10*time.Second {
			t.Fatalf("served %d of 4 times, %v after it was saved", served, asked)
		}
	}
}

// S-SEC-04: over the Function URL too, nothing but the admin key opens anything.
func TestSSEC04OnlyTheAdminKeyOverItsURL(t *testing.T) {
	s := newStack(t, functionurl.Options{})
	var first string
	for _, path := range []string{
		"/admin/audit/sessions", "/admin/audit/log", "/admin/usage/sessions", "/admin/usage/summary", "/admin/usage/daily",
		"/admin/virtual-models", "/admin/providers", "/admin/sessions", "/admin/explain", "/admin/ui/thread", "/admin/ui/usage", "/admin/", "/admin/nope",
		"/admin//audit/log", "/admin/login/../audit/log", "/health/../admin/audit/log",
	} {
		for _, key := range []string{"", "Bearer ", "Bearer " + alphaKey, "Bearer " + adminKey + "x", "Bearer " + adminKey[:10], "Bearer " + strings.ToLower(adminKey), "Basic " + adminKey} {
			response := s.send(http.MethodGet, s.admin.URL+path, "", "Authorization", key)
			body, err := io.ReadAll(response.Body)
			response.Body.Close() //nolint:errcheck // it was read
			if first == "" {
				first = string(body)
			}
			if err != nil || response.StatusCode != http.StatusUnauthorized || string(body) != first {
				t.Errorf("%s with %q = %d %s, want 401 and one text", path, key, response.StatusCode, body)
			}
		}
	}
	// The admin key is no client key either.
	s.serve(turn{key: adminKey}, http.StatusUnauthorized, "")
	if s.a.Calls() != 0 {
		t.Error("a provider was called for the admin key")
	}
}

// Cookies come as a list of their own in a function's events and answers.
func TestLoginThroughTheFunctionURL(t *testing.T) {
	s := newStack(t, functionurl.Options{})
	form := func(path string, values url.Values, header ...string) *http.Response {
		header = append(header, "Content-Type", "application/x-www-form-urlencoded")
		response := s.send(http.MethodPost, s.admin.URL+path, values.Encode(), header...)
		response.Body.Close() //nolint:errcheck // only the head counts
		return response
	}
	page := func(path string, header ...string) (int, string) {
		response := s.send(http.MethodGet, s.admin.URL+path, "", append(header, "Accept", "text/html")...)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if status, _ := page("/admin/"); status != http.StatusSeeOther {
		t.Errorf("without a cookie = %d, want that it leads to the login", status)
	}
	for _, key := range []string{"wrong", alphaKey, ""} {
		if r := form("/admin/login", url.Values{"key": {key}}); r.StatusCode != http.StatusUnauthorized || len(r.Cookies()) != 0 {
			t.Errorf("login with %q = %d, %v", key, r.StatusCode, r.Cookies())
		}
	}
	r := form("/admin/login", url.Values{"key": {adminKey}, "next": {"/admin/ui/usage"}})
	if r.StatusCode != http.StatusSeeOther || len(r.Cookies()) != 1 || r.Header.Get("Location") != "/admin/ui/usage" {
		t.Fatalf("login = %d, %v", r.StatusCode, r.Header)
	}
	c := r.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure { // there is no TLS on this machine
		t.Errorf("cookie %v", c)
	}
	cookie := []string{"Cookie", "other=1; " + c.Name + "=" + c.Value + "; last=2"}
	status, text := page("/admin/", cookie...)
	_, rest, found := strings.Cut(text, `name="csrf" value="`)
	if status != http.StatusOK || !found || !strings.Contains(text, "Audit Logs") {
		t.Fatalf("with the cookie = %d %s", status, text)
	}
	token, _, _ := strings.Cut(rest, `"`)
	if r := form("/admin/logout", url.Values{}, cookie...); r.StatusCode != http.StatusForbidden {
		t.Errorf("a write without the page's token = %d, want 403", r.StatusCode)
	}
	if r := form("/admin/logout", url.Values{"csrf": {token}}, append(cookie, "Sec-Fetch-Site", "cross-site")...); r.StatusCode != http.StatusForbidden {
		t.Errorf("a write from another site = %d, want 403", r.StatusCode)
	}
	if r := form("/admin/logout", url.Values{"csrf": {token}}, cookie...); r.StatusCode != http.StatusSeeOther || len(r.Cookies()) != 1 || r.Cookies()[0].MaxAge >= 0 {
		t.Errorf("logout = %d, %v", r.StatusCode, r.Header)
	}
}
