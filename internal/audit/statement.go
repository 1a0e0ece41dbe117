package audit

import (
	"strconv"
	"strings"
)

// Dialect is what one engine says in its own way. The questions themselves are below, once.
// Their joins are written CROSS JOIN … WHERE, which some engines take as the order to join in.
type Dialect struct {
	// Literals writes values into the text, quoted (Quote), instead of binding them.
	Literals bool
	// OffsetFirst is the order of Trino: OFFSET m LIMIT n.
	OffsetFirst bool
	// Relations defines what the questions read, for a filter.
	Relations func(v *Values, f Filter) Relations
}

// Relations are the queries that a question reads from, each a SELECT that yields at least
// the columns named here.
type Relations struct {
	// With is what the others need, as entries of a WITH clause: "a AS (…)".
	With []string
	// Hint stands between AS and the parenthesis of cells: some engines need to be told
	// not to keep the whole of it.
	Hint string
	// Cells are the chosen events, or sums over some of them with the same thread, model,
	// provider and day: thread, session (1, or 0 for an event without session), model_name,
	// provider_identity, day (2006-01-02), newest (NewestKey of the newest) and UsageColumns.
	Cells string
	// Sums are Cells that need not have thread, session and newest, for questions that ask
	// of no thread. Empty: Cells.
	Sums string
	// Chosen has one row for each chosen thread: thread, newest. Empty: it is made from Cells.
	Chosen string
	// ChosenSessions is Chosen without the events that have no session.
	ChosenSessions string
	// Threads has all threads, whole: thread, user_path, session_id, request_count.
	Threads string
	// Events has all events, once each: EventColumns. Latest finds in it, as e, the newest
	// event of a row p of a page, by p.thread and p.newest. Empty: by its event_id.
	Events, Latest string
	// Matching are the chosen ones of Events.
	Matching string
	// SessionCount has one row: sessions, the number of chosen sessions. Empty: it is
	// made from Cells, and Sums must be empty too.
	SessionCount string
	// ThreadTotal, SessionTotal and EventTotal yield the number of chosen threads, sessions and
	// events where that is known or found in another way: an expression. Empty: they are counted.
	ThreadTotal, SessionTotal, EventTotal string
}

func (d Dialect) open(f Filter) (*Values, Relations) {
	v := &Values{Literals: d.Literals}
	r := d.Relations(v, f)
	if r.Sums == "" {
		r.Sums = r.Cells
	}
	if r.Latest == "" {
		r.Latest = "e.event_id = SUBSTR(p.newest, 20)"
	}
	if r.Chosen == "" {
		r.Chosen = "SELECT c.thread, MAX(c.newest) AS newest FROM cells c GROUP BY c.thread"
	}
	if r.ChosenSessions == "" {
		r.ChosenSessions = "SELECT c.thread, MAX(c.newest) AS newest FROM cells c WHERE c.session = 1 GROUP BY c.thread"
	}
	return v, r
}

func (d Dialect) page(v *Values, p Page) string {
	limit, offset := v.Int(int64(p.Limit)), v.Int(int64(p.Offset))
	if d.OffsetFirst {
		return "OFFSET " + offset + " LIMIT " + limit
	}
	return "LIMIT " + limit + " OFFSET " + offset
}

// total is the number of rows of a relation, beside every row of a page.
func total(known, relation string) string {
	if known != "" {
		return known + " AS total"
	}
	return "(SELECT COUNT(*) FROM " + relation + ") AS total"
}

func (r Relations) with(relations ...string) string {
	list := append([]string(nil), r.With...)
	list = append(list, relations...)
	if len(list) == 0 {
		return ""
	}
	return "WITH " + strings.Join(list, ",\n") + "\n"
}

func (r Relations) cells() string {
	return "cells AS " + r.Hint + "(" + r.Cells + ")"
}

// sums is cells for questions that ask of no thread.
func (r Relations) sums() string { return as("cells", r.Sums) }

func as(name, query string) string { return name + " AS (" + query + ")" }

// Threads yields a page of threads: total, user_path, session_id, request_count and the
// EventColumns of the newest chosen event. A page beyond the end has no row, hence no total.
func (d Dialect) Threads(f Filter, p Page) Statement {
	v, r := d.open(f)
	return v.statement(r.with(r.cells(), as("chosen", r.Chosen), as("threads", r.Threads), as("events", r.Events),
		as("page", "SELECT c.thread, c.newest FROM chosen c ORDER BY c.newest DESC "+d.page(v, p))),
		"SELECT "+total(r.ThreadTotal, "chosen")+", t.user_path, t.session_id, t.request_count, "+prefixed("e", EventColumns())+`
FROM page p CROSS JOIN threads t CROSS JOIN events e
WHERE t.thread = p.thread AND `+r.Latest+`
ORDER BY p.newest DESC`)
}

// ThreadsTotal yields the number of chosen threads.
func (d Dialect) ThreadsTotal(f Filter) Statement {
	v, r := d.open(f)
	return v.statement(r.with(r.cells(), as("chosen", r.Chosen)), "SELECT "+total(r.ThreadTotal, "chosen"))
}

// Log yields a page of events: total and EventColumns. A page beyond the end has no row.
func (d Dialect) Log(f Filter, p Page) Statement {
	v, r := d.open(f)
	return v.statement(r.with(as("events", r.Events), as("matching", r.Matching)),
		"SELECT "+total(r.EventTotal, "matching")+", "+prefixed("e", EventColumns())+`
FROM matching e
ORDER BY e.created_at DESC, e.event_id DESC `+d.page(v, p))
}

// LogTotal yields the number of chosen events.
func (d Dialect) LogTotal(f Filter) Statement {
	v, r := d.open(f)
	if r.EventTotal != "" {
		return v.statement("SELECT " + r.EventTotal + " AS total")
	}
	return v.statement(r.with(r.sums()), "SELECT COALESCE(SUM(c.requests), 0) AS total FROM cells c")
}

// Sessions yields a page of sessions: total, user_path, session_id, newest and
// UsageColumns. A page beyond the end has no row.
func (d Dialect) Sessions(f Filter, p Page) Statement {
	v, r := d.open(f)
	return v.statement(r.with(r.cells(), as("chosen", r.ChosenSessions), as("threads", r.Threads),
		as("page", "SELECT c.thread, c.newest FROM chosen c ORDER BY c.newest DESC "+d.page(v, p)),
		as("used", "SELECT p.thread, p.newest, "+sums()+" FROM page p CROSS JOIN cells c WHERE c.thread = p.thread GROUP BY p.thread, p.newest")),
		"SELECT "+total(r.SessionTotal, "chosen")+", t.user_path, t.session_id, u.newest, "+prefixed("u", UsageColumns())+`
FROM used u CROSS JOIN threads t
WHERE t.thread = u.thread
ORDER BY u.newest DESC`)
}

// SessionsTotal yields the number of chosen sessions.
func (d Dialect) SessionsTotal(f Filter) Statement {
	v, r := d.open(f)
	return v.statement(r.with(r.cells(), as("chosen", r.ChosenSessions)), "SELECT "+total(r.SessionTotal, "chosen"))
}

// Summary yields the usage of each model and provider: sessions (of all together),
// model_name, provider_identity and UsageColumns. Nothing chosen has no row.
func (d Dialect) Summary(f Filter) Statement {
	v, r := d.open(f)
	count := r.SessionCount
	if count == "" {
		count = "SELECT COUNT(DISTINCT CASE WHEN c.session = 1 THEN c.thread END) AS sessions FROM cells c"
	}
	return v.statement(r.with(r.sums(), as("counted", count),
		as("used", "SELECT c.model_name, c.provider_identity, "+sums()+" FROM cells c GROUP BY c.model_name, c.provider_identity")),
		"SELECT n.sessions, u.model_name, u.provider_identity, "+prefixed("u", UsageColumns())+`
FROM counted n CROSS JOIN used u
ORDER BY u.cost_nano_usd DESC, u.model_name, u.provider_identity`)
}

// Daily yields the usage of each UTC day: day and UsageColumns.
func (d Dialect) Daily(f Filter) Statement {
	v, r := d.open(f)
	return v.statement(r.with(r.sums()), "SELECT c.day, "+sums()+"\nFROM cells c GROUP BY c.day ORDER BY c.day")
}

// statement numbers the parameters that the text has anew: a relation that this question
// does not read may have taken some.
func (v *Values) statement(parts ...string) Statement {
	var s Statement
	var sql strings.Builder
	taken := &Values{}
	for i, piece := range strings.Split(strings.Join(parts, ""), "?") {
		digits := len(piece) - len(strings.TrimLeft(piece, "0123456789"))
		if n, err := strconv.Atoi(piece[:digits]); i > 0 && err == nil {
			piece = taken.bind(v.Args[n-1]) + piece[digits:]
		}
		sql.WriteString(piece)
	}
	s.SQL, s.Args = sql.String(), taken.Args
	return s
}
