package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"zombiezen.com/go/sqlite"

	"switchboard/internal/record"
)

// Record implements record.Recorder. It returns when the event is queued and waits for a
// place in the queue until ctx ends.
func (db *DB) Record(ctx context.Context, event *record.Event) error {
	err := ctx.Err()
	switch {
	case event.EventID == "":
		err = errors.New("event without event_id")
	case err == nil:
		err = db.enqueue(ctx, &eventWrite{event: event})
	}
	if err != nil {
		return fmt.Errorf("sqlite: record %s: %w", event.EventID, err)
	}
	return nil
}

// Recorded tells which of the events are in the file. Those still queued are not: Flush
// before.
func (db *DB) Recorded(ctx context.Context, ids []string) (map[string]bool, error) {
	found := make(map[string]bool, len(ids))
	for _, id := range ids {
		found[id] = false
	}
	err := db.audit(ctx, func(_ context.Context, c *sqlite.Conn) error {
		// All ids are read: events are found by their time, which an id alone does not tell.
		return query(c, "SELECT event_id FROM event", func(stmt *sqlite.Stmt) {
			if _, asked := found[stmt.ColumnText(0)]; asked {
				found[stmt.ColumnText(0)] = true
			}
		})
	})
	maps.DeleteFunc(found, func(_ string, there bool) bool { return !there })
	if err != nil {
		return nil, fmt.Errorf("sqlite: recorded: %w", err)
	}
	return found, nil
}

type eventWrite struct{ event *record.Event }

func (w *eventWrite) apply(c *conn) error {
	_, err := c.events.Insert(w.event)
	return err
}

// settle logs an event that could not be written, whole, so that it can be put back.
func (w *eventWrite) settle(db *DB, err error) {
	if err == nil {
		return
	}
	db.logger.LogAttrs(context.Background(), slog.LevelError, "undelivered_event",
		slog.Any("routing_event", w.event), slog.Any("error", err))
}

func (w *eventWrite) waiting() bool { return false }

// at is unknown: a replayed event is old.
func (w *eventWrite) at() time.Time { return time.Time{} }
