package admin

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"switchboard/internal/audit"
	"switchboard/internal/record"
	"switchboard/internal/wire"
)

// maxValue bounds the text of one parameter; ids have 200 bytes at most.
const maxValue = 1024

// query is what the parameters of a request ask for.
type query struct {
	audit.Filter
	audit.Page
	Until  time.Time           // pages of one list see what had begun before it; zero: not asked
	Format string              // "json" or "csv" as asked for; empty: not asked
	Extra  map[string]string   // the page's own parameters
	Faults map[string][]string // by parameter
}

// filterNames are the parameters of every question, in the order in which errors list them.
func filterNames() []string {
	return []string{"session_id", "user_path", "user_path_exact", "model", "provider", "status", "outcome", "reason", "from", "to"}
}

// outcomes and reasons are the values that events have (DESIGN 5, 9).
func outcomes() []string {
	return []string{record.OutcomeOK, record.OutcomeCancelled, record.OutcomeUpstreamError, record.OutcomeTimeout, record.OutcomeRefused}
}

func reasons() []string {
	return []string{"affinity", "rank", "round_robin", "cost", "failover", "adaptive", "explicit", "fallback", "unavailable"}
}

// parseQuery reads the filters of DESIGN 9 and the parameters named by more ("limit", "offset"
// and "format" mean something; others are kept as Extra). It never fails: what is wrong is in
// Faults, and the rest is read, so that a form can be shown again as it was sent.
func parseQuery(raw string, more ...string) query {
	q := query{Page: audit.Page{Limit: audit.DefaultLimit}, Extra: map[string]string{}, Faults: map[string][]string{}}
	values, err := url.ParseQuery(raw)
	if err != nil {
		q.fault("query", "is not well formed; write % as %25, ; as %3B")
	}
	known := append(filterNames(), more...)
	for name, all := range values {
		switch {
		case !slices.Contains(known, name):
			q.fault(name, "is not a parameter here; there are "+strings.Join(known, ", "))
		case len(all) > 1:
			q.fault(name, "is given more than once")
		case !readable(all[0]):
			q.fault(name, fmt.Sprintf("is not text of at most %d bytes without control characters", maxValue))
		default:
			q.read(name, all[0])
		}
	}
	q.checkRange(values.Get("to"))
	if !q.Until.IsZero() && (q.To.IsZero() || q.To.After(q.Until)) {
		q.To = q.Until
	}
	return q
}

// freeze is the until of further pages of the list: what arrives meanwhile would move every
// page behind it.
func (q *query) freeze(now time.Time) int64 {
	if q.Until.IsZero() {
		return now.UnixMilli() + 1
	}
	return q.Until.UnixMilli()
}

func (q *query) fault(name, text string) { q.Faults[name] = append(q.Faults[name], text) }

func readable(value string) bool {
	return len(value) <= maxValue && utf8.ValidString(value) && strings.IndexFunc(value, unicode.IsControl) < 0
}

// read takes one value. An empty filter chooses all, because a form sends its empty fields.
func (q *query) read(name, value string) {
	switch name {
	case "session_id":
		q.SessionID = value
	case "user_path":
		q.UserPath = strings.TrimRight(value, "/")
	case "user_path_exact":
		q.PathOnly = q.oneOf(name, value, []string{"true", "false"}) == "true"
	case "model":
		q.Model = value
	case "provider":
		q.Provider = value
	case "status":
		if value != "" {
			q.Status = q.number(name, value, 100, 599)
		}
	case "outcome":
		q.Outcome = q.oneOf(name, value, outcomes())
	case "reason":
		q.Reason = q.oneOf(name, value, reasons())
	case "from":
		q.From, _ = q.instant(name, value)
	case "to":
		var day bool
		if q.To, day = q.instant(name, value); day {
			q.To = q.To.AddDate(0, 0, 1) // the end day is included
		}
	case "limit":
		q.Limit = q.number(name, value, 1, audit.MaxLimit)
	case "offset":
		q.Offset = q.number(name, value, 0, 1<<31-1)
	case "until":
		if value != "" {
			q.Until = time.UnixMilli(int64(q.number(name, value, 0, 1<<47))).UTC()
		}
	case "format":
		q.Format = q.oneOf(name, value, []string{"json", "csv"})
	default:
		q.Extra[name] = value
	}
}

func (q *query) number(name, value string, low, high int) int {
	n, err := strconv.Atoi(value)
	if err != nil || n < low || n > high || value[0] == '+' {
		q.fault(name, fmt.Sprintf("%s is not a whole number from %d to %d", quoted(value), low, high))
		return low
	}
	return n
}

func (q *query) oneOf(name, value string, all []string) string {
	if value != "" && !slices.Contains(all, value) {
		q.fault(name, quoted(value)+" is not one of "+strings.Join(all, ", "))
		return ""
	}
	return value
}

// instant reads a UTC day or an RFC 3339 timestamp, rounded up to the milliseconds that events
// have. A "+" of an offset that was sent as it is arrives as a blank.
func (q *query) instant(name, value string) (at time.Time, day bool) {
	if value == "" {
		return time.Time{}, false
	}
	if at, err := time.Parse(time.DateOnly, value); err == nil && at.Year() > 0 {
		return at, true
	}
	if n := len(value) - len(" 01:00"); n > 0 && value[n] == ' ' {
		value = value[:n] + "+" + value[n+1:]
	}
	at, err := time.Parse(time.RFC3339Nano, value)
	if at = at.UTC(); err != nil || at.Year() < 1 || at.Year() > 9999 {
		q.fault(name, quoted(value)+" is neither a UTC day (2026-03-01) nor a time (2026-03-01T01:00:00+01:00)")
		return time.Time{}, false
	}
	if short := at.Truncate(time.Millisecond); !short.Equal(at) {
		at = short.Add(time.Millisecond)
	}
	return at, false
}

// checkRange refuses from after to. Two equal times are a range without events; a day before
// the day of from is not.
func (q *query) checkRange(to string) {
	if q.From.IsZero() || q.To.IsZero() {
		return
	}
	day := len(to) == len(time.DateOnly)
	if q.From.After(q.To) || day && q.From.Equal(q.To) {
		q.fault("from", "is after to")
	}
}

func quoted(value string) string {
	const most = 60
	if len(value) > most {
		value = strings.ToValidUTF8(value[:most], "") + "…"
	}
	return strconv.Quote(value)
}

// err is what is wrong, as one answer that names every parameter at fault; nil: nothing is.
func (q *query) err() *wire.Error {
	if len(q.Faults) == 0 {
		return nil
	}
	var names, texts []string
	for name := range q.Faults {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		shown := name
		if !readable(name) || len(name) > 60 {
			shown = quoted(name)
		}
		texts = append(texts, shown+": "+strings.Join(q.Faults[name], ", "))
	}
	return &wire.Error{
		Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "invalid_parameter",
		Param: names[0], Message: strings.Join(texts, "; ") + ".",
	}
}
