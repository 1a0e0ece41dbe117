package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"switchboard/internal/budget"
	"switchboard/internal/route"
	"switchboard/internal/wire"
)

// serveOther answers what is not a completion: the model list, health and the probes of
// clients, and says plainly what does not exist. None of it is a routing event.
func (g *Gateway) serveOther(w http.ResponseWriter, r *http.Request) {
	w.Header()["X-Request-Id"] = []string{newULID(time.Now())}
	surface := surfaceOf(r)
	allow := "GET, HEAD"
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	id, isModel := strings.CutPrefix(r.URL.Path, "/v1/models/")
	if !isModel {
		id = ""
	}
	_, isData := g.operations[r.URL.Path]
	switch {
	case isData:
		allow = http.MethodPost
	case r.URL.Path == "/" && read:
		writeJSON(w, http.StatusOK, map[string]string{"name": "switchboard", "status": "ok"})
		return
	case r.URL.Path == "/health" && read:
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
		return
	case (r.URL.Path == "/v1/models" || isModel && id != "") && read:
		principal, ok := g.Auth.Authenticate(r.Header)
		if !ok {
			wire.WriteError(w, surface, errUnauthenticated())
			return
		}
		g.serveModels(r.Context(), w, surface, principal.UserPath, id)
		return
	case r.URL.Path == "/" || r.URL.Path == "/health" || r.URL.Path == "/v1/models" || isModel && id != "":
	default:
		wire.WriteError(w, surface, &wire.Error{
			Status: http.StatusNotFound, Type: "not_found_error", Code: "not_found",
			Message: "There is nothing at this path. The API is under /v1.",
		})
		return
	}
	w.Header()["Allow"] = []string{allow}
	wire.WriteError(w, surface, &wire.Error{
		Status: http.StatusMethodNotAllowed, Type: "invalid_request_error", Code: "method_not_allowed",
		Message: r.URL.Path + " takes " + allow + ".",
	})
}

// serveModels lists the names that the caller can ask for, or shows one. Anthropic's clients
// know themselves by the anthropic-version header and get their own shape.
func (g *Gateway) serveModels(ctx context.Context, w http.ResponseWriter, surface wire.Surface, userPath, id string) {
	now := time.Now()
	refreshing, release := budget.With(ctx, storeBudget)
	g.Board.Refresh(refreshing, now)
	g.Catalog.Refresh(refreshing, now)
	release()
	catalog, view := g.Catalog.For(userPath), g.Board.View(now)
	shape := openAIModel
	if surface == wire.Messages {
		shape = anthropicModel
	}
	if id != "" {
		if e, known := catalog.Entry(id, view); known {
			writeJSON(w, http.StatusOK, shape(e))
			return
		}
		wire.WriteError(w, surface, errUnknownModel(id))
		return
	}
	entries := catalog.Entries(view)
	if g.OnlyVirtual {
		entries = slices.DeleteFunc(entries, func(e route.Entry) bool { return !e.Virtual })
	}
	list := make([]map[string]any, 0, len(entries))
	for _, e := range entries {
		list = append(list, shape(e))
	}
	answer := map[string]any{"object": "list", "data": list}
	if surface == wire.Messages {
		answer = map[string]any{"data": list, "has_more": false, "first_id": nil, "last_id": nil}
		if len(entries) > 0 {
			answer["first_id"], answer["last_id"] = entries[0].ID, entries[len(entries)-1].ID
		}
	}
	writeJSON(w, http.StatusOK, answer)
}

// created is what every model says of its age: unknown, as the start of the epoch.
const created = "1970-01-01T00:00:00Z"

func openAIModel(e route.Entry) map[string]any {
	return map[string]any{"id": e.ID, "object": "model", "created": 0, "owned_by": e.OwnedBy}
}

func anthropicModel(e route.Entry) map[string]any {
	return map[string]any{"type": "model", "id": e.ID, "display_name": e.ID, "created_at": created}
}

// surfaceOf is whose shape an answer outside the data plane takes.
func surfaceOf(r *http.Request) wire.Surface {
	if r.Header.Get("Anthropic-Version") != "" || strings.HasPrefix(r.URL.Path, "/v1/messages") {
		return wire.Messages
	}
	return wire.Chat
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header()["Content-Type"] = []string{"application/json"}
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(value) //nolint:errcheck // the client may be gone
}
