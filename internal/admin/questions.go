package admin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"switchboard/internal/wire"
)

// answerMargin is what is left of a deadline to say that it was too short: on Lambda the
// deadline is the instant at which the process is stopped.
const answerMargin = time.Second

// answer is what a question comes to, as a value for JSON and as a table for CSV.
type answer interface {
	table() table
	coverage() coverageView
}

// questions are the endpoints over routing events (DESIGN 9).
func (a *Admin) questions() map[string]endpoint {
	asks := func(ask func(context.Context, *query) (answer, error), more ...string) endpoint {
		return endpoint{http.MethodGet: func(w http.ResponseWriter, r *http.Request) { a.question(w, r, ask, more) }}
	}
	return map[string]endpoint{
		"/admin/audit/sessions": asks(a.askThreads, "limit", "offset", "until", "format"),
		"/admin/audit/log":      asks(a.askLog, "limit", "offset", "until", "format"),
		"/admin/usage/sessions": asks(a.askSessions, "limit", "offset", "until", "format"),
		"/admin/usage/summary":  asks(a.askSummary, "format"),
		"/admin/usage/daily":    asks(a.askDaily, "format"),
	}
}

// question answers one question as JSON or CSV; a format that was asked for is a file.
func (a *Admin) question(w http.ResponseWriter, r *http.Request, ask func(context.Context, *query) (answer, error), more []string) {
	q := parseQuery(r.URL.RawQuery, more...)
	if err := q.err(); err != nil {
		wire.WriteError(w, wire.Chat, err)
		return
	}
	if a.Reader == nil {
		wire.WriteError(w, wire.Chat, errNoReader())
		return
	}
	ctx, cancel := withMargin(r.Context())
	defer cancel()
	found, err := ask(ctx, &q)
	if err != nil {
		wire.WriteError(w, wire.Chat, a.readError(r.Context(), err))
		return
	}
	if q.Format != "" {
		name := strings.ReplaceAll(strings.TrimPrefix(r.URL.Path, "/admin/"), "/", "-") + "." + q.Format
		w.Header()["Content-Disposition"] = []string{`attachment; filename="switchboard-` + name + `"`}
	}
	if q.Format == "csv" {
		writeCSV(w, found)
		return
	}
	writeJSON(w, http.StatusOK, found)
}

func withMargin(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline.Add(-answerMargin))
}

func errNoReader() *wire.Error {
	return &wire.Error{
		Status: http.StatusServiceUnavailable, Type: "api_error", Code: "no_events",
		Message: "No store of routing events is configured here.",
	}
}

// readError is what a reader's error means for who asked. Its text goes to the log: it may
// name buckets and queries.
func (a *Admin) readError(ctx context.Context, err error) *wire.Error {
	a.Logger.ErrorContext(ctx, "routing events could not be read", slog.Any("cause", err))
	if errors.Is(err, context.DeadlineExceeded) {
		return &wire.Error{
			Status: http.StatusGatewayTimeout, Type: "timeout_error", Code: "events_timeout", Cause: err,
			Message: "Reading the events took too long; ask for a shorter time with from and to, or ask again: what has been loaded is kept.",
		}
	}
	return &wire.Error{
		Status: http.StatusServiceUnavailable, Type: "api_error", Code: "events_unavailable", Cause: err,
		Message: "The routing events cannot be read now; the log says why.",
	}
}

func (a *Admin) askThreads(ctx context.Context, q *query) (answer, error) {
	found, err := a.Reader.Threads(ctx, q.Filter, q.Page)
	return viewThreads(found, q), err
}

func (a *Admin) askLog(ctx context.Context, q *query) (answer, error) {
	found, err := a.Reader.Log(ctx, q.Filter, q.Page)
	return viewLog(found, q), err
}

func (a *Admin) askSessions(ctx context.Context, q *query) (answer, error) {
	found, err := a.Reader.Sessions(ctx, q.Filter, q.Page)
	return viewSessions(found, q), err
}

func (a *Admin) askSummary(ctx context.Context, q *query) (answer, error) {
	found, err := a.Reader.Summary(ctx, q.Filter)
	return viewSummary(found), err
}

func (a *Admin) askDaily(ctx context.Context, q *query) (answer, error) {
	found, err := a.Reader.Daily(ctx, q.Filter)
	return viewDays(found), err
}
