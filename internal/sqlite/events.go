package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"zombiezen.com/go/sqlite"

	"switchboard/internal/record"
)

// insertEventSQL ignores an event that is there already: delivery is at least once.
const insertEventSQL = `INSERT OR IGNORE INTO routing_events (
	event_id, request_id, session_id, session_key, session_source, user_path, api_surface,
	requested_model, model_name, provider_identity, key_id, billing_model, decision_reason,
	usage_quality, outcome, affinity,
	created_at, switched, stream, response_status, latency_ms,
	switch_count, switch_cost_nano_usd, input_tokens, cached_input_tokens, cache_write_tokens,
	output_tokens, reasoning_tokens, input_cost_nano_usd, output_cost_nano_usd, cost_nano_usd,
	ttft_ms, attempts, degraded_providers)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
	?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34)`

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
	err := db.read(ctx, func(c *conn) error {
		stmt, err := c.Prepare("SELECT 1 FROM routing_events WHERE event_id = ?1")
		if err != nil {
			return err
		}
		for _, id := range ids {
			stmt.BindText(1, id)
			more, err := stmt.Step()
			if err != nil {
				return err
			}
			if more {
				found[id] = true
			}
			if err := stmt.Reset(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("sqlite: recorded: %w", err)
	}
	return found, nil
}

type eventWrite struct{ event *record.Event }

func (w *eventWrite) apply(c *conn) error {
	e, stmt := w.event, c.insertEvent
	for i, text := range [...]string{
		e.EventID, e.RequestID, e.SessionID, e.SessionKey, e.SessionSource, e.UserPath, e.APISurface,
		e.RequestedModel, e.ModelName, e.Provider, e.KeyID, e.BillingModel, e.DecisionReason,
		e.UsageQuality, e.Outcome, e.Affinity,
	} {
		stmt.BindText(1+i, text)
	}
	stmt.BindInt64(17, e.CreatedAt)
	stmt.BindBool(18, e.Switched)
	stmt.BindBool(19, e.Stream)
	stmt.BindInt64(20, int64(e.ResponseStatus))
	stmt.BindInt64(21, e.LatencyMillis)
	for i, n := range [...]*int64{
		e.SwitchCount, e.SwitchCostNanoUSD, e.InputTokens, e.CachedInputTokens, e.CacheWriteTokens,
		e.OutputTokens, e.ReasoningTokens, e.InputCostNanoUSD, e.OutputCostNanoUSD, e.CostNanoUSD,
		e.TTFTMillis,
	} {
		if n == nil {
			stmt.BindNull(22 + i)
		} else {
			stmt.BindInt64(22+i, *n)
		}
	}
	if err := bindList(stmt, 33, e.Attempts); err != nil {
		return err
	}
	if err := bindList(stmt, 34, e.DegradedProviders); err != nil {
		return err
	}
	return run(stmt)
}

// bindList binds a list as JSON text, an empty one as NULL.
func bindList[T any](stmt *sqlite.Stmt, param int, list []T) error {
	if len(list) == 0 {
		stmt.BindNull(param)
		return nil
	}
	text, err := json.Marshal(list)
	stmt.BindText(param, string(text))
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
