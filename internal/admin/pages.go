package admin

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"switchboard/internal/audit"
	"switchboard/internal/wire"
)

// Where the pages are. The API has the plain names.
const (
	homePath      = "/admin/"
	usagePath     = "/admin/ui/usage"
	providersPath = "/admin/ui/providers"
	threadPath    = "/admin/ui/thread"
)

const (
	// patience is how long a page waits for its content before it says that it is loading.
	patience = 400 * time.Millisecond
	// againMost bounds how often a page whose events are still being loaded asks again by itself.
	againMost = 60
)

// pageEndpoints are what browsers show, and what forms of pages lead to.
func (a *Admin) pageEndpoints() map[string]endpoint {
	return map[string]endpoint{
		homePath:      {http.MethodGet: a.auditLogs},
		usagePath:     {http.MethodGet: a.usage},
		providersPath: {http.MethodGet: a.showProviders},
		sessionsPath:  {http.MethodGet: a.sessions, http.MethodPost: a.clearSession},
		modelsPath:    {http.MethodGet: a.models, http.MethodPost: a.changeModel},
		threadPath:    {http.MethodGet: a.thread},
		logoutPath:    {http.MethodPost: a.logout},
	}
}

// shell is what every page has.
type shell struct {
	Title     string
	Page      string // its path, for the navigation
	SignedIn  bool   // by cookie: there is a session to log out of
	CSRF      string
	HasModels bool // there are virtual models to edit
	HasPins   bool // there are pins to look at
}

func (a *Admin) shell(r *http.Request, title, page string) shell {
	s := shell{Title: title, Page: page, HasModels: a.Models != nil, HasPins: a.Pins != nil && a.Router != nil}
	if token := a.token(r); token != "" {
		s.SignedIn, s.CSRF = true, a.Auth.FormToken(token)
	}
	return s
}

// message is a page that says one thing, or the part of a page that went wrong.
type message struct {
	shell
	Text string
	Code int
}

// show renders a whole page.
func (a *Admin) show(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	var out bytes.Buffer
	for _, part := range []string{"head", name, "foot"} {
		if err := a.site.Render(&out, part, data); err != nil {
			a.Logger.ErrorContext(r.Context(), "page not rendered", slog.String("page", name), slog.Any("cause", err))
			refuse(w, http.StatusInternalServerError, "api_error", "page", "The page cannot be shown; the log says why.")
			return
		}
	}
	h := w.Header()
	h["Content-Type"] = []string{"text/html; charset=utf-8"}
	h["Content-Length"] = []string{strconv.Itoa(out.Len())}
	w.WriteHeader(status)
	w.Write(out.Bytes()) //nolint:errcheck // the client may be gone
}

// content is what a page has found: the data of its template. A failure is data as well, so
// that the filters can be changed.
type content struct {
	status int
	name   string
	data   any
}

// page shows what load finds. When that takes a while, the head of the page is sent at once, and
// the content when it is there: the status is then 200 whatever comes.
func (a *Admin) page(w http.ResponseWriter, r *http.Request, s shell, load func(context.Context) content) {
	ctx, cancel := withMargin(r.Context())
	defer cancel()
	found := make(chan content, 1)
	go func() { // joined below: every way out has received
		found <- a.guarded(ctx, load, s)
	}()
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case c := <-found:
		a.show(w, r, c.status, c.name, c.data)
		return
	case <-wait.C:
	}
	w.Header()["Content-Type"] = []string{"text/html; charset=utf-8"}
	a.part(w, r, "head", s)
	a.part(w, r, "loading", nil)
	c := <-found
	a.part(w, r, c.name, c.data)
	a.part(w, r, "foot", s)
}

// guarded turns a panic of load, which runs beside the handler, into an answer.
func (a *Admin) guarded(ctx context.Context, load func(context.Context) content, s shell) (c content) {
	defer func() {
		if cause := recover(); cause != nil {
			a.Logger.ErrorContext(ctx, "panic", slog.String("cause", fmt.Sprint(cause)))
			c = content{http.StatusInternalServerError, "message", message{s, "Something went wrong here; the log says what.", http.StatusInternalServerError}}
		}
	}()
	return load(ctx)
}

// part sends a piece of a page that is already under way.
func (a *Admin) part(w http.ResponseWriter, r *http.Request, name string, data any) {
	if err := a.site.Render(w, name, data); err != nil {
		a.Logger.ErrorContext(r.Context(), "page not rendered", slog.String("page", name), slog.Any("cause", err))
	}
	http.NewResponseController(w).Flush() //nolint:errcheck // on Lambda there is none and no need
}

// trouble is why a page has no content: what the parameters say wrong, or the reader's error.
func (a *Admin) trouble(ctx context.Context, q *query, err error) *wire.Error {
	switch {
	case len(q.Faults) > 0:
		return q.err()
	case a.Reader == nil:
		return errNoReader()
	case err != nil:
		return a.readError(ctx, err)
	}
	return nil
}

// notFound answers a browser with a page, and a program as the API does.
func (a *Admin) notFound(w http.ResponseWriter, r *http.Request) {
	const text = "There is nothing at this path."
	if wantsHTML(r) && !strings.Contains(r.Header.Get("Accept"), "application/json") {
		a.show(w, r, http.StatusNotFound, "message", message{a.shell(r, "Not found", ""), text, http.StatusNotFound})
		return
	}
	refuse(w, http.StatusNotFound, "not_found_error", "not_found", text)
}

// coverageNote says what a page was built from.
type coverageNote struct {
	coverageView
	Again string // the page again, when more is being loaded
}

func (p *pageQuery) coverage(c audit.Coverage) coverageNote {
	note := coverageNote{coverageView: viewCoverage(c)}
	tried, err := strconv.Atoi(p.Extra["again"])
	if err != nil || tried < 0 {
		tried = 0
	}
	if c.Pending > 0 && tried < againMost {
		note.Again = p.link("again", strconv.Itoa(tried+1), "offset", strconv.Itoa(p.Offset))
	}
	return note
}
