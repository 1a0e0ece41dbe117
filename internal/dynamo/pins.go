package dynamo

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"switchboard/internal/affinity"
)

// tries bounds how often a write is made again because the row has changed since it was
// read. Most end with the first, a lost race with the item that its failure returned.
const tries = 5

// Lookup implements affinity.Store. It is the one read of a request that has a pin, and
// reads the riding document with it when that is due.
func (s *Store) Lookup(ctx context.Context, ref affinity.Ref, now time.Time) (affinity.Pin, error) {
	raw, done, err := s.rideAlong(ctx, ref, now)
	if !done {
		raw, err = s.get(ctx, ref)
	}
	if err != nil {
		return affinity.Pin{}, fault(ctx, "lookup", ref.SessionKey, err)
	}
	row := s.judge(ctx, ref, raw, now)
	if row.state != rowLive {
		return affinity.Pin{}, affinity.ErrNotFound
	}
	return row.pin, nil
}

func (s *Store) get(ctx context.Context, ref affinity.Ref) (item, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.sessions, Key: pinKey(ref), ConsistentRead: ptr(true),
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// judge is readRow that logs what is malformed.
func (s *Store) judge(ctx context.Context, ref affinity.Ref, raw item, now time.Time) row {
	row := readRow(ref, raw, now)
	if row.state == rowMalformed {
		s.logMalformed(ctx, s.sessions, rowName(ref), row.bad, raw)
	}
	return row
}

func rowName(ref affinity.Ref) string { return ref.SessionKey + "\x00" + ref.Model }

// Assign implements affinity.Store: one conditional PutItem, whose failure brings the winner.
func (s *Store) Assign(ctx context.Context, p affinity.Pin, stale *affinity.Pin, now time.Time, idle time.Duration) (affinity.Pin, error) {
	fresh := affinity.Pin{
		Ref: p.Ref, Target: p.Target, UserPath: p.UserPath, ClientSessionID: p.ClientSessionID,
		AssignedAt: second(now), LastUsedAt: second(now), ExpiresAt: second(now.Add(idle)),
		Served: p.Served, Epoch: 1, LastSwitchRequestID: p.LastSwitchRequestID,
	}
	var found row
	for range tries {
		raw, lost, err := s.put(ctx, &fresh, stale, &found, now)
		switch {
		case err != nil:
			return affinity.Pin{}, fault(ctx, "assign", p.SessionKey, err)
		case !lost:
			if found.state == rowMalformed {
				s.malformed.forget(s.sessions, rowName(p.Ref))
			}
			return fresh, nil
		}
		found = s.judge(ctx, p.Ref, raw, now)
		switch {
		case found.state != rowLive:
		case found.pin.ClaimedBy(&p):
			return found.pin, nil // the repeat of a write whose answer got lost
		case stale == nil || !asRead(&found.pin, stale):
			return found.pin, affinity.ErrConflict
		}
	}
	return affinity.Pin{}, fault(ctx, "assign", p.SessionKey, errRestless)
}

// put writes fresh if there is no live row, or one that is as stale was read. found is the
// row that failed it before: malformed, it may be replaced while it is malformed the same
// way; as stale, while it is as found.
func (s *Store) put(ctx context.Context, fresh, stale *affinity.Pin, found *row, now time.Time) (raw item, conflict bool, err error) {
	e := newExpression()
	e.or(e.absent(colSession))
	if found.state != rowMalformed {
		e.or(e.is(colExpires, "<=", "now", epochSeconds(now)))
	}
	switch {
	case found.state == rowMalformed:
		e.or(e.still(found.raw, found.bad))
	case found.state == rowLive:
		e.or("(" + e.asRead(stale, found.raw) + ")")
	case stale != nil:
		e.or("(" + e.asRead(stale, nil) + ")")
	}
	_, err = s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &s.sessions, Item: pinItem(fresh),
		ConditionExpression: e.condition(), ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.bound(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if raw, failed := lost(err); failed {
		return raw, true, nil
	}
	return nil, false, err
}

// Withdraw implements affinity.Store.
func (s *Store) Withdraw(ctx context.Context, read affinity.Pin) error {
	e := newExpression()
	e.and(e.asRead(&read, nil))
	e.and(e.is(colActive, "=", "old", truth(false)))
	_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &s.sessions, Key: pinKey(read.Ref),
		ConditionExpression: e.condition(), ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.bound(),
	})
	if _, failed := lost(err); failed || err == nil {
		return nil
	}
	return fault(ctx, "withdraw", read.SessionKey, err)
}

// AddUsage implements affinity.Store: one UpdateItem, or two where the caller's clock is
// behind that of who used the row last. The token makes a repeat by the client's own retry
// recognisable, as an addition would be made twice. What it sets rather than adds to is well
// formed afterwards, whatever it was.
func (s *Store) AddUsage(ctx context.Context, ref affinity.Ref, usage affinity.Usage, now time.Time, idle time.Duration) error {
	token := usageToken()
	set := times{used: true, expires: true}
	for range tries {
		raw, conflict, err := s.addUsage(ctx, ref, usage, token, set, now, idle)
		switch {
		case err != nil && isValidation(err):
			// A column that cannot be added to: no live row, if that is what it is.
			refusal := err
			if raw, err = s.get(ctx, ref); err != nil {
				return fault(ctx, "add usage", ref.SessionKey, err)
			}
			if s.judge(ctx, ref, raw, now).state == rowLive {
				return fault(ctx, "add usage", ref.SessionKey, refusal)
			}
		case err != nil:
			return fault(ctx, "add usage", ref.SessionKey, err)
		case !conflict:
			return nil
		}
		found := s.judge(ctx, ref, raw, now)
		if found.state != rowLive || bytesOf(raw[colUsageToken]) == string(token) {
			return nil
		}
		set = timesOver(&found, now, idle)
	}
	return fault(ctx, "add usage", ref.SessionKey, errRestless)
}

func (s *Store) addUsage(ctx context.Context, ref affinity.Ref, usage affinity.Usage, token []byte, set times, now time.Time, idle time.Duration) (raw item, conflict bool, err error) {
	e := newExpression()
	e.add(colInput, usage.InputTokens)
	e.add(colOutput, usage.OutputTokens)
	e.add(colCached, usage.CachedTokens)
	e.add(colCost, usage.CostNanoUSD)
	e.add(colRequests, 1)
	if usage.InputTokens > 0 {
		e.set(colLastInput, number(usage.InputTokens))
	}
	mine := &types.AttributeValueMemberB{Value: token}
	e.set(colUsageToken, mine)
	e.and(e.is(colExpires, ">", "now", epochSeconds(now)))
	e.and("(" + e.absent(colUsageToken) + " OR " + e.name(colUsageToken) + " <> :new_" + colUsageToken + ")")
	set.write(e, now, idle)
	_, err = s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.sessions, Key: pinKey(ref), UpdateExpression: e.update(),
		ConditionExpression: e.condition(), ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.bound(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if raw, failed := lost(err); failed {
		return raw, true, nil
	}
	return nil, false, err
}

// usageToken tells one AddUsage from every other of the same row.
func usageToken() []byte {
	token := make([]byte, 8)
	rand.Read(token) //nolint:errcheck // it never fails
	return token
}

func bytesOf(v attr) string {
	if b, ok := v.(*types.AttributeValueMemberB); ok {
		return string(b.Value)
	}
	return ""
}
