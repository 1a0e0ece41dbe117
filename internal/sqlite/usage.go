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
	total_requests = total_requests + ?10,
	last_input_tokens = CASE WHEN ?11 > 0 THEN ?11 ELSE last_input_tokens END,
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
	var one usageSums
	one.add(u)
	return one.flush(c)
}

// usageSums adds up the usage of a transaction, so that a busy session costs one update
// and not one for each of its requests. Only what falls in one second is one sum: the
// times of a row are whole seconds. The zero value is empty.
type usageSums struct {
	index map[usageKey]int
	sums  []usageSum // in the order of their first requests
}

type usageKey struct {
	ref affinity.Ref
	at  int64 // epoch seconds
	ttl time.Duration
}

type usageSum struct {
	usageKey
	affinity.Usage
	requests, lastInput int64
}

func (s *usageSums) add(u *usageWrite) {
	key := usageKey{u.ref, u.now.Unix(), u.idle}
	i, found := s.index[key]
	if !found {
		if s.index == nil {
			s.index = make(map[usageKey]int)
		}
		i = len(s.sums)
		s.index[key] = i
		s.sums = append(s.sums, usageSum{usageKey: key})
	}
	sum := &s.sums[i]
	sum.InputTokens += u.usage.InputTokens
	sum.OutputTokens += u.usage.OutputTokens
	sum.CachedTokens += u.usage.CachedTokens
	sum.CostNanoUSD += u.usage.CostNanoUSD
	sum.requests++
	if u.usage.InputTokens > 0 {
		sum.lastInput = u.usage.InputTokens
	}
}

// flush writes the sums and empties them.
func (s *usageSums) flush(c *conn) error {
	defer s.reset()
	for i := range s.sums {
		sum := &s.sums[i]
		stmt := c.addUsage
		stmt.BindText(1, sum.ref.SessionKey)
		stmt.BindText(2, sum.ref.Model)
		stmt.BindInt64(3, sum.InputTokens)
		stmt.BindInt64(4, sum.OutputTokens)
		stmt.BindInt64(5, sum.CachedTokens)
		stmt.BindInt64(6, sum.CostNanoUSD)
		stmt.BindInt64(7, sum.at)
		stmt.BindInt64(8, time.Unix(sum.at, 0).Add(sum.ttl).Unix())
		stmt.BindInt64(9, sum.at)
		stmt.BindInt64(10, sum.requests)
		stmt.BindInt64(11, sum.lastInput)
		if err := run(stmt); err != nil {
			return err
		}
	}
	return nil
}

func (s *usageSums) reset() {
	clear(s.index)
	s.sums = s.sums[:0]
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
