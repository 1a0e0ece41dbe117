package dynamo

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"switchboard/internal/affinity"
)

// What one call of Pins asks at most: four requests of 500 items, which are at most half a
// megabyte and 64 read units each.
const (
	listCalls = 4
	listItems = 500
)

var _ affinity.Operator = (*Store)(nil)

// Pins implements affinity.Operator: a Query where the session is known, else a Scan, whose
// order is that of DynamoDB's own hash. The filter is applied by the table, to send less, and
// again here, to be exact.
func (s *Store) Pins(ctx context.Context, q affinity.PinQuery, now time.Time) (page affinity.PinPage, err error) {
	start, err := startOf(&q)
	if err != nil {
		return page, err
	}
	limit := max(1, q.Limit)
	for range listCalls {
		items, next, err := s.list(ctx, &q, start, now)
		if err != nil {
			return affinity.PinPage{}, fault(ctx, "list pins", q.SessionKey, err)
		}
		for _, raw := range items {
			row := readRow(refOf(raw), raw, now)
			if row.state != rowLive || !q.Chooses(&row.pin) {
				continue
			}
			if len(page.Pins) == limit {
				return page, nil // its Next is already that of the last pin
			}
			page.Pins = append(page.Pins, row.pin)
			page.Next = cursorOf(raw)
		}
		if page.Next = ""; next == nil {
			return page, nil
		}
		if start, page.Next = next, cursorOf(next); len(page.Pins) == limit {
			break
		}
	}
	return page, nil
}

// list asks for the next items, and where those after them begin; nil: there are no more.
func (s *Store) list(ctx context.Context, q *affinity.PinQuery, start item, now time.Time) (items []item, next item, err error) {
	e := newExpression()
	if q.SessionKey != "" {
		key := e.is(colSession, "=", "key", text(keyText(q.SessionKey)))
		if q.Model != "" {
			key += " AND " + e.is(colModel, "=", "key", text(keyText(q.Model)))
		}
		e.choose(q, now)
		out, err := s.client.Query(ctx, &dynamodb.QueryInput{
			TableName: &s.sessions, KeyConditionExpression: &key, FilterExpression: e.condition(), ConsistentRead: ptr(true),
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.bound(), ExclusiveStartKey: start, Limit: ptr(int32(listItems)),
		})
		if err != nil {
			return nil, nil, err
		}
		return out.Items, atEnd(out.LastEvaluatedKey), nil
	}
	if q.Model != "" {
		e.and(e.is(colModel, "=", "key", text(keyText(q.Model))))
	}
	e.choose(q, now)
	out, err := s.client.Scan(ctx, &dynamodb.ScanInput{
		TableName: &s.sessions, FilterExpression: e.condition(),
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.bound(), ExclusiveStartKey: start, Limit: ptr(int32(listItems)),
	})
	if err != nil {
		return nil, nil, err
	}
	return out.Items, atEnd(out.LastEvaluatedKey), nil
}

// choose adds what the table itself can filter by, beside keys.
func (e *expression) choose(q *affinity.PinQuery, now time.Time) {
	e.and(e.is(colExpires, ">", "now", epochSeconds(now)))
	if q.ClientSessionID != "" {
		e.and(e.is(colClientSession, "=", "is", text(q.ClientSessionID)))
	}
	if q.UserPath != "" {
		root := strings.TrimSuffix(q.UserPath, "/")
		if root == "" {
			root = q.UserPath
		}
		e.and("begins_with(" + e.name(colUserPath) + ", " + e.value("root", colUserPath, text(root)) + ")")
	}
}

func atEnd(key item) item {
	if len(key) == 0 {
		return nil
	}
	return key
}

// refOf is the names of an item. A name that was too long or no text for a key is known by
// its hash alone, unless it is the id of a session that has no tenant.
func refOf(raw item) affinity.Ref {
	r := reader{raw: raw}
	ref := affinity.Ref{SessionKey: r.text(colSession, true), Model: r.text(colModel, true)}
	if strings.HasPrefix(ref.SessionKey, hashedKey) {
		if id := r.text(colClientSession, false); keyText(id) == ref.SessionKey {
			ref.SessionKey = id
		}
	}
	return ref
}

func cursorOf(raw item) string {
	r := reader{raw: raw}
	return affinity.Cursor(affinity.Ref{SessionKey: r.text(colSession, true), Model: r.text(colModel, true)})
}

// startOf is the key that a query's page begins behind; nil for the first page. Keys that
// DynamoDB would refuse are no cursors of ours.
func startOf(q *affinity.PinQuery) (item, error) {
	if q.Cursor == "" {
		return nil, nil
	}
	ref, err := affinity.ParseCursor(q.Cursor)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{ref.SessionKey, ref.Model} {
		if name == "" || len(name) > maxKey || !utf8.ValidString(name) {
			return nil, affinity.ErrCursor
		}
	}
	if q.SessionKey != "" && ref.SessionKey != keyText(q.SessionKey) {
		return nil, affinity.ErrCursor
	}
	return item{colSession: text(ref.SessionKey), colModel: text(ref.Model)}, nil
}

// Clear implements affinity.Operator.
func (s *Store) Clear(ctx context.Context, read affinity.Pin) error {
	e := newExpression()
	e.and(e.asRead(&read, nil))
	_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &s.sessions, Key: pinKey(read.Ref),
		ConditionExpression: e.condition(), ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.bound(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	raw, failed := lost(err)
	switch {
	case err == nil:
		return nil
	case !failed:
		return fault(ctx, "clear", read.SessionKey, err)
	}
	// Expired or not makes no difference to a row that goes away.
	found := s.judge(ctx, read.Ref, raw, time.Unix(0, 0))
	switch {
	case found.state != rowLive:
		return affinity.ErrNotFound
	case asRead(&found.pin, &read):
		return s.clearSparse(ctx, &found)
	}
	return affinity.ErrConflict
}

// clearSparse clears a row whose absent columns read as what was read.
func (s *Store) clearSparse(ctx context.Context, found *row) error {
	e := newExpression()
	e.and(e.asRead(&found.pin, found.raw))
	_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &s.sessions, Key: pinKey(found.pin.Ref),
		ConditionExpression: e.condition(), ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.bound(),
	})
	if _, failed := lost(err); failed {
		return affinity.ErrConflict
	}
	if err != nil {
		return fault(ctx, "clear", found.pin.SessionKey, err)
	}
	return nil
}
