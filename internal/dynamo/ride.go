package dynamo

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"switchboard/internal/affinity"
)

// ride is a document that a Lookup brings along when it is due.
type ride struct {
	document *Document
	due      func(now time.Time) bool
}

// Ride lets a Lookup at which d is due read the pin, d and whatever else is due in one
// BatchGetItem: one round trip, one call. The next Load of d then answers from what was
// read. Call it before the store is used, once for each document that is to ride.
func (s *Store) Ride(d *Document, due func(now time.Time) bool) {
	s.rides = append(s.rides, ride{document: d, due: due})
}

// Bring reads the documents that are due in one call, for the Loads that come next, where
// there is no Lookup to ride along with. If it fails they ask for themselves.
func (s *Store) Bring(ctx context.Context, now time.Time) {
	aboard, keys := s.aboard(now)
	defer aboard.end()
	if len(keys) == 0 {
		return
	}
	out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		s.state: {Keys: keys},
	}})
	if err == nil {
		aboard.offer(ctx, out)
	}
}

// rideAlong reads ref's row and the documents that are due and that nobody else reads. done
// is false when the row is still to be read: nothing was due, or they cannot be read
// together, and a document must not be what a pin fails for.
func (s *Store) rideAlong(ctx context.Context, ref affinity.Ref, now time.Time) (raw item, done bool, err error) {
	aboard, keys := s.aboard(now)
	defer aboard.end()
	if len(keys) == 0 {
		return nil, false, nil
	}
	out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		s.sessions: {Keys: []map[string]attr{pinKey(ref)}, ConsistentRead: ptr(true)},
		s.state:    {Keys: keys},
	}})
	if err != nil {
		if ctx.Err() != nil {
			aboard.miss(err)
		}
		var api smithy.APIError
		return nil, !errors.As(err, &api) || ctx.Err() != nil, err
	}
	aboard.offer(ctx, out)
	if len(out.UnprocessedKeys[s.sessions].Keys) > 0 {
		return nil, true, ErrThrottled
	}
	if rows := out.Responses[s.sessions]; len(rows) > 0 {
		return rows[0], true, nil
	}
	return nil, true, nil
}

// passengers are documents that one call reads.
type passengers []passenger

type passenger struct {
	*Document
	done func()
}

// aboard claims the documents that are due and that nobody else reads. The caller ends it.
func (s *Store) aboard(now time.Time) (list passengers, keys []map[string]attr) {
	for _, r := range s.rides {
		if !r.due(now) {
			continue
		}
		if done, ok := r.document.board(); ok {
			list, keys = append(list, passenger{r.document, done}), append(keys, r.document.key())
		}
	}
	return list, keys
}

func (l passengers) end() {
	for _, p := range l {
		p.done()
	}
}

// offer keeps what was read for the next Loads.
func (l passengers) offer(ctx context.Context, out *dynamodb.BatchGetItemOutput) {
	for _, p := range l {
		if found, ok := answerFor(out, p.store.state, colID, p.id); ok {
			p.Document.offer(p.reading(ctx, found), false)
		}
	}
}

// miss answers the next Loads with err: whoever has waited in vain for as long as a request
// may is not made to wait once more.
func (l passengers) miss(err error) {
	for _, p := range l {
		p.mu.Lock()
		p.read = &reading{err: err, at: time.Now()}
		p.mu.Unlock()
	}
}

// answerFor is the item of a table whose key column is id, nil when there is none; false
// when the table did not get to it.
func answerFor(out *dynamodb.BatchGetItemOutput, table, column, id string) (item, bool) {
	is := func(one item) bool {
		value, ok := one[column].(*types.AttributeValueMemberS)
		return ok && value.Value == id
	}
	if slices.ContainsFunc(out.UnprocessedKeys[table].Keys, is) {
		return nil, false
	}
	if i := slices.IndexFunc(out.Responses[table], is); i >= 0 {
		return out.Responses[table][i], true
	}
	return nil, true
}

// board claims the reading of the document for one Lookup; false when there is no need.
func (d *Document) board() (end func(), ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.riding != nil || d.read != nil && d.read.err == nil && time.Since(d.read.at) < freshFor {
		return nil, false
	}
	riding := make(chan struct{})
	d.riding = riding
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.riding = nil
		close(riding)
	}, true
}
