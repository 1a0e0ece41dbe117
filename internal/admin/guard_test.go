package admin_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"switchboard/internal/admin"
	"switchboard/internal/health"
)

// browser is what a browser does with the admin plane: it keeps one cookie.
type browser struct {
	*testing.T
	a      *admin.Admin
	cookie *http.Cookie
}

func (b *browser) send(method, path, body string, header ...string) *httptest.ResponseRecorder {
	b.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Accept", "text/html,application/xhtml+xml")
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	w := httptest.NewRecorder()
	b.a.ServeHTTP(w, r)
	return w
}

func (b *browser) logIn() {
	b.Helper()
	w := b.send(http.MethodPost, "/admin/login", url.Values{"key": {adminKey}}.Encode())
	if w.Code != http.StatusSeeOther || len(w.Result().Cookies()) != 1 {
		b.Fatalf("login = %d %s", w.Code, w.Body)
	}
	b.cookie = w.Result().Cookies()[0]
}

// form is the token in the forms of a page.
func (b *browser) form() string {
	b.Helper()
	_, rest, ok := strings.Cut(b.send(http.MethodGet, "/admin/", "").Body.String(), `name="csrf" value="`)
	if !ok {
		b.Fatal("the page has no form with a token")
	}
	token, _, _ := strings.Cut(rest, `"`)
	return token
}

func newBrowser(t *testing.T) *browser { return &browser{T: t, a: asking(filled())} }

func TestLogin(t *testing.T) {
	b := newBrowser(t)
	if w := b.send(http.MethodGet, "/admin/ui/usage?days=all&model=a%2Fb", ""); w.Code != http.StatusSeeOther ||
		w.Header().Get("Location") != "/admin/login?next="+url.QueryEscape("/admin/ui/usage?days=all&model=a%2Fb") {
		t.Fatalf("without a session = %d %s", w.Code, w.Header())
	}
	w := b.send(http.MethodPost, "/admin/login", url.Values{"key": {adminKey}, "next": {"/admin/ui/usage?days=all&model=a%2Fb"}}.Encode())
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/admin/ui/usage?days=all&model=a%2Fb" {
		t.Fatalf("login = %d %s", w.Code, w.Header())
	}
	c := w.Result().Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/admin/" || c.MaxAge != 12*3600 || c.Secure || strings.Contains(c.Value, adminKey) {
		t.Errorf("cookie %+v", c)
	}
	b.cookie = c
	for _, path := range []string{"/admin/", "/admin/ui/usage", "/admin/ui/providers", "/admin/providers", "/admin/audit/log"} {
		if w := b.send(http.MethodGet, path, ""); w.Code != 200 {
			t.Errorf("%s with a session = %d", path, w.Code)
		}
	}
	if w := b.send(http.MethodGet, "/admin/login?next=/admin/ui/usage", ""); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/admin/ui/usage" {
		t.Errorf("the login, logged in = %d %s", w.Code, w.Header())
	}
	w = b.send(http.MethodPost, "/admin/logout", url.Values{"csrf": {b.form()}}.Encode())
	if c := w.Result().Cookies(); w.Code != http.StatusSeeOther || len(c) != 1 || c[0].MaxAge != -1 || c[0].Value != "" {
		t.Errorf("logout = %d %v", w.Code, c)
	}
}

// The cookie is sent over TLS alone where TLS is, also when it ends before us.
func TestLoginOverTLS(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"TLS":   func(r *http.Request) { r.TLS = &tls.ConnectionState{} },
		"proxy": func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") },
	} {
		r := httptest.NewRequest(http.MethodPost, "/admin/login", strings.NewReader(url.Values{"key": {adminKey}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		change(r)
		w := httptest.NewRecorder()
		asking(filled()).ServeHTTP(w, r)
		if c := w.Result().Cookies(); len(c) != 1 || !c[0].Secure {
			t.Errorf("%s: cookies %v", name, c)
		}
	}
}

// S-SEC-04: whatever is wrong with a key, the page says the same and shows none of it.
func TestSSEC04LoginRefuses(t *testing.T) {
	var first string
	for _, key := range []string{"", "ck-client-SECRETSECRET", adminKey + "x", adminKey[:10], strings.ToLower(adminKey), providerKey, strings.Repeat("x", 5000), "<script>"} {
		b := newBrowser(t)
		w := b.send(http.MethodPost, "/admin/login", url.Values{"key": {key}}.Encode())
		if w.Code != http.StatusUnauthorized || len(w.Result().Cookies()) != 0 {
			t.Errorf("login with %.20q = %d, %v", key, w.Code, w.Result().Cookies())
		}
		if first == "" {
			first = w.Body.String()
		}
		if w.Body.String() != first {
			t.Errorf("login with %.20q is told apart", key)
		}
	}
	none := &browser{T: t, a: admin.New(admin.Options{Health: health.NewBoard(health.Defaults())})}
	if w := none.send(http.MethodPost, "/admin/login", "key="); w.Code != http.StatusUnauthorized {
		t.Errorf("login without an admin key configured = %d", w.Code)
	}
	if w := newBrowser(t).send(http.MethodPost, "/admin/login?key="+adminKey, ""); w.Code != http.StatusUnauthorized {
		t.Errorf("a key in the address = %d", w.Code)
	}
	if w := newBrowser(t).send(http.MethodPost, "/admin/login", url.Values{"key": {adminKey}}.Encode(), "Sec-Fetch-Site", "cross-site"); w.Code != http.StatusUnauthorized {
		t.Errorf("a login from another site = %d", w.Code)
	}
}

// A login leads to a page of ours and nowhere else.
func TestLoginLeadsNowhereElse(t *testing.T) {
	for _, next := range []string{
		"https://evil.example/", "//evil.example/admin/", `/\evil.example`, "/admin/../x", "/admin/ui/../../x", "javascript:alert(1)", "/v1/models", "/admin/audit/log",
		"/admin/logout", "/admin/ui/thread?session_id=x", "http:/admin/", "///admin/", "/admin//evil.example", "\t/admin/x", "/admin/%2e%2e/", "?", "admin/",
	} {
		w := newBrowser(t).send(http.MethodPost, "/admin/login", url.Values{"key": {adminKey}, "next": {next}}.Encode())
		if got := w.Header().Get("Location"); got != "/admin/" {
			t.Errorf("next=%q leads to %q", next, got)
		}
	}
}

func TestForgedCookies(t *testing.T) {
	b := newBrowser(t)
	b.logIn()
	good := b.cookie.Value
	for _, value := range []string{"", "x", good + "x", good[1:], strings.ToUpper(good), adminKey, strings.Repeat("A", 100000)} {
		b.cookie = &http.Cookie{Name: "switchboard_admin", Value: value}
		if w := b.send(http.MethodGet, "/admin/", ""); w.Code != http.StatusSeeOther {
			t.Errorf("cookie %.20q = %d", value, w.Code)
		}
		if w := b.send(http.MethodGet, "/admin/audit/log", ""); w.Code != http.StatusUnauthorized {
			t.Errorf("cookie %.20q, API = %d", value, w.Code)
		}
	}
}

// A write with the cookie needs a token of the same session; one with the key does not.
func TestCSRF(t *testing.T) {
	b := newBrowser(t)
	b.logIn()
	token := b.form()
	other := newBrowser(t)
	other.logIn()
	write := func(method, path, body string, header ...string) int {
		return b.send(method, path, body, header...).Code
	}
	for name, got := range map[string]int{
		"none":             write(http.MethodPost, "/admin/logout", "x=1"),
		"empty":            write(http.MethodPost, "/admin/logout", "csrf="),
		"wrong":            write(http.MethodPost, "/admin/logout", "csrf="+token+"x"),
		"another session":  write(http.MethodPost, "/admin/logout", "csrf="+other.form()),
		"in the address":   write(http.MethodPost, "/admin/logout?csrf="+token, "x=1"),
		"as text":          write(http.MethodPost, "/admin/logout", "csrf="+token, "Content-Type", "text/plain"),
		"from elsewhere":   write(http.MethodPost, "/admin/logout", "csrf="+token, "Sec-Fetch-Site", "cross-site"),
		"another origin":   write(http.MethodPost, "/admin/logout", "csrf="+token, "Origin", "https://evil.example"),
		"API, none":        write(http.MethodDelete, "/admin/sessions?session_id=x&model=m", ""),
		"API, wrong":       write(http.MethodDelete, "/admin/sessions?session_id=x&model=m", "", "X-CSRF-Token", "x"),
		"API, JSON":        write(http.MethodPut, "/admin/virtual-models", `{"source":"x"}`, "Content-Type", "application/json"),
		"a wrong key, too": write(http.MethodPost, "/admin/logout", "x=1", "Authorization", "Bearer wrong"),
	} {
		if got != http.StatusForbidden {
			t.Errorf("%s = %d, want 403", name, got)
		}
	}
	if got := write(http.MethodDelete, "/admin/sessions?session_id=x&model=m", "", "X-CSRF-Token", token); got == http.StatusForbidden {
		t.Errorf("the API with the token = %d", got)
	}
	if got := write(http.MethodPost, "/admin/logout", "csrf="+token, "Sec-Fetch-Site", "same-origin"); got != http.StatusSeeOther {
		t.Errorf("the form with its token = %d", got)
	}
	b.cookie = nil
	if got := write(http.MethodPost, "/admin/logout", "", "Authorization", "Bearer "+adminKey); got != http.StatusSeeOther {
		t.Errorf("with the key = %d", got)
	}
}

func TestHeaders(t *testing.T) {
	b := newBrowser(t)
	login := b.send(http.MethodGet, "/admin/login", "")
	b.logIn()
	for name, w := range map[string]*httptest.ResponseRecorder{
		"login": login, "page": b.send(http.MethodGet, "/admin/", ""), "API": b.send(http.MethodGet, "/admin/audit/log", ""),
		"CSV": b.send(http.MethodGet, "/admin/audit/log?format=csv", ""), "404": b.send(http.MethodGet, "/admin/nope", ""), "style": b.send(http.MethodGet, "/admin/ui/assets/style.css", ""),
	} {
		h := w.Header()
		for key, want := range map[string]string{
			"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		} {
			if h.Get(key) != want {
				t.Errorf("%s: %s = %q, want %q", name, key, h.Get(key), want)
			}
		}
	}
}

// Style, script and icon need no session, and there is nothing else in their folder.
func TestAssets(t *testing.T) {
	b := newBrowser(t)
	page := b.send(http.MethodGet, "/admin/login", "").Body.String()
	for _, name := range []string{"style.css", "app.js", "icon.svg"} {
		_, rest, _ := strings.Cut(page, `"/admin/ui/assets/`+name)
		query, _, _ := strings.Cut(rest, `"`)
		w := b.send(http.MethodGet, "/admin/ui/assets/"+name+query, "")
		if body, _ := io.ReadAll(w.Body); w.Code != 200 || len(body) == 0 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s%s = %d, %s", name, query, w.Code, w.Header())
		}
	}
	for _, path := range []string{"", "nope.css", "../pages/layout.html", "..%2fpages%2flayout.html", "x/style.css", "style.css/", "ui.go"} {
		if w := b.send(http.MethodGet, "/admin/ui/assets/"+path, ""); w.Code != http.StatusNotFound {
			t.Errorf("%q = %d, want 404", path, w.Code)
		}
	}
	if w := b.send(http.MethodPost, "/admin/ui/assets/style.css", "x=1"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST of the style = %d", w.Code)
	}
}

func TestPathTricks(t *testing.T) {
	b := newBrowser(t)
	for path, want := range map[string]int{
		"/admin": 303, "/admin/": 303, "/admin//": 401, "/admin/ui": 401, "/admin/ui/": 401, "/admin/ui/usage/": 401, "/admin/UI/usage": 401,
		"/admin/%2e/": 401, "/admin/ui/thread": 303, "/admin/login/": 401, "/admin/audit/log": 401,
	} {
		if w := b.send(http.MethodGet, path, ""); w.Code != want {
			t.Errorf("%s without a session = %d, want %d", path, w.Code, want)
		}
	}
	b.logIn()
	for path, want := range map[string]int{"/admin/": 200, "/admin//": 404, "/admin/ui": 404, "/admin/ui/usage/": 404, "/admin/login/": 404, "/admin/nope<script>": 404} {
		if w := b.send(http.MethodGet, path, ""); w.Code != want || strings.Contains(w.Body.String(), "nope<script>") {
			t.Errorf("%s = %d, want %d", path, w.Code, want)
		}
	}
}
