package admin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/session"
	"switchboard/internal/wire"
)

const sessionsPath = "/admin/ui/sessions"

// pinsPage is Sessions: where the live ones are pinned.
type pinsPage struct {
	shell
	Values  map[string]string
	Faults  map[string][]string
	Any     bool // a filter is set
	Pins    []pinRow
	Next    string
	First   bool // the first page
	Notice  string
	Trouble string
	Now     time.Time
}

type pinRow struct {
	affinity.View
	LogURL, UsageURL string
	ExpiresIn        string
}

// sessions is the page Sessions.
func (a *Admin) sessions(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := withMargin(r.Context())
	defer cancel()
	v, status := a.sessionsPage(ctx, r)
	if cleared := r.URL.Query().Get("cleared"); cleared != "" && v.Trouble == "" {
		v.Notice = cleared + " is cleared: its next request is routed like that of a new session."
	}
	a.show(w, r, status, "sessions", v)
}

func (a *Admin) sessionsPage(ctx context.Context, r *http.Request) (*pinsPage, int) {
	values := r.URL.Query()
	values.Del("cleared")
	for name := range values {
		values[name] = slices.DeleteFunc(values[name], func(s string) bool { return s == "" })
		if len(values[name]) == 0 {
			values.Del(name)
		}
	}
	v := &pinsPage{
		shell: a.shell(r, "Sessions", sessionsPath), Values: map[string]string{}, Now: time.Now(), First: !values.Has("cursor"),
		Any: values.Has("session_id") || values.Has("user_path") || values.Has("model"),
	}
	asked := &http.Request{URL: &url.URL{RawQuery: values.Encode()}}
	q, cursor := pinQuery(asked, "limit", "cursor")
	v.Faults = q.Faults
	for _, name := range filterNames() {
		if value := values.Get(name); readable(value) {
			v.Values[name] = value
		}
	}
	var err error
	var found *pinsView
	switch {
	case a.Pins == nil || a.Router == nil:
		err = &wire.Error{Status: http.StatusServiceUnavailable, Message: "No store of sessions is configured here."}
	case q.err() != nil:
		err = q.err()
	default:
		found, err = a.pinPage(ctx, &q, cursor)
	}
	if err != nil {
		e := a.pinFault(ctx, err)
		v.Trouble = e.Message
		return v, e.Status
	}
	for _, pin := range found.Sessions {
		v.Pins = append(v.Pins, rowOfPin(pin, v.Now))
	}
	if found.NextCursor != nil {
		values.Set("cursor", *found.NextCursor)
		v.Next = address(sessionsPath, values)
	}
	return v, http.StatusOK
}

func rowOfPin(pin affinity.View, now time.Time) pinRow {
	row := pinRow{View: pin, ExpiresIn: inMinutes(pin.ExpiresAt.Sub(now))}
	row.LogURL = sessionLink(homePath, pin.SessionID, pin.UserPath)
	row.UsageURL = sessionLink(usagePath, pin.SessionID, pin.UserPath)
	return row
}

func inMinutes(d time.Duration) string {
	minutes := max(0, int64(d.Round(time.Minute)/time.Minute))
	if minutes < 60 {
		return strconv.FormatInt(minutes, 10) + " min"
	}
	return strconv.FormatInt(minutes/60, 10) + " h " + strconv.FormatInt(minutes%60, 10) + " min"
}

// pinFault is what an error of the pins means for who looks at the page.
func (a *Admin) pinFault(ctx context.Context, err error) *wire.Error {
	var told *wire.Error
	var conflict *conflictError
	switch {
	case errors.As(err, &told):
		return told
	case errors.As(err, &conflict):
		return &wire.Error{Status: http.StatusConflict, Message: "That session has moved in between. Look at it again: it is below as it is now."}
	}
	a.Logger.ErrorContext(ctx, "session store fault", slog.Any("cause", err))
	return &wire.Error{Status: http.StatusServiceUnavailable, Message: "The store of sessions does not answer now; the log says why."}
}

// clearSession is the form of a row: it clears one pin as it was seen.
func (a *Admin) clearSession(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := withMargin(r.Context())
	defer cancel()
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	id, path := r.PostFormValue("session_id"), r.PostFormValue("user_path")
	epoch, err := strconv.ParseInt(r.PostFormValue("epoch"), 10, 64)
	switch {
	case err != nil || epoch < 1 || id == "":
		err = &wire.Error{Status: http.StatusBadRequest, Message: "The form could not be read."}
	case a.Pins == nil || a.Router == nil:
		err = &wire.Error{Status: http.StatusServiceUnavailable, Message: "No store of sessions is configured here."}
	default:
		_, err = a.clear(ctx, affinity.Ref{SessionKey: session.Scope(path, id), Model: r.PostFormValue("model")}, epoch)
	}
	if err != nil {
		fault := a.pinFault(ctx, err)
		v, _ := a.sessionsPage(ctx, r)
		v.Trouble = fault.Message
		a.show(w, r, fault.Status, "sessions", v)
		return
	}
	values := r.URL.Query()
	values.Set("cleared", id)
	values.Del("cursor")
	http.Redirect(w, r, address(sessionsPath, values), http.StatusSeeOther)
}
