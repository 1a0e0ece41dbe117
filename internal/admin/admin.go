// Package admin answers the operator's questions: who may be asked, how they stand, what
// happened and what it cost.
package admin

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"time"

	"switchboard/internal/admin/ui"
	"switchboard/internal/audit"
	"switchboard/internal/auth"
	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// Health is what the admin plane asks of a health board.
type Health interface {
	// Refresh makes what other processes have shared visible here.
	Refresh(ctx context.Context, now time.Time)
	// List is what is not healthy at now, sorted by provider, key and model.
	List(now time.Time) []health.Status
}

// Options are what the admin plane is made of. All are needed unless they say what is
// without them.
type Options struct {
	Auth      auth.Admin
	Providers []*provider.Provider
	Health    Health
	Reader    audit.Reader  // nil: questions about events are answered 503
	Pins      Pins          // nil: questions about pins are answered 503
	Router    Router        // nil: as without Pins, and nothing is explained
	IdleTTL   time.Duration // of a pin
	Models    Models        // nil: questions about virtual models are answered 503
	Logger    *slog.Logger
}

// Admin is the admin plane as an http.Handler. Everything but /health needs the admin key.
type Admin struct {
	Options
	endpoints map[string]endpoint // of the API and pages
	pages     map[string]endpoint // those of endpoints that browsers show
	site      *ui.Site
}

// endpoint answers one path; its methods are the keys.
type endpoint map[string]func(http.ResponseWriter, *http.Request)

// New returns the admin plane.
func New(o Options) *Admin {
	a := &Admin{Options: o, site: ui.New()}
	a.pages = a.pageEndpoints()
	a.endpoints = map[string]endpoint{
		"/admin/providers": {http.MethodGet: a.providers},
	}
	maps.Copy(a.endpoints, a.pages)
	maps.Copy(a.endpoints, a.questions())
	maps.Copy(a.endpoints, a.pinEndpoints())
	maps.Copy(a.endpoints, a.modelEndpoints())
	return a
}

// ServeHTTP answers one request.
func (a *Admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	switch path := r.URL.Path; {
	case path == "/health" || path == "/":
		serveHealth(w, r)
		return
	case path == "/admin":
		http.Redirect(w, r, homePath, http.StatusSeeOther)
		return
	case path == loginPath:
		dispatch(w, r, endpoint{http.MethodGet: a.showLogin, http.MethodPost: a.login})
		return
	case strings.HasPrefix(path, ui.AssetPath):
		dispatch(w, r, endpoint{http.MethodGet: a.site.ServeHTTP})
		return
	case !a.admit(w, r):
		return
	}
	methods, known := a.endpoints[r.URL.Path]
	if !known {
		a.notFound(w, r)
		return
	}
	dispatch(w, r, methods)
}

// dispatch answers by the method of a path.
func dispatch(w http.ResponseWriter, r *http.Request, methods endpoint) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	answer, ok := methods[method]
	if !ok {
		methodNotAllowed(w, r, methods)
		return
	}
	answer(w, r)
}

func serveHealth(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		methodNotAllowed(w, r, endpoint{http.MethodGet: nil})
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"name": "switchboard admin", "status": "ok"})
}

func methodNotAllowed(w http.ResponseWriter, r *http.Request, methods endpoint) {
	var allow []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		if _, ok := methods[m]; ok {
			allow = append(allow, m)
			if m == http.MethodGet {
				allow = append(allow, http.MethodHead)
			}
		}
	}
	w.Header()["Allow"] = []string{strings.Join(allow, ", ")}
	refuse(w, http.StatusMethodNotAllowed, "invalid_request_error", "method_not_allowed", r.URL.Path+" takes "+strings.Join(allow, ", ")+".")
}

func refuse(w http.ResponseWriter, status int, kind, code, message string) {
	wire.WriteError(w, wire.Chat, &wire.Error{Status: status, Type: kind, Code: code, Message: message})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header()["Content-Type"] = []string{"application/json"}
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(value) //nolint:errcheck // the client may be gone
}
