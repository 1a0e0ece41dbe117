package admin

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"switchboard/internal/auth"
)

const (
	sessionCookie   = "switchboard_admin"
	sessionLifetime = 12 * time.Hour
	// formToken is what a write of a browser session carries: as a header, or as a field of a form.
	formTokenHeader = "X-CSRF-Token"
	formTokenField  = "csrf"
	// maxForm bounds a form that is read here.
	maxForm = 1 << 20
)

// secure tells browsers to do nothing with an answer but to show it, with our own style and
// script: what a client has sent as an id or a model stands on these pages.
func secure(h http.Header) {
	h["Cache-Control"] = []string{"no-store"}
	h["Content-Security-Policy"] = []string{"default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"}
	h["X-Frame-Options"] = []string{"DENY"}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	h["Referrer-Policy"] = []string{"no-referrer"}
	h["Cross-Origin-Opener-Policy"] = []string{"same-origin"}
	h["Cross-Origin-Resource-Policy"] = []string{"same-origin"}
}

// token is the session token of a request's cookie; empty: it has none that counts.
func (a *Admin) token(r *http.Request) string {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil || !a.Auth.Session(cookie.Value, time.Now()) {
		return ""
	}
	return cookie.Value
}

// admit tells whether the request may be answered; if not, it has been refused. The admin
// key in a header is enough for everything. A cookie is what browsers send by themselves, so
// a write with it must show that one of our pages made it.
func (a *Admin) admit(w http.ResponseWriter, r *http.Request) bool {
	if a.Auth.Authenticate(r.Header) {
		return true
	}
	token := a.token(r)
	if token == "" {
		a.turnAway(w, r)
		return false
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	if sameSite(r) && a.Auth.CheckFormToken(token, formToken(w, r)) {
		return true
	}
	refuse(w, http.StatusForbidden, "permission_error", "csrf", "This write did not come from a page of this session; open the page again and repeat it.")
	return false
}

// sameSite reads what browsers say of where a request comes from; nothing said is fine.
func sameSite(r *http.Request) bool { return http.NewCrossOriginProtection().Check(r) == nil }

func formToken(w http.ResponseWriter, r *http.Request) string {
	if token := r.Header.Get(formTokenHeader); token != "" {
		return token
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return ""
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	return r.PostFormValue(formTokenField)
}

// turnAway sends a browser that asks for a page to the login, and everybody else away, with
// one text whatever was wrong.
func (a *Admin) turnAway(w http.ResponseWriter, r *http.Request) {
	_, page := a.pages[r.URL.Path]
	if page && r.Method == http.MethodGet && wantsHTML(r) && !presentsKey(r) {
		http.Redirect(w, r, loginPath+"?"+url.Values{"next": {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
		return
	}
	refuse(w, http.StatusUnauthorized, "authentication_error", "invalid_api_key", "Missing or invalid admin key.")
}

func wantsHTML(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

func presentsKey(r *http.Request) bool {
	return slices.ContainsFunc(auth.Headers(), func(name string) bool { return r.Header.Get(name) != "" })
}

const loginPath, logoutPath = "/admin/login", "/admin/logout"

type loginPage struct {
	shell
	Next   string
	Failed bool
}

func (a *Admin) showLogin(w http.ResponseWriter, r *http.Request) {
	next := a.next(r.URL.Query().Get("next"))
	if a.token(r) != "" {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	a.show(w, r, http.StatusOK, "login", loginPage{shell: shell{Title: "Log in"}, Next: next})
}

// login makes a session of the admin key. A wrong key, a client key and no key are answered alike.
func (a *Admin) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	next := a.next(r.PostFormValue("next"))
	token, ok := a.Auth.NewSession(strings.TrimSpace(r.PostFormValue("key")), time.Now().Add(sessionLifetime))
	if !ok || !sameSite(r) {
		a.show(w, r, http.StatusUnauthorized, "login", loginPage{shell: shell{Title: "Log in"}, Next: next, Failed: true})
		return
	}
	http.SetCookie(w, cookie(r, token, int(sessionLifetime/time.Second)))
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (a *Admin) logout(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, cookie(r, "", -1))
	http.Redirect(w, r, loginPath, http.StatusSeeOther)
}

// cookie is sent to the admin plane alone. Secure: on Lambda TLS ends before us, and says so.
func cookie(r *http.Request, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: sessionCookie, Value: value, Path: "/admin/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
	}
}

// next is where a login leads: one of our pages, with its parameters, and nowhere else.
func (a *Admin) next(wanted string) string {
	u, err := url.Parse(wanted)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil {
		return homePath
	}
	if _, page := a.pages[u.Path][http.MethodGet]; !page || u.Path == threadPath {
		return homePath
	}
	return (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).RequestURI()
}
