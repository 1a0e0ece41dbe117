package dynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"switchboard/internal/affinity"
)

// Confirm implements affinity.Store.
func (s *Store) Confirm(ctx context.Context, read affinity.Pin, now time.Time, idle time.Duration) (affinity.Pin, error) {
	return s.change(ctx, "confirm", read, now, idle, func(pin *affinity.Pin) bool {
		pin.Served = true
		return asRead(pin, &read)
	})
}

// Reassign implements affinity.Store.
func (s *Store) Reassign(ctx context.Context, read affinity.Pin, to affinity.Target, now time.Time, idle time.Duration) (affinity.Pin, error) {
	return s.change(ctx, "reassign", read, now, idle, func(pin *affinity.Pin) bool {
		switch {
		case pin.Same(to):
			pin.Served = true
			return true
		case pin.Served || !asRead(pin, &read):
			return false
		}
		pin.Target, pin.Served = to, true
		pin.Epoch++
		return true
	})
}

// IncrementSwitch implements affinity.Store.
func (s *Store) IncrementSwitch(ctx context.Context, read affinity.Pin, move affinity.Move, now time.Time, idle time.Duration) (affinity.Pin, error) {
	return s.change(ctx, "increment switch", read, now, idle, func(pin *affinity.Pin) bool {
		switch {
		case pin.SwitchCount > 0 && pin.Same(move.To) && move.RequestID != "" && pin.LastSwitchRequestID == move.RequestID:
			return true // the repeat of a write whose answer got lost
		case !pin.Served || !asRead(pin, &read):
			return false
		}
		pin.Target, pin.LastSwitchRequestID = move.To, move.RequestID
		pin.Epoch++
		pin.SwitchCount++
		pin.SwitchCostNanoUSD += move.CostNanoUSD
		return true
	})
}

// change makes the row what decide makes of it. It begins with the pin as the caller read
// it, in the trust that the row is still that: one UpdateItem whose condition is all that
// decide looked at. When the condition fails, the row that comes back is decided on instead.
func (s *Store) change(ctx context.Context, op string, read affinity.Pin, now time.Time, idle time.Duration, decide func(pin *affinity.Pin) bool) (affinity.Pin, error) {
	found := row{state: rowLive, pin: read} // without raw: nothing has been read yet
	for range tries {
		next := found.pin
		accepted := decide(&next)
		set := timesOver(&found, now, idle)
		switch {
		case accepted && found.raw != nil && next == found.pin && !set.any():
			return next, nil
		case !accepted && found.raw != nil:
			return found.pin, affinity.ErrConflict
		}
		var raw item
		var err error
		lost := true
		if accepted {
			raw, lost, err = s.update(ctx, &found, &next, set, now, idle)
		} else {
			raw, err = s.get(ctx, read.Ref)
		}
		refusal := err
		if err != nil && isValidation(err) { // a column that cannot be added to
			raw, err = s.get(ctx, read.Ref)
		}
		if err != nil {
			return affinity.Pin{}, fault(ctx, op, read.SessionKey, err)
		}
		after := s.judge(ctx, read.Ref, raw, now)
		switch {
		case after.state != rowLive:
			return affinity.Pin{}, affinity.ErrNotFound
		case refusal != nil:
			return affinity.Pin{}, fault(ctx, op, read.SessionKey, refusal)
		case !lost:
			return after.pin, nil
		}
		found = after
	}
	return affinity.Pin{}, fault(ctx, op, read.SessionKey, errRestless)
}

// update writes what makes next of found, on condition that the row is found, and returns
// the row: as written, or as it failed the condition.
func (s *Store) update(ctx context.Context, found *row, next *affinity.Pin, set times, now time.Time, idle time.Duration) (raw item, conflict bool, err error) {
	e := newExpression()
	e.set(colActive, truth(next.Served))
	if next.Epoch != found.pin.Epoch {
		e.set(colProvider, text(next.Provider))
		e.set(colKeyID, text(next.KeyID))
		e.set(colKeyPrint, text(next.KeyPrint))
		e.set(colTargetModel, text(next.Target.Model))
		e.set(colSurface, text(next.Surface))
		e.set(colEpoch, number(next.Epoch))
	}
	e.unmoved(found, next.Epoch != found.pin.Epoch)
	if next.SwitchCount != found.pin.SwitchCount {
		e.set(colSwitchRequest, text(next.LastSwitchRequestID))
		e.add(colSwitches, 1)
		e.add(colSwitchCost, next.SwitchCostNanoUSD-found.pin.SwitchCostNanoUSD)
	}
	e.and(e.is(colExpires, ">", "now", epochSeconds(now)))
	set.write(e, now, idle)
	out, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.sessions, Key: pinKey(next.Ref), UpdateExpression: e.update(),
		ConditionExpression: e.condition(), ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.bound(),
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if raw, failed := lost(err); failed {
		return raw, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	return out.Attributes, false, nil
}

// times says which of a row's times a write moves. DynamoDB has no maximum of two values,
// and times never move back: so a time is set on condition that it moves forward, and when
// that fails the write is made again without it.
type times struct {
	used, expires bool
	usedGone      bool // there is no last_used_at to compare with
}

// timesOver is the times of a found row that now and idle move.
func timesOver(found *row, now time.Time, idle time.Duration) times {
	t := times{
		used:    now.Unix() > found.pin.LastUsedAt.Unix(),
		expires: now.Add(idle).Unix() > found.pin.ExpiresAt.Unix(),
	}
	if found.raw != nil {
		_, there := found.raw[colUsed]
		t.usedGone = !there
	}
	return t
}

func (t times) any() bool { return t.used || t.expires }

func (t times) write(e *expression, now time.Time, idle time.Duration) {
	if t.used {
		e.set(colUsed, epochSeconds(now))
		if t.usedGone {
			e.and(e.absent(colUsed))
		} else {
			e.and(e.name(colUsed) + " <= :new_" + colUsed)
		}
	}
	if t.expires {
		e.set(colExpires, epochSeconds(now.Add(idle)))
		e.and(e.name(colExpires) + " <= :new_" + colExpires)
	}
}
