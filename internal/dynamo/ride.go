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

// rideAlong reads ref's row and the documents that are due and that nobody else reads. done
// is false when the row is still to be read: nothing was due, or they cannot be read
// together, and a document must not be what a pin fails for.
func (s *Store) rideAlong(ctx context.Context, ref affinity.Ref, now time.Time) (raw item, done bool, err error) {
	var aboard []*Document
	var keys []map[string]attr
	for _, r := range s.rides {
		if !r.due(now) {
			continue
		}
		if end, ok := r.document.board(); ok {
			defer end()
			aboard, keys = append(aboard, r.document), append(keys, r.document.key())
		}
	}
	if len(aboard) == 0 {
		return nil, false, nil
	}
	out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		s.sessions: {Keys: []map[string]attr{pinKey(ref)}, ConsistentRead: ptr(true)},
		s.state:    {Keys: keys},
	}})
	if err != nil {
		var api smithy.APIError
		return nil, !errors.As(err, &api) || ctx.Err() != nil, err
	}
	for _, d := range aboard {
		if found, ok := answerFor(out, s.state, colID, d.id); ok {
			d.offer(d.reading(ctx, found), false)
		}
	}
	if len(out.UnprocessedKeys[s.sessions].Keys) > 0 {
		return nil, true, ErrThrottled
	}
	if rows := out.Responses[s.sessions]; len(rows) > 0 {
		return rows[0], true, nil
	}
	return nil, true, nil
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
	if d.riding != nil || d.read != nil && time.Since(d.read.at) < freshFor {
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
