package sqlite

import (
	"context"
	"log/slog"
	"time"

	"zombiezen.com/go/sqlite"
)

// Expired rows read as none, so deleting them is only housekeeping: a few rows at a time,
// walking through the table, because an index on the expiry would have to be written with
// every request. Routing events are kept.
const (
	sweepEvery = time.Minute
	sweepGrace = time.Hour // other processes' clocks may be late
	sweepRows  = 1000

	sweepEndSQL  = `SELECT session_id FROM session_affinity WHERE session_id > ?1 ORDER BY session_id LIMIT 1 OFFSET ?2`
	sweepPinsSQL = `DELETE FROM session_affinity WHERE session_id > ?1 AND (?2 IS NULL OR session_id <= ?2)
	AND typeof(expires_at) = 'integer' AND expires_at <= ?3`
	sweepAliasEndSQL = `SELECT response_id FROM response_alias WHERE response_id > ?1 ORDER BY response_id LIMIT 1 OFFSET ?2`
	sweepAliasesSQL  = `DELETE FROM response_alias WHERE response_id > ?1 AND (?2 IS NULL OR response_id <= ?2)
	AND expires_at <= ?3`
)

// sweep is the writer's housekeeping. It goes by its callers' clock, like the store.
type sweep struct {
	now, last         time.Time
	pinsAt, aliasesAt string // where the walk through each table has come to
}

// see notes the time of a write.
func (s *sweep) see(at time.Time) {
	if at.After(s.now) {
		s.now = at
	}
}

// step deletes a few expired rows, now and then.
func (s *sweep) step(c *conn, logger *slog.Logger) {
	if s.now.Sub(s.last) < sweepEvery {
		return
	}
	s.last = s.now
	limit := s.now.Add(-sweepGrace).Unix()
	var err error
	if s.pinsAt, err = sweepTable(c.sweepEnd, c.sweepPins, s.pinsAt, limit); err == nil {
		s.aliasesAt, err = sweepTable(c.sweepAliasEnd, c.sweepAliases, s.aliasesAt, limit)
	}
	if err != nil {
		logger.LogAttrs(context.Background(), slog.LevelWarn, "session database: delete expired rows", slog.Any("error", err))
	}
}

// sweepTable deletes what expired at limit or before among the next rows after at, and
// returns where to go on; "" is the start.
func sweepTable(end, del *sqlite.Stmt, at string, limit int64) (next string, err error) {
	end.BindText(1, at)
	end.BindInt64(2, sweepRows)
	more, err := end.Step()
	if err != nil {
		return at, err
	}
	if more {
		next = end.ColumnText(0)
	}
	if err := end.Reset(); err != nil {
		return at, err
	}
	del.BindText(1, at)
	if more {
		del.BindText(2, next)
	} else {
		del.BindNull(2)
	}
	del.BindInt64(3, limit)
	return next, run(del)
}
