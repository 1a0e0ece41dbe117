package dynamo

import (
	"context"
	"errors"
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

// Ride lets a Lookup at which d is due read the pin and d in one BatchGetItem: one round
// trip, one call. The next Load of d then answers from what was read. Call it before the
// store is used; at most one document rides.
func (s *Store) Ride(d *Document, due func(now time.Time) bool) {
	s.ride = &ride{document: d, due: due}
}

// rideAlong reads ref's row and the document, if that is due and nobody else reads it. done
// is false when the row is still to be read: it was not due, or the two cannot be read
// together, and the document must not be what a pin fails for.
func (s *Store) rideAlong(ctx context.Context, ref affinity.Ref, now time.Time) (raw item, done bool, err error) {
	if s.ride == nil || !s.ride.due(now) {
		return nil, false, nil
	}
	d := s.ride.document
	end, ok := d.board()
	if !ok {
		return nil, false, nil
	}
	defer end()
	out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		s.sessions: {Keys: []map[string]attr{pinKey(ref)}, ConsistentRead: ptr(true)},
		s.state:    {Keys: []map[string]attr{d.key()}},
	}})
	if err != nil {
		var api smithy.APIError
		return nil, !errors.As(err, &api) || ctx.Err() != nil, err
	}
	if documents, ok := only(out, s.state); ok {
		d.offer(d.reading(ctx, documents), false)
	}
	raw, ok = only(out, s.sessions)
	if !ok {
		return nil, true, ErrThrottled
	}
	return raw, true, nil
}

// only is the one item that was asked of a table, nil when there is none; false when the
// table did not get to it.
func only(out *dynamodb.BatchGetItemOutput, table string) (item, bool) {
	if len(out.UnprocessedKeys[table].Keys) > 0 {
		return nil, false
	}
	if items := out.Responses[table]; len(items) > 0 {
		return items[0], true
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
