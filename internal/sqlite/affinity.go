package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"switchboard/internal/affinity"
)

// Lookup implements affinity.Store. It is the one read of a request that has a pin.
func (db *DB) Lookup(ctx context.Context, ref affinity.Ref, now time.Time) (affinity.Pin, error) {
	var pin affinity.Pin
	var state pinState
	// Asked before the row is: what is no longer pending then is in the row.
	last, queued := db.usage.get(ref)
	err := db.read(ctx, func(c *conn) (err error) {
		pin, state, err = c.pin(ref, now, &db.malformed, db.logger)
		return err
	})
	switch {
	case err != nil:
		return affinity.Pin{}, fmt.Errorf("sqlite: lookup %q: %w", ref.SessionKey, err)
	case state != pinLive:
		return affinity.Pin{}, affinity.ErrNotFound
	}
	if queued {
		pin.LastInputTokens = last.usage.InputTokens // what a switch would resend
	}
	return pin, nil
}

// Assign implements affinity.Store.
func (db *DB) Assign(ctx context.Context, p affinity.Pin, stale *affinity.Pin, now time.Time, idle time.Duration) (affinity.Pin, error) {
	fresh := affinity.Pin{
		Ref: p.Ref, Target: p.Target, UserPath: p.UserPath, ClientSessionID: p.ClientSessionID,
		AssignedAt: second(now), LastUsedAt: second(now), ExpiresAt: second(now.Add(idle)),
		Served: p.Served, Epoch: 1, LastSwitchRequestID: p.LastSwitchRequestID,
	}
	pin, err := db.call(ctx, func(c *conn) (affinity.Pin, error) {
		row, state, err := c.pin(p.Ref, now, &db.malformed, db.logger)
		switch {
		case err != nil:
			return row, err
		case state == pinLive && row.ClaimedBy(&p):
			return row, nil // the repeat of a write whose answer got lost
		case state == pinLive && (stale == nil || !asRead(&row, stale)):
			return row, affinity.ErrConflict
		case state == pinMalformed:
			db.malformed.forget(p.Ref)
		}
		return fresh, c.put(&fresh)
	})
	return pin, wrap("assign", p.Ref, err)
}

// Confirm implements affinity.Store.
func (db *DB) Confirm(ctx context.Context, read affinity.Pin, now time.Time, idle time.Duration) (affinity.Pin, error) {
	pin, err := db.change(ctx, read.Ref, now, idle, func(row *affinity.Pin) bool {
		row.Served = true
		return asRead(row, &read)
	})
	return pin, wrap("confirm", read.Ref, err)
}

// Reassign implements affinity.Store.
func (db *DB) Reassign(ctx context.Context, read affinity.Pin, to affinity.Target, now time.Time, idle time.Duration) (affinity.Pin, error) {
	pin, err := db.change(ctx, read.Ref, now, idle, func(row *affinity.Pin) bool {
		switch {
		case row.Same(to):
			row.Served = true
			return true
		case row.Served || !asRead(row, &read):
			return false
		}
		row.Target, row.Served = to, true
		row.Epoch++
		return true
	})
	return pin, wrap("reassign", read.Ref, err)
}

// IncrementSwitch implements affinity.Store.
func (db *DB) IncrementSwitch(ctx context.Context, read affinity.Pin, move affinity.Move, now time.Time, idle time.Duration) (affinity.Pin, error) {
	pin, err := db.change(ctx, read.Ref, now, idle, func(row *affinity.Pin) bool {
		switch {
		case row.SwitchCount > 0 && row.Same(move.To) && move.RequestID != "" && row.LastSwitchRequestID == move.RequestID:
			return true
		case !row.Served || !asRead(row, &read):
			return false
		}
		row.Target, row.LastSwitchRequestID = move.To, move.RequestID
		row.Epoch++
		row.SwitchCount++
		row.SwitchCostNanoUSD += move.CostNanoUSD
		return true
	})
	return pin, wrap("increment switch", read.Ref, err)
}

// change applies decide to a live row and writes the result when decide accepts it.
func (db *DB) change(ctx context.Context, ref affinity.Ref, now time.Time, idle time.Duration, decide func(row *affinity.Pin) bool) (affinity.Pin, error) {
	return db.call(ctx, func(c *conn) (affinity.Pin, error) {
		row, state, err := c.pin(ref, now, &db.malformed, db.logger)
		switch {
		case err != nil:
			return row, err
		case state != pinLive:
			return affinity.Pin{}, affinity.ErrNotFound
		}
		changed := row
		if !decide(&changed) {
			return row, affinity.ErrConflict
		}
		if used := second(now); used.After(changed.LastUsedAt) {
			changed.LastUsedAt = used
		}
		if expires := second(now.Add(idle)); expires.After(changed.ExpiresAt) {
			changed.ExpiresAt = expires
		}
		if changed == row {
			return row, nil
		}
		return changed, c.put(&changed)
	})
}

// Withdraw implements affinity.Store.
func (db *DB) Withdraw(ctx context.Context, read affinity.Pin) error {
	_, err := db.call(ctx, func(c *conn) (affinity.Pin, error) {
		// Expired or not makes no difference to a claim that goes away.
		row, state, err := c.pin(read.Ref, time.Unix(0, 0), &db.malformed, db.logger)
		if err != nil || state != pinLive || row.Served || !asRead(&row, &read) {
			return affinity.Pin{}, err
		}
		return affinity.Pin{}, c.remove(read.Ref)
	})
	return wrap("withdraw", read.Ref, err)
}

// asRead tells whether the row has not moved since it was read.
func asRead(row, read *affinity.Pin) bool {
	return row.Provider == read.Provider && row.KeyID == read.KeyID && row.KeyPrint == read.KeyPrint && row.Epoch == read.Epoch
}

// wrap names the operation and the key of a fault; decisions pass as they are.
func wrap(op string, ref affinity.Ref, err error) error {
	if err == nil || isDecision(err) {
		return err
	}
	return fmt.Errorf("sqlite: %s %q: %w", op, ref.SessionKey, err)
}

func isDecision(err error) bool {
	return errors.Is(err, affinity.ErrConflict) || errors.Is(err, affinity.ErrNotFound)
}

func second(t time.Time) time.Time { return time.Unix(t.Unix(), 0).UTC() }
