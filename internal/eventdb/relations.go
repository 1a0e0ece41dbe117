package eventdb

import (
	"strings"

	"switchboard/internal/audit"
)

// usage of one event as a cell's columns.
const eventUsage = `1 AS requests, COALESCE(e.input_tokens, 0) AS input_tokens,
	COALESCE(e.cached_input_tokens, 0) AS cached_input_tokens, COALESCE(e.cache_write_tokens, 0) AS cache_write_tokens,
	COALESCE(e.output_tokens, 0) AS output_tokens, COALESCE(e.input_cost_nano_usd, 0) AS input_cost_nano_usd,
	COALESCE(e.output_cost_nano_usd, 0) AS output_cost_nano_usd, COALESCE(e.cost_nano_usd, 0) AS cost_nano_usd,
	(k.provider_identity <> '' AND e.cost_nano_usd IS NULL) AS unpriced, k.switched AS switches,
	COALESCE(e.switch_cost_nano_usd, 0) AS switch_cost_nano_usd`

// relations says where the questions find what they read (audit.Dialect).
func (p *plan) relations(v *audit.Values, _ audit.Filter) audit.Relations {
	r := audit.Relations{
		Hint:     "NOT MATERIALIZED ", // a page's threads are then found by their key
		Threads:  "SELECT t.id AS thread, x.user_path, t.session_id, t.requests AS request_count FROM event_thread t CROSS JOIN event_path x WHERE x.id = t.path",
		Events:   "SELECT * FROM routing_events",
		Latest:   "e.created_at = CAST(SUBSTR(p.newest, 1, 19) AS INTEGER) AND e.event_id = SUBSTR(p.newest, 20)",
		Matching: p.matchingEvents(v),
		Cells:    p.cells(v),
	}
	for _, total := range []struct {
		of    *string
		known int64
	}{{&r.ThreadTotal, p.threads}, {&r.SessionTotal, p.sessions}, {&r.EventTotal, p.events}} {
		if total.known >= 0 {
			*total.of = v.Int(total.known)
		}
	}
	if p.f.SessionID == "" {
		r.Sums = p.sums(v)
		if p.sessions >= 0 {
			r.SessionCount = "SELECT " + v.Int(p.sessions) + " AS sessions"
		} else {
			r.SessionCount = "SELECT COUNT(DISTINCT c.thread) AS sessions FROM (" + p.cells(v) + ") c WHERE c.thread > 0"
		}
	}
	if !p.byKind && !p.byTime {
		r.ChosenSessions = p.ordered(v, "id > 0")
		r.Chosen = r.ChosenSessions + " UNION ALL " + p.ordered(v, "id < 0")
	}
	return r
}

// ordered finds threads so that they come by their newest event where that is cheap. which
// is "id > 0" or "id < 0".
func (p *plan) ordered(v *audit.Values, which string) string {
	one := func(where string) string {
		return "SELECT id AS thread, newest FROM event_thread WHERE " + which + where
	}
	switch {
	case p.f.SessionID != "":
		return one(" AND id " + p.sessionQuery(v))
	case !p.byPath:
		return one("")
	case len(p.paths) == 0:
		return one(" AND 1 = 0")
	case len(p.paths) <= mergedPaths:
		parts := make([]string, len(p.paths))
		for i, path := range p.paths {
			parts[i] = one(" AND path = " + v.Int(path))
		}
		return strings.Join(parts, " UNION ALL ")
	case p.pathTotal <= gathered:
		return one(" AND path IN (" + p.pathQuery(v) + ")")
	default:
		return one(" AND +path IN (" + p.pathQuery(v) + ")")
	}
}

// cells are the chosen cells of threads, and the chosen events of days that are chosen in part.
func (p *plan) cells(v *audit.Values) string {
	s := p.span()
	day := "c.day"
	if !p.fewDays {
		day = "+c.day"
	}
	where := s.days(v, day)
	edge := []string{}
	if len(s.edges) > 0 {
		edge = append(edge, s.edge(v))
	}
	if p.f.SessionID != "" {
		query := p.sessionQuery(v)
		where, edge = append(where, "c.thread "+query), append(edge, "e.thread "+query)
	}
	// Without names and times the threads are chosen, and a thread has one user path; so have
	// those of a session id.
	if p.byKind || p.byPath && p.byTime && p.f.SessionID == "" {
		kinds := " IN (SELECT k.id FROM event_kind k WHERE " + p.kindWhere(v) + ")"
		plus := "" // a plus keeps an index from being used
		if p.f.SessionID != "" || !p.fewKinds {
			plus = "+"
		}
		where, edge = append(where, plus+"c.kind"+kinds), append(edge, "+e.kind"+kinds)
	}
	name := func(column string) string {
		return "(SELECT k." + column + " FROM event_kind k WHERE k.id = c.kind) AS " + column
	}
	query := "SELECT c.thread, c.thread > 0 AS session, " + name("model_name") + ", " + name("provider_identity") +
		", date(c.day * 86400, 'unixepoch') AS day, c.newest, " + prefixed("c", audit.UsageColumns()) + " FROM event_cell c" + all(where)
	if len(s.edges) > 0 {
		query += " UNION ALL SELECT e.thread, e.thread > 0, k.model_name, k.provider_identity, " + eventDay + ", " + eventKey + ", " +
			eventUsage + " FROM event e CROSS JOIN event_kind k ON k.id = e.kind" + all(edge)
	}
	return query
}

const (
	eventDay = "date(e.created_at / 1000, 'unixepoch')"
	eventKey = "printf('%019d', max(e.created_at, 0)) || e.event_id"
)

// sums are the chosen rows of event_day, and the chosen events of days that are chosen in part.
func (p *plan) sums(v *audit.Values) string {
	s := p.span()
	where := append(s.days(v, "d.day"), p.dayWhere(v)...)
	query := "SELECT d.model_name, d.provider_identity, date(d.day * 86400, 'unixepoch') AS day, " +
		prefixed("d", audit.UsageColumns()) + " FROM event_day d" + all(where)
	if len(s.edges) == 0 {
		return query
	}
	edge := []string{s.edge(v)}
	if p.byKind || p.byPath {
		edge = append(edge, p.kindWhere(v))
	}
	return query + " UNION ALL SELECT k.model_name, k.provider_identity, " + eventDay + ", " + eventUsage +
		" FROM event e CROSS JOIN event_kind k ON k.id = e.kind" + all(edge)
}

// matchingEvents are the newest chosen events, as many as the page needs. Few of them are
// gathered from their threads and sorted; many are met soon by walking back in time.
func (p *plan) matchingEvents(v *audit.Values) string {
	newest := int64(p.page.Offset) + int64(p.page.Limit)
	var from string
	f := audit.Filter{From: p.f.From, To: p.f.To}
	where := append(f.Where(v, "e."), "1 = 1")
	kinds := ""
	if p.byKind || p.byPath && p.f.SessionID == "" {
		kinds = "e.kind IN (SELECT k.id FROM event_kind k WHERE " + p.kindWhere(v) + ")"
	}
	switch {
	case p.f.SessionID != "":
		from = "event_thread t CROSS JOIN event e INDEXED BY event_of_thread"
		where = append(where, "t.id "+p.sessionQuery(v), "e.thread = t.id")
	case p.walk || kinds == "":
		from = "event e INDEXED BY event_time"
		if p.walk {
			where = append(where, "e.created_at < "+v.Int(p.before))
		}
	case p.byKind:
		// A cell says that its thread has such events on its day.
		from = "event_cell c INDEXED BY event_cell_kind CROSS JOIN event e INDEXED BY event_of_thread"
		where = append(append(where, p.span().touched(v, "c.day")...), "c.kind IN (SELECT k.id FROM event_kind k WHERE "+p.kindWhere(v)+")",
			"e.thread = c.thread", "e.kind = c.kind", "e.created_at >= c.day * 86400000", "e.created_at < (c.day + 1) * 86400000")
		kinds = ""
	default:
		from = "event_thread t CROSS JOIN event e INDEXED BY event_of_thread"
		where = append(where, "t.path IN ("+p.pathQuery(v)+")", "e.thread = t.id")
		kinds = ""
	}
	if kinds != "" {
		where = append(where, kinds)
	}
	return "SELECT " + strings.Join(eventColumns(), ", ") + " FROM (SELECT e.id FROM " + from + all(where) +
		" ORDER BY e.created_at DESC, e.event_id DESC LIMIT " + v.Int(newest) + `) n
	CROSS JOIN event e CROSS JOIN event_kind k CROSS JOIN event_thread t CROSS JOIN event_path x
	WHERE e.id = n.id AND k.id = e.kind AND t.id = e.thread AND x.id = t.path`
}

// sessionQuery chooses the threads of the filter's session, as a predicate's right side.
func (p *plan) sessionQuery(v *audit.Values) string {
	query := "IN (SELECT id FROM event_thread WHERE session_id = " + v.Text(p.f.SessionID)
	if p.byPath {
		query += " AND path IN (" + p.pathQuery(v) + ")"
	}
	return query + ")"
}

// eventColumns are audit.EventColumns with their tables.
func eventColumns() []string {
	columns := audit.EventColumns()
	for i, column := range columns {
		switch column {
		case "session_id", "session_key":
			columns[i] = "t." + column
		case "user_path":
			columns[i] = "x." + column
		case "session_source", "api_surface", "requested_model", "model_name", "provider_identity", "key_id", "billing_model",
			"decision_reason", "usage_quality", "outcome", "affinity", "switched", "stream", "response_status":
			columns[i] = "k." + column
		default:
			columns[i] = "e." + column
		}
	}
	return columns
}

func all(where []string) string {
	if len(where) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(where, " AND ")
}

func prefixed(alias string, columns []string) string {
	return alias + "." + strings.Join(columns, ", "+alias+".")
}
