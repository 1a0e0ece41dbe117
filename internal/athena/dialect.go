package athena

import (
	"errors"

	"switchboard/internal/audit"
)

const (
	// maxValue is how long a value of a filter may be, in bytes: one that is all quoted is as
	// deep an expression.
	maxValue = 900
	// maxStatement is how long a statement may be, in bytes, says Athena.
	maxStatement = 262_144
)

var errLongValue = errors.New("a value of the filter is too long")

// dialect is Athena's, for a question about the events of one span, whose threads are
// counted over another.
func (r *Reader) dialect(asked, whole span) audit.Dialect {
	flat := audit.Flat{
		Table: r.options.Table,
		Asked: func(*audit.Values, audit.Filter) []string { return r.deliveries(asked) },
		Whole: func(*audit.Values, audit.Filter) []string { return r.deliveries(whole) },
		Key:   "LPAD(CAST(e.created_at AS VARCHAR), 19, '0') || e.event_id",
		// Not from_unixtime, which is in the time zone of the session.
		Day:  "CAST(DATE_ADD('day', (e.created_at - MOD(e.created_at, 86400000)) / 86400000, DATE '1970-01-01') AS VARCHAR)",
		Bool: func(column string) string { return "CASE WHEN " + column + " THEN 1 ELSE 0 END" },
		List: func(column string) string { return "JSON_FORMAT(CAST(" + column + " AS JSON))" },
	}
	return audit.Dialect{Literals: true, OffsetFirst: true, Relations: flat.Relations}
}

// deliveries chooses what was delivered of a span. The table has a row of NULLs for a
// damaged line, and for an empty one.
func (r *Reader) deliveries(s span) []string { return append(r.partitions(s), "r.event_id <> ''") }

// sayable tells whether a statement can hold the filter.
func sayable(f audit.Filter) error {
	for _, value := range []string{f.SessionID, f.UserPath, f.Model, f.Provider, f.Outcome, f.Reason} {
		if len(value) > maxValue {
			return errLongValue
		}
	}
	return nil
}
