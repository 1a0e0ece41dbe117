//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"switchboard/internal/fleettest"
)

// row is one row of the database: column names to text, or nothing where it is NULL.
type row map[string]string

// rows reads the database as any other program would: a connection of its own.
func (s *stack) rows(query string, args ...any) []row {
	s.t.Helper()
	conn, err := sqlite.OpenConn(s.path("sessions.db"), sqlite.OpenReadWrite|sqlite.OpenURI)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	var list []row
	err = sqlitex.Execute(conn, query, &sqlitex.ExecOptions{Args: args, ResultFunc: func(stmt *sqlite.Stmt) error {
		one := row{}
		for i := range stmt.ColumnCount() {
			if stmt.ColumnType(i) != sqlite.TypeNull {
				one[stmt.ColumnName(i)] = stmt.ColumnText(i)
			}
		}
		list = append(list, one)
		return nil
	}})
	if err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return list
}

// database is the ledger of one machine.
type database struct{ *stack }

func (d database) events() []row { return d.rows(`SELECT * FROM routing_events ORDER BY event_id`) }
func (d database) pins() []row   { return d.rows(`SELECT * FROM session_affinity`) }

func (d database) texts() map[string]string {
	left := map[string]string{}
	for _, p := range d.boards {
		left["log of "+p.Address] = p.Log.String()
	}
	files, _ := filepath.Glob(d.path("sessions.db*"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			left[file] = string(text)
		}
	}
	return left
}

// thread returns the events of a session, oldest first, once there are want of them.
func (s *stack) thread(session string, want int) []row {
	s.t.Helper()
	var list []row
	fleettest.Eventually(s.t, "events of "+session, func() bool {
		list = where(s.kept.events(), "session_id", session)
		return len(list) >= want
	})
	if len(list) != want {
		s.t.Errorf("%d events of session %s, want %d", len(list), session, want)
	}
	return list
}

// pins are those of a session, one for each model it asked for.
func (s *stack) pins(session string) []row {
	s.t.Helper()
	return where(s.kept.pins(), "client_session_id", session)
}

// pin returns the one pin of a session.
func (s *stack) pin(session string) row {
	s.t.Helper()
	list := s.pins(session)
	if len(list) != 1 {
		s.t.Fatalf("%d pins of session %s, want 1: %v", len(list), session, list)
	}
	return list[0]
}

// where leaves the rows that have a value.
func where(list []row, column, value string) []row {
	return slices.DeleteFunc(list, func(r row) bool { return r[column] != value })
}

// count is how many rows have a value.
func count(list []row, column, value string) int {
	return len(where(slices.Clone(list), column, value))
}

// distinct is how many values a column has.
func distinct(list []row, columns ...string) int {
	values := map[string]bool{}
	for _, r := range list {
		key := ""
		for _, column := range columns {
			key += r[column] + "\x00"
		}
		values[key] = true
	}
	return len(values)
}

// want checks columns of a row: name, value, name, value, ….
func want(t *testing.T, what string, r row, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := r[pairs[i]]; got != pairs[i+1] {
			t.Errorf("%s: %s = %q, want %q", what, pairs[i], got, pairs[i+1])
		}
	}
}
