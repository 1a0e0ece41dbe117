package eventdb

import (
	"encoding/json"
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"

	"switchboard/internal/audit"
	"switchboard/internal/record"
)

type insertStatements struct {
	insertEvent, findEvent     *sqlite.Stmt
	makePath, findPath         *sqlite.Stmt
	makeKind, findKind         *sqlite.Stmt
	makeThread, makeSingle     *sqlite.Stmt
	findThread                 *sqlite.Stmt
	addThread, addCell, addDay *sqlite.Stmt
	addCount, addKind          *sqlite.Stmt
}

const kindColumns = `path, session_source, api_surface, requested_model, model_name, provider_identity, key_id,
	billing_model, decision_reason, usage_quality, outcome, affinity, response_status, switched, stream`

func (s *insertStatements) prepare(c *sqlite.Conn) error {
	kinds := strings.FieldsFunc(kindColumns, func(r rune) bool { return strings.ContainsRune(", \n\t", r) })
	for i := range kinds {
		kinds[i] += " = ?" + strconv.Itoa(i+1)
	}
	sums := audit.UsageColumns()
	adding := make([]string, len(sums))
	for i, column := range sums {
		adding[i] = column + " = " + column + " + excluded." + column
	}
	list, add := strings.Join(sums, ", "), strings.Join(adding, ", ")
	for _, p := range []struct {
		stmt **sqlite.Stmt
		sql  string
	}{
		{&s.insertEvent, `INSERT INTO event (event_id, request_id, created_at, thread, kind, latency_ms,
			switch_count, switch_cost_nano_usd, input_tokens, cached_input_tokens, cache_write_tokens,
			output_tokens, reasoning_tokens, input_cost_nano_usd, output_cost_nano_usd, cost_nano_usd,
			ttft_ms, attempts, degraded_providers)
			VALUES (` + params(19) + `) ON CONFLICT (created_at, event_id) DO NOTHING`},
		{&s.findEvent, `SELECT id FROM event WHERE created_at = ?1 AND event_id = ?2`},
		{&s.makePath, `INSERT INTO event_path (user_path) VALUES (?1) ON CONFLICT DO NOTHING`},
		{&s.findPath, `SELECT id FROM event_path WHERE user_path = ?1`},
		{&s.makeKind, `INSERT INTO event_kind (` + kindColumns + `) VALUES (` + params(15) + `) ON CONFLICT DO NOTHING`},
		{&s.findKind, `SELECT id FROM event_kind WHERE ` + strings.Join(kinds, " AND ")},
		// Ids below zero tell events without session from sessions wherever a thread's id is.
		{&s.makeThread, `INSERT INTO event_thread (id, path, session_id, session_key, requests, first_at, newest)
			VALUES (max(0, ifnull((SELECT max(id) FROM event_thread), 0)) + 1, ?1, ?2, ?3, 0, ?4, ?5)`},
		{&s.makeSingle, `INSERT INTO event_thread (id, path, session_id, session_key, requests, first_at, newest)
			VALUES (min(0, ifnull((SELECT min(id) FROM event_thread), 0)) - 1, ?1, ?2, ?3, 0, ?4, ?5)`},
		{&s.findThread, `SELECT id FROM event_thread WHERE session_id = ?1 AND path = ?2 AND session_key = ?3`},
		{&s.addThread, `UPDATE event_thread SET requests = requests + ?2, first_at = min(first_at, ?3), newest = max(newest, ?4) WHERE id = ?1`},
		{&s.addCell, `INSERT INTO event_cell (thread, day, kind, newest, ` + list + `) VALUES (` + params(4+len(sums)) + `)
			ON CONFLICT DO UPDATE SET newest = max(newest, excluded.newest), ` + add},
		{&s.addDay, `INSERT INTO event_day (path, day, requested_model, model_name, provider_identity, decision_reason,
			outcome, response_status, ` + list + `) VALUES (` + params(8+len(sums)) + `) ON CONFLICT DO UPDATE SET ` + add},
		{&s.addCount, `UPDATE event_path SET events = events + ?2, sessions = sessions + ?3, singles = singles + ?4 WHERE id = ?1`},
		{&s.addKind, `UPDATE event_kind SET requests = requests + ?2 WHERE id = ?1`},
	} {
		stmt, err := c.Prepare(p.sql)
		if err != nil {
			return err
		}
		*p.stmt = stmt
	}
	return nil
}

// params is "?1, …, ?n".
func params(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = "?" + strconv.Itoa(i+1)
	}
	return strings.Join(list, ", ")
}

// row stores the event itself and tells whether it was not there.
func (in *Inserter) row(e *record.Event, thread, kind int64) (bool, error) {
	stmt := in.insertEvent
	stmt.BindText(1, e.EventID)
	stmt.BindText(2, e.RequestID)
	stmt.BindInt64(3, e.CreatedAt)
	stmt.BindInt64(4, thread)
	stmt.BindInt64(5, kind)
	stmt.BindInt64(6, e.LatencyMillis)
	for i, n := range [...]*int64{
		e.SwitchCount, e.SwitchCostNanoUSD, e.InputTokens, e.CachedInputTokens, e.CacheWriteTokens,
		e.OutputTokens, e.ReasoningTokens, e.InputCostNanoUSD, e.OutputCostNanoUSD, e.CostNanoUSD, e.TTFTMillis,
	} {
		if n == nil {
			stmt.BindNull(7 + i)
		} else {
			stmt.BindInt64(7+i, *n)
		}
	}
	if err := in.bindAttempts(stmt, 18, e.Attempts); err != nil {
		return false, err
	}
	if len(e.DegradedProviders) == 0 {
		stmt.BindNull(19)
	} else {
		text, err := json.Marshal(e.DegradedProviders)
		if err != nil {
			return false, err
		}
		stmt.BindText(19, string(text))
	}
	if err := run(stmt); err != nil {
		return false, err
	}
	return in.conn.Changes() == 1, nil
}

// bindAttempts binds the list as JSON, an empty one as NULL. It is written by hand, as
// encoding/json takes as long as the rest of an insert.
func (in *Inserter) bindAttempts(stmt *sqlite.Stmt, param int, attempts []record.Attempt) error {
	if len(attempts) == 0 {
		stmt.BindNull(param)
		return nil
	}
	text := append(in.text[:0], '[')
	for i := range attempts {
		a := &attempts[i]
		if !isPlain(a.Provider) || !isPlain(a.KeyID) || !isPlain(a.Model) || !isPlain(a.Error) || !isPlain(a.Surface) {
			text, err := json.Marshal(attempts)
			stmt.BindText(param, string(text))
			return err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, `{"provider":"`...), a.Provider...), '"')
		if a.KeyID != "" {
			text = append(append(append(text, `,"key_id":"`...), a.KeyID...), '"')
		}
		text = append(append(append(text, `,"model":"`...), a.Model...), '"')
		if a.Status != 0 {
			text = strconv.AppendInt(append(text, `,"status":`...), int64(a.Status), 10)
		}
		if a.Error != "" {
			text = append(append(append(text, `,"error":"`...), a.Error...), '"')
		}
		text = strconv.AppendInt(append(text, `,"latency_ms":`...), a.LatencyMillis, 10)
		if a.Surface != "" {
			text = append(append(append(text, `,"surface":"`...), a.Surface...), '"')
		}
		text = append(text, '}')
	}
	in.text = append(text, ']')
	stmt.BindText(param, string(in.text))
	return nil
}

// isPlain tells whether a string is the same in JSON.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// run executes a statement that has no rows.
func run(stmt *sqlite.Stmt) error {
	if _, err := stmt.Step(); err != nil {
		return err // Step has reset it
	}
	return stmt.Reset()
}

// first is the first row's columns, as many as there are.
func first(stmt *sqlite.Stmt, columns ...*int64) (found bool, err error) {
	found, err = stmt.Step()
	if err != nil {
		return false, err
	}
	if found {
		for i, n := range columns {
			*n = stmt.ColumnInt64(i)
		}
	}
	return found, stmt.Reset()
}
