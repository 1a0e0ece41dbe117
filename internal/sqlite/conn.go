package sqlite

import (
	"zombiezen.com/go/sqlite"

	"switchboard/internal/eventdb"
)

// conn is one connection with its statements. They are kept as values, because finding
// one by its text costs more than some of them take to run.
type conn struct {
	*sqlite.Conn

	selectPin, selectAlias *sqlite.Stmt

	// The write connection's only.
	begin, commit, rollback     *sqlite.Stmt
	putPin, deletePin, addUsage *sqlite.Stmt
	putAlias                    *sqlite.Stmt
	sweepEnd, sweepPins         *sqlite.Stmt
	sweepAliasEnd, sweepAliases *sqlite.Stmt
	events                      *eventdb.Inserter
}

func (c *conn) execute(sql string) error { return execute(c.Conn, sql) }

// prepare compiles the statements, which also reads the schema.
func (c *conn) prepare(writes bool) error {
	statements := []struct {
		stmt **sqlite.Stmt
		sql  string
	}{
		{&c.selectPin, selectPinSQL},
		{&c.selectAlias, selectAliasSQL},
		{&c.begin, "BEGIN IMMEDIATE"},
		{&c.commit, "COMMIT"},
		{&c.rollback, "ROLLBACK"},
		{&c.putPin, putPinSQL},
		{&c.deletePin, "DELETE FROM session_affinity WHERE session_id = ?1 AND model_name = ?2"},
		{&c.addUsage, addUsageSQL},
		{&c.putAlias, putAliasSQL},
		{&c.sweepEnd, sweepEndSQL},
		{&c.sweepPins, sweepPinsSQL},
		{&c.sweepAliasEnd, sweepAliasEndSQL},
		{&c.sweepAliases, sweepAliasesSQL},
	}
	if !writes {
		statements = statements[:2]
	}
	for _, s := range statements {
		stmt, err := c.Prepare(s.sql)
		if err != nil {
			return err
		}
		*s.stmt = stmt
	}
	if !writes {
		return nil
	}
	var err error
	c.events, err = eventdb.NewInserter(c.Conn)
	return err
}

// run executes a statement that has no rows. Its bindings stay.
func run(stmt *sqlite.Stmt) error {
	if _, err := stmt.Step(); err != nil {
		return err // Step has reset it
	}
	return stmt.Reset()
}
