package admin

import (
	"context"
	"net/http"
	"strconv"

	"switchboard/internal/audit"
	"switchboard/internal/record"
)

// auditPage is Audit Logs: threads, or every request for itself.
type auditPage struct {
	shell
	Filters  filterForm
	Grouping []choice
	Grouped  bool
	Threads  []threadRow
	Entries  []entryRow
	Pager    pager
	Coverage coverageNote
	CSV      string
	JSON     string
	Trouble  string
}

// threadRow is a thread: its newest request that the filter chose, and the others beneath.
type threadRow struct {
	entryRow
	Count  int64
	Others int64
	Older  *olderRows // the others, when they are unfolded
	Source string     // where a script gets the others
	Unfold string     // where everybody else does
}

// Counted is how many requests the row stands for.
func (t threadRow) Counted() int64 { return t.Count }

// olderRows are the other requests of a thread.
type olderRows struct {
	Entries []entryRow
	More    int64  // not shown
	LogURL  string // all of them
	Trouble string
}

// entryRow is one request.
type entryRow struct {
	*record.Event
	From, To, Why string // when it switched: the places, and what went wrong
	UsageURL      string // its session's usage
	LogURL        string // its session's requests
}

// auditLogs is the page Audit Logs.
func (a *Admin) auditLogs(w http.ResponseWriter, r *http.Request) {
	p := a.pageQuery(r.URL.RawQuery, homePath, "group", "open", "again")
	group := p.oneOf("group", p.Extra["group"], []string{"session", "request"})
	v := auditPage{shell: a.shell(r, "Audit Logs", homePath), Grouped: group != "request", Filters: a.filterForm(p, r.URL.RawQuery)}
	v.Grouping = []choice{
		{Name: "Group by session", URL: p.link("group", "", "open", ""), Current: v.Grouped},
		{Name: "Every request", URL: p.link("group", "request", "open", ""), Current: !v.Grouped},
	}
	a.page(w, r, v.shell, func(ctx context.Context) content {
		status := http.StatusOK
		var err error
		if a.trouble(ctx, &p.query, nil) == nil {
			err = a.fillAudit(ctx, p, &v)
		}
		if t := a.trouble(ctx, &p.query, err); t != nil {
			status, v.Trouble = t.Status, t.Message
		}
		return content{status, "audit", v}
	})
}

func (a *Admin) fillAudit(ctx context.Context, p *pageQuery, v *auditPage) error {
	if !v.Grouped {
		found, err := a.Reader.Log(ctx, p.Filter, p.Page)
		v.Entries, v.Pager, v.Coverage = rows(found.Entries), p.pager(len(found.Entries), found.Total), p.coverage(found.Coverage)
		v.CSV, v.JSON = p.export("/admin/audit/log", "csv", true), p.export("/admin/audit/log", "json", true)
		return err
	}
	found, err := a.Reader.Threads(ctx, p.Filter, p.Page)
	if err != nil {
		return err
	}
	v.Pager, v.Coverage = p.pager(len(found.Sessions), found.Total), p.coverage(found.Coverage)
	v.CSV, v.JSON = p.export("/admin/audit/sessions", "csv", true), p.export("/admin/audit/sessions", "json", true)
	for i := range found.Sessions {
		t := &found.Sessions[i]
		row := threadRow{entryRow: rows([]record.Event{t.Latest})[0], Count: t.RequestCount, Others: t.RequestCount - 1}
		if row.Others > 0 && t.SessionID != "" {
			row.Source = sessionLink(threadPath, t.SessionID, t.UserPath, "skip", t.Latest.EventID)
			row.Unfold = p.link("open", t.Latest.EventID, "offset", strconv.Itoa(p.Offset)) + "#t-" + t.Latest.EventID
		}
		if row.Unfold != "" && p.Extra["open"] == t.Latest.EventID {
			row.Older = a.older(ctx, audit.Filter{SessionID: t.SessionID, UserPath: t.UserPath, PathOnly: true}, t.Latest.EventID)
		}
		v.Threads = append(v.Threads, row)
	}
	return nil
}

// older are the requests of one session but the one that is shown already.
func (a *Admin) older(ctx context.Context, session audit.Filter, skip string) *olderRows {
	found, err := a.Reader.Log(ctx, session, audit.Page{Limit: audit.MaxLimit})
	if err != nil {
		return &olderRows{Trouble: a.readError(ctx, err).Message}
	}
	o := &olderRows{
		More:   found.Total - int64(len(found.Entries)),
		LogURL: sessionLink(homePath, session.SessionID, session.UserPath, "group", "request", "limit", strconv.Itoa(audit.MaxLimit)),
	}
	for _, row := range rows(found.Entries) {
		if row.EventID != skip {
			o.Entries = append(o.Entries, row)
		}
	}
	return o
}

// thread is the part of Audit Logs that a script unfolds.
func (a *Admin) thread(w http.ResponseWriter, r *http.Request) {
	q := parseQuery(r.URL.RawQuery, "skip", "days")
	if q.SessionID == "" {
		q.fault("session_id", "is missing")
	}
	o := &olderRows{}
	status := http.StatusOK
	if t := a.trouble(r.Context(), &q, nil); t != nil {
		status, o.Trouble = t.Status, t.Message
	} else {
		ctx, cancel := withMargin(r.Context())
		defer cancel()
		o = a.older(ctx, audit.Filter{SessionID: q.SessionID, UserPath: q.UserPath, PathOnly: true}, q.Extra["skip"])
	}
	w.Header()["Content-Type"] = []string{"text/html; charset=utf-8"}
	w.WriteHeader(status)
	a.part(w, r, "older", o)
}

// rows are events as rows, newest first. A switch says where the session came from: where the
// request before it, for the same model, was served, or else what was tried first.
func rows(events []record.Event) []entryRow {
	all := make([]entryRow, len(events))
	for i := range events {
		e := &events[i]
		row := entryRow{Event: e}
		if e.SessionID != "" {
			row.UsageURL = sessionLink(usagePath, e.SessionID, e.UserPath)
			row.LogURL = sessionLink(homePath, e.SessionID, e.UserPath, "group", "request")
		}
		if e.Switched {
			row.From, row.To, row.Why = switchedFrom(e, events[i+1:]), place(e.Provider, e.KeyID), whySwitched(e)
		}
		all[i] = row
	}
	return all
}

func place(provider, key string) string {
	if key == "" {
		return provider
	}
	return provider + " / key " + key
}

func switchedFrom(e *record.Event, older []record.Event) string {
	for i := range older {
		o := &older[i]
		if o.SessionID == e.SessionID && o.UserPath == e.UserPath && o.RequestedModel == e.RequestedModel && o.Provider != "" && o.Outcome != record.OutcomeRefused {
			return place(o.Provider, o.KeyID)
		}
	}
	for _, attempt := range e.Attempts {
		if attempt.Provider != e.Provider || attempt.KeyID != e.KeyID {
			return place(attempt.Provider, attempt.KeyID)
		}
	}
	return ""
}

// whySwitched is the first failure that the request met, or what was left alone when it came.
func whySwitched(e *record.Event) string {
	for _, attempt := range e.Attempts {
		if attempt.Error == "" {
			continue
		}
		if attempt.Status != 0 {
			return attempt.Error + " (" + strconv.Itoa(attempt.Status) + ")"
		}
		return attempt.Error
	}
	if len(e.DegradedProviders) > 0 {
		return "left alone: " + e.DegradedProviders[0]
	}
	return e.DecisionReason
}
