package admin_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/mem"
	"switchboard/internal/session"
)

// pinned is a browser, logged in, before these live sessions.
func pinned(t *testing.T, ids ...string) (*browser, *mem.Store) {
	t.Helper()
	d := newDesk(t)
	for _, id := range ids {
		d.pin("/team", id, "smart", "A")
	}
	b := &browser{T: t, a: d.admin}
	b.logIn()
	return b, d.store
}

func TestSessionsPage(t *testing.T) {
	b, _ := pinned(t, "s1", "s2", "a+b/<c>")
	text := page(t, b.a, "/admin/ui/sessions", 200)
	has(t, text, `id="nav-sessions"`, `data-session="s1" data-user-path="/team" data-model="smart"`, "A / key 1", "1 h 0 min", `data-session="a&#43;b/&lt;c&gt;"`)
	text = page(t, b.a, "/admin/ui/sessions?limit=1", 200)
	has(t, text, `rel="next" href="/admin/ui/sessions?cursor=`)
	if n := strings.Count(text, "data-session="); n != 1 {
		t.Errorf("a page of one has %d", n)
	}
	text = page(t, b.a, "/admin/ui/sessions?session_id=s2&user_path=/team&model=", 200)
	has(t, text, `data-session="s2"`, `value="/team"`)
	hasNot(t, text, `data-session="s1"`)
	has(t, page(t, b.a, "/admin/ui/sessions?session_id=s9", 200), `id="empty"`, "No pin fits these filters", `id="nav-sessions"`)
	has(t, page(t, b.a, "/admin/ui/sessions?limit=0&status=200", 400), "1 to 200", "status: is not a parameter here")
	has(t, page(t, b.a, "/admin/ui/sessions?cursor=nonsense", 400), "is none of this list")
	has(t, page(t, asking(filled()), "/admin/ui/sessions", 503), "No store of sessions")
}

func TestSessionCleared(t *testing.T) {
	b, store := pinned(t, "a+b/<c>", "s2")
	ref := affinity.Ref{SessionKey: session.Scope("/team", "a+b/<c>"), Model: "smart"}
	pin, err := store.Lookup(t.Context(), ref, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"session_id": {"a+b/<c>"}, "user_path": {"/team"}, "model": {"smart"}, "epoch": {strconv.FormatInt(pin.Epoch, 10)}}
	post := func(change ...string) (int, string) {
		sent := url.Values{"csrf": {b.form()}}
		for name, all := range form {
			sent[name] = all
		}
		for i := 0; i < len(change); i += 2 {
			sent.Set(change[i], change[i+1])
		}
		w := b.send(http.MethodPost, "/admin/ui/sessions?user_path=%2Fteam", sent.Encode())
		return w.Code, w.Header().Get("Location") + w.Body.String()
	}
	for name, tt := range map[string]struct {
		change []string
		status int
		want   string
	}{
		"no token":     {[]string{"csrf", ""}, 403, ""},
		"another seen": {[]string{"epoch", "99"}, 409, "has moved in between"},
		"no epoch":     {[]string{"epoch", ""}, 400, "could not be read"},
		"no session":   {[]string{"session_id", ""}, 400, "could not be read"},
		"unknown":      {[]string{"session_id", "s9"}, 404, "no live pin"},
		"its tenant":   {[]string{"user_path", "/other"}, 404, "no live pin"},
	} {
		if status, text := post(tt.change...); status != tt.status || !strings.Contains(text, tt.want) {
			t.Errorf("%s = %d, want %d, %s", name, status, tt.status, tt.want)
		}
	}
	if _, err := store.Lookup(t.Context(), ref, time.Now()); err != nil {
		t.Fatalf("what was refused has been done: %v", err)
	}
	status, location := post()
	if status != http.StatusSeeOther || location != "/admin/ui/sessions?cleared=a%2Bb%2F%3Cc%3E&user_path=%2Fteam" {
		t.Fatalf("clear = %d %s", status, location)
	}
	text := page(t, b.a, location, 200)
	has(t, text, "a&#43;b/&lt;c&gt; is cleared", `data-session="s2"`)
	hasNot(t, text, `data-session="a`)
}

func TestSessionsPageShowsTextAsText(t *testing.T) {
	var ids []string
	for _, hostile := range hostileTexts() {
		if len(hostile) <= 200 {
			ids = append(ids, hostile)
		}
	}
	b, _ := pinned(t, ids...)
	for _, path := range []string{"/admin/ui/sessions", "/admin/ui/sessions?session_id=" + url.QueryEscape(ids[0]) + "&cleared=" + url.QueryEscape(ids[1])} {
		if fault := dangerous(page(t, b.a, path, 200)); fault != "" {
			t.Errorf("%s has %s", path, fault)
		}
	}
}
