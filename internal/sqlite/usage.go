package sqlite

import (
	"context"
	"log/slog"
	"time"

	"switchboard/internal/affinity"
)

// addUsageSQL adds in place: a read and a write would lose what others add in between.
const addUsageSQL = `UPDATE session_affinity SET
	total_input_tokens = total_input_tokens + ?3,
	total_output_tokens = total_output_tokens + ?4,
	total_cached_tokens = total_cached_tokens + ?5,
	total_cost_nano_usd = total_cost_nano_usd + ?6,
	total_requests = total_requests + 1,
	last_input_tokens = CASE WHEN ?3 > 0 THEN ?3 ELSE last_input_tokens END,
	last_used_at = max(last_used_at, ?7),
	expires_at = max(expires_at, ?8)
WHERE session_id = ?1 AND model_name = ?2 AND typeof(expires_at) = 'integer' AND expires_at > ?9`

// AddUsage implements affinity.Store. It returns when the usage is queued.
func (db *DB) AddUsage(ctx context.Context, ref affinity.Ref, usage affinity.Usage, now time.Time, idle time.Duration) error {
	err := ctx.Err()
	if err == nil {
		entry := &usageWrite{ref: ref, usage: usage, now: now, idle: idle}
		if usage.InputTokens > 0 {
			db.usage.put(ref, entry)
		}
		if err = db.enqueue(ctx, entry); err != nil {
			db.usage.remove(ref, entry)
		}
	}
	return wrap("add usage", ref, err)
}

type usageWrite struct {
	ref   affinity.Ref
	usage affinity.Usage
	now   time.Time
	idle  time.Duration
}

func (u *usageWrite) apply(c *conn) error {
	stmt := c.addUsage
	stmt.BindText(1, u.ref.SessionKey)
	stmt.BindText(2, u.ref.Model)
	stmt.BindInt64(3, u.usage.InputTokens)
	stmt.BindInt64(4, u.usage.OutputTokens)
	stmt.BindInt64(5, u.usage.CachedTokens)
	stmt.BindInt64(6, u.usage.CostNanoUSD)
	stmt.BindInt64(7, u.now.Unix())
	stmt.BindInt64(8, u.now.Add(u.idle).Unix())
	stmt.BindInt64(9, u.now.Unix())
	return run(stmt)
}

func (u *usageWrite) settle(db *DB, err error) {
	db.usage.remove(u.ref, u)
	if err == nil {
		return
	}
	db.logger.LogAttrs(context.Background(), slog.LevelError, "undelivered_usage",
		slog.String("session_key", u.ref.SessionKey), slog.String("requested_model", u.ref.Model),
		slog.Any("usage", u.usage), slog.Time("at", u.now), slog.Any("error", err))
}

func (u *usageWrite) waiting() bool { return false }
func (u *usageWrite) at() time.Time { return u.now }
