// Package firehose keeps routing events in a Kinesis Data Firehose delivery stream.
package firehose

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	"github.com/aws/aws-sdk-go-v2/service/firehose/types"

	"switchboard/internal/record"
)

const (
	// recordTries is how often one event is put: once, and once more.
	recordTries = 2
	// recordLimit is how long one put of an event may take. A healthy one takes 10 to 50 ms.
	recordLimit = 1500 * time.Millisecond
	// recordPause is the shortest wait before the second put when the service had refused
	// the first; up to as much again is added, so that instances do not return together.
	recordPause = 50 * time.Millisecond
)

// Recorder puts routing events into one delivery stream, as JSON that ends in a newline.
// Delivery is at least once: an answer that was lost means a second record with the same
// event_id. It may be used from any goroutine, and has none of its own: whatever it began
// has ended when a method returns, so that no freeze can catch it.
type Recorder struct {
	client    *firehose.Client
	stream    string
	logger    *slog.Logger
	closeIdle func()
}

var _ record.Recorder = (*Recorder)(nil)

// New returns a recorder on a delivery stream. The client should be one of NewClient; with
// another, its own tries multiply with those of the recorder. A nil logger discards.
func New(client *firehose.Client, stream string, logger *slog.Logger) *Recorder {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	r := &Recorder{client: client, stream: stream, logger: logger, closeIdle: func() {}}
	if pool, ok := client.Options().HTTPClient.(interface{ CloseIdleConnections() }); ok {
		r.closeIdle = pool.CloseIdleConnections
	}
	return r
}

// NewClient returns a client that calls once: the recorder owns the retry, because only it
// knows how much time is left.
func NewClient(cfg aws.Config) *firehose.Client {
	return firehose.NewFromConfig(cfg, func(o *firehose.Options) { o.Retryer = aws.NopRetryer{} })
}

// Record implements record.Recorder. It returns when Firehose has the event, or after one
// more try has failed, or when ctx ends.
func (r *Recorder) Record(ctx context.Context, event *record.Event) error {
	if event.EventID == "" {
		return errors.New("firehose: record: event without event_id")
	}
	if err := r.record(ctx, event); err != nil {
		return fmt.Errorf("firehose: record %s: %w", event.EventID, err)
	}
	return nil
}

func (r *Recorder) record(ctx context.Context, event *record.Event) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	data, cut, err := encode(event)
	if err != nil {
		return err
	}
	if len(cut) > 0 {
		r.logger.WarnContext(ctx, "routing event was too large and has been cut", slog.String("event_id", event.EventID), slog.Any("fields", cut))
	}
	input := &firehose.PutRecordInput{DeliveryStreamName: &r.stream, Record: &types.Record{Data: data}}
	for try := 1; ; try++ {
		err := r.putOne(ctx, input, recordTries-try+1)
		if err == nil || try == recordTries || ctx.Err() != nil || !r.again(ctx, err, recordPause+rand.N(recordPause)) {
			return err
		}
	}
}

// putOne puts once. It leaves each try that may follow its share of the time, so that a
// call that hangs does not take all of it.
func (r *Recorder) putOne(ctx context.Context, input *firehose.PutRecordInput, tries int) error {
	limit := recordLimit
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)/time.Duration(tries))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	output, err := r.client.PutRecord(ctx, input)
	if err == nil && output.RecordId == nil {
		err = errNoReceipt
	}
	return err
}

// again says whether another try may help, and waits until it is time for it: at once on a
// fresh connection, or after pause when the service needs a rest.
func (r *Recorder) again(ctx context.Context, err error, pause time.Duration) bool {
	switch classify(err) {
	case refused:
		return false
	case staleConnection:
		r.closeIdle() // the others in the pool have slept through the same freeze
		return true
	case timedOut:
		return true
	default:
		return wait(ctx, pause)
	}
}

// wait returns false when ctx ends first.
func wait(ctx context.Context, pause time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= pause {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
