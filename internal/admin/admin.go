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
	Reader    audit.Reader // nil: questions about events are answered 503
	Logger    *slog.Logger
}

// Admin is the admin plane as an http.Handler. Everything but /health needs the admin key.
type Admin struct {
	Options
	endpoints map[string]endpoint
}

// endpoint answers one path; its methods are the keys.
type endpoint map[string]func(http.ResponseWriter, *http.Request)

// New returns the admin plane.
func New(o Options) *Admin {
	a := &Admin{Options: o}
	a.endpoints = map[string]endpoint{
		"/admin/providers": {http.MethodGet: a.providers},
	}
	maps.Copy(a.endpoints, a.questions())
	return a
}

// ServeHTTP answers one request.
func (a *Admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["Cache-Control"] = []string{"no-store"}
	if path := r.URL.Path; path == "/health" || path == "/" {
		serveHealth(w, r)
		return
	}
	if !a.Auth.Authenticate(r.Header) {
		refuse(w, http.StatusUnauthorized, "authentication_error", "invalid_api_key", "Missing or invalid admin key.")
		return
	}
	methods, known := a.endpoints[r.URL.Path]
	if !known {
		refuse(w, http.StatusNotFound, "not_found_error", "not_found", "There is nothing at this path.")
		return
	}
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
