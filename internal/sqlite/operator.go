package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"switchboard/internal/affinity"
)

// maxLooked is how many rows one call looks at: some 10 ms of a read connection.
const maxLooked = 5000

// The lists go through the primary key, from after the cursor.
const (
	listPinsSQL = `SELECT ` + pinColumns + `, session_id, model_name FROM session_affinity
WHERE (session_id, model_name) > (?1, ?2) AND typeof(session_id) = 'text' AND typeof(model_name) = 'text'
ORDER BY session_id, model_name LIMIT ?3`
	listSessionSQL = `SELECT ` + pinColumns + `, session_id, model_name FROM session_affinity
WHERE session_id = ?1 AND model_name > ?2 AND typeof(model_name) = 'text'
ORDER BY model_name LIMIT ?3`
)

var _ affinity.Operator = (*DB)(nil)

// Pins implements affinity.Operator, in the order of the keys.
func (db *DB) Pins(ctx context.Context, q affinity.PinQuery, now time.Time) (page affinity.PinPage, err error) {
	after, err := startOf(&q)
	if err != nil {
		return page, err
	}
	err = db.read(ctx, func(c *conn) (err error) {
		page, err = c.pins(&q, after, now, &db.malformed, db.logger)
		return err
	})
	if err != nil {
		return affinity.PinPage{}, fmt.Errorf("sqlite: list pins: %w", err)
	}
	return page, nil
}

// startOf is the row that a query's page begins behind.
func startOf(q *affinity.PinQuery) (after affinity.Ref, err error) {
	if q.Cursor != "" {
		if after, err = affinity.ParseCursor(q.Cursor); err != nil {
			return after, err
		}
	}
	if q.SessionKey != "" {
		if q.Cursor != "" && after.SessionKey != q.SessionKey {
			return after, affinity.ErrCursor
		}
		after.SessionKey = q.SessionKey
	}
	return after, nil
}

func (c *conn) pins(q *affinity.PinQuery, after affinity.Ref, now time.Time, malformed *onceRows, logger *slog.Logger) (page affinity.PinPage, err error) {
	sql := listPinsSQL
	if q.SessionKey != "" {
		sql = listSessionSQL
	}
	stmt, err := c.Prepare(sql) // the connection keeps it
	if err != nil {
		return page, err
	}
	defer stmt.Reset()
	stmt.BindText(1, after.SessionKey)
	stmt.BindText(2, after.Model)
	stmt.BindInt64(3, maxLooked+1)
	last := after
	for looked := 0; ; looked++ {
		more, err := stmt.Step()
		if err != nil || !more {
			return page, err
		}
		if looked == maxLooked || len(page.Pins) == max(1, q.Limit) {
			page.Next = affinity.Cursor(last)
			return page, nil
		}
		last = affinity.Ref{SessionKey: stmt.ColumnText(pinCols), Model: stmt.ColumnText(pinCols + 1)}
		if pin, state := readPin(stmt, last, now, malformed, logger); state == pinLive && q.Chooses(&pin) {
			page.Pins = append(page.Pins, pin)
		}
	}
}

// Clear implements affinity.Operator.
func (db *DB) Clear(ctx context.Context, read affinity.Pin) error {
	_, err := db.call(ctx, func(c *conn) (affinity.Pin, error) {
		// Expired or not makes no difference to a row that goes away.
		row, state, err := c.pin(read.Ref, time.Unix(0, 0), &db.malformed, db.logger)
		switch {
		case err != nil:
			return row, err
		case state != pinLive:
			return row, affinity.ErrNotFound
		case !asRead(&row, &read):
			return row, affinity.ErrConflict
		}
		return affinity.Pin{}, c.remove(read.Ref)
	})
	return wrap("clear", read.Ref, err)
}
