package audit

import "strings"

// Flat is a table of events as they were written: one row for each delivery, columns named
// as the event's fields, absent fields NULL. It knows no sums; everything is computed.
type Flat struct {
	Table string
	// Whole and Asked are predicates over the table, as parts of an AND, that leave out
	// what cannot hold events of the threads, or of the range, that a filter asks for.
	// They may be nil.
	Whole, Asked func(v *Values, f Filter) []string
	// Key is NewestKey as an expression over created_at and event_id; Day is created_at's
	// UTC day as text; Bool makes 0 or 1 of a boolean column.
	Key, Day string
	Bool     func(column string) string
	// List is a list column as JSON text; nil when it is that already.
	List func(column string) string
}

// Relations of a flat table, for Dialect.
func (t Flat) Relations(v *Values, f Filter) Relations {
	once := func(predicates []string) string {
		where := ""
		if len(predicates) > 0 {
			where = " WHERE " + strings.Join(predicates, " AND ")
		}
		return "SELECT r.*, ROW_NUMBER() OVER (PARTITION BY r.event_id ORDER BY r.created_at) AS delivery FROM " + t.Table + " r" + where
	}
	whole, asked := t.predicates(t.Whole, v, f), t.predicates(t.Asked, v, f)
	where := append([]string{"1 = 1"}, f.Where(v, "e.")...)
	matching := "SELECT " + prefixed("e", EventColumns()) + " FROM recent e WHERE " + strings.Join(where, " AND ")
	thread := threadExpression("e")
	session := "CASE WHEN e.session_key <> '' THEN 1 ELSE 0 END"
	cells := "SELECT " + thread + " AS thread, " + session + " AS session, e.model_name, e.provider_identity, " +
		t.Day + " AS day, " + t.Key + " AS newest, 1 AS requests, e.input_tokens, e.cached_input_tokens, e.cache_write_tokens, " +
		"e.output_tokens, e.input_cost_nano_usd, e.output_cost_nano_usd, e.cost_nano_usd, " +
		"CASE WHEN e.provider_identity <> '' AND e.cost_nano_usd IS NULL THEN 1 ELSE 0 END AS unpriced, " +
		"e.switched AS switches, e.switch_cost_nano_usd FROM recent e WHERE " + strings.Join(where, " AND ")
	return Relations{
		With:     []string{as("recent", t.clean(once(asked)))},
		Cells:    cells,
		Matching: matching,
		Events:   "SELECT " + prefixed("e", EventColumns()) + " FROM recent e",
		Threads: "SELECT " + thread + " AS thread, MAX(e.user_path) AS user_path, MAX(e.session_id) AS session_id, " +
			"COUNT(*) AS request_count FROM (" + t.clean(once(whole)) + ") e GROUP BY " + thread,
	}
}

func (t Flat) predicates(of func(*Values, Filter) []string, v *Values, f Filter) []string {
	if of == nil {
		return nil
	}
	return of(v, f)
}

// clean gives every event once, with "" where text was absent and 0 where a number may not be.
func (t Flat) clean(deliveries string) string {
	var list []string
	for _, c := range textColumns() {
		list = append(list, "COALESCE(d."+c+", '') AS "+c)
	}
	for _, c := range []string{"attempts", "degraded_providers"} {
		column := "d." + c
		if t.List != nil {
			column = t.List(column)
		}
		list = append(list, column+" AS "+c)
	}
	for _, c := range intColumns() {
		column := "d." + c
		if t.Bool != nil && (c == "switched" || c == "stream") {
			column = t.Bool(column)
		}
		list = append(list, "COALESCE("+column+", 0) AS "+c)
	}
	for _, c := range knownColumns() {
		list = append(list, "d."+c)
	}
	return "SELECT " + strings.Join(list, ", ") + " FROM (" + deliveries + ") d WHERE d.delivery = 1"
}

// threadExpression is one text for each thread, and another for each other: a length in
// front keeps what a client has chosen from running into what follows it.
func threadExpression(alias string) string {
	c := func(column string) string { return alias + "." + column }
	return "CASE WHEN " + c("session_key") + " = '' THEN 'e' || " + c("event_id") +
		" ELSE 's' || CAST(LENGTH(" + c("user_path") + ") AS VARCHAR) || ':' || CAST(LENGTH(" + c("session_id") +
		") AS VARCHAR) || ':' || " + c("user_path") + " || " + c("session_id") + " || " + c("session_key") + " END"
}

// Where is the filter as parts of an AND over columns named as the event's fields.
func (f Filter) Where(v *Values, alias string) []string {
	var where []string
	equal := func(column, value string) {
		if value != "" {
			where = append(where, alias+column+" = "+v.Text(value))
		}
	}
	equal("session_id", f.SessionID)
	if path := f.PathWhere(v, alias+"user_path"); path != "" {
		where = append(where, path)
	}
	if f.Model != "" {
		model := v.Text(f.Model)
		where = append(where, "("+alias+"requested_model = "+model+" OR "+alias+"model_name = "+model+")")
	}
	equal("provider_identity", f.Provider)
	if f.Status != 0 {
		where = append(where, alias+"response_status = "+v.Int(int64(f.Status)))
	}
	equal("outcome", f.Outcome)
	equal("decision_reason", f.Reason)
	if !f.From.IsZero() {
		where = append(where, alias+"created_at >= "+v.Int(Millis(f.From)))
	}
	if !f.To.IsZero() {
		where = append(where, alias+"created_at < "+v.Int(Millis(f.To)))
	}
	return where
}

// PathWhere is the filter's user path over a column, "" when it chooses all.
func (f Filter) PathWhere(v *Values, column string) string {
	switch {
	case f.PathOnly:
		return column + " = " + v.Text(f.UserPath)
	case f.UserPath == "":
		return ""
	}
	from, to := Below(f.UserPath)
	return "(" + column + " = " + v.Text(f.UserPath) + " OR " + column + " >= " + v.Text(from) + " AND " + column + " < " + v.Text(to) + ")"
}
