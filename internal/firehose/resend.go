package firehose

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	"github.com/aws/aws-sdk-go-v2/service/firehose/types"

	"switchboard/internal/record"
)

const (
	// maxBatch and maxBatchBytes are Firehose's limits of one PutRecordBatch.
	maxBatch      = 500
	maxBatchBytes = 4 << 20
	// batchTries is how often a batch, or what is left of it, is put.
	batchTries = 5
	// batchLimit is how long one put of a batch may take: 4 MiB on a slow line.
	batchLimit = 30 * time.Second
	// batchPause is the wait before the second try; it doubles with each further one.
	batchPause = 200 * time.Millisecond
)

// Resend puts events again, each given as its JSON with or without a newline at its end,
// and returns how many Firehose has taken. What it refuses of a batch is put again by
// itself, with the same bytes, and hence the same event_id. err says what was not
// delivered and why; when all of a batch was refused, the rest is not tried. Calling it
// again with all of the records is harmless: readers know them by event_id.
func (r *Recorder) Resend(ctx context.Context, records [][]byte) (delivered int, err error) {
	batch := make([]types.Record, 0, min(len(records), maxBatch))
	size := 0
	var errs []error
	flush := func() bool {
		n, err := r.putBatch(ctx, batch)
		delivered += n
		if err != nil {
			errs = append(errs, err)
		}
		goOn := err == nil || n > 0
		batch, size = batch[:0], 0
		return goOn
	}
	for i, data := range records {
		line, err := r.line(ctx, data)
		if err != nil {
			errs = append(errs, fmt.Errorf("firehose: resend: record %d: %w", i, err))
			continue
		}
		if len(batch) == maxBatch || size+len(line) > maxBatchBytes {
			if !flush() {
				return delivered, errors.Join(errs...)
			}
		}
		batch = append(batch, types.Record{Data: line})
		size += len(line)
	}
	if len(batch) > 0 {
		flush()
	}
	return delivered, errors.Join(errs...)
}

// line is the record as Firehose gets it: one line with one newline, not too large.
func (r *Recorder) line(ctx context.Context, data []byte) ([]byte, error) {
	data = bytes.TrimSpace(data)
	switch {
	case !json.Valid(data):
		return nil, fmt.Errorf("its %d bytes are no JSON", len(data))
	case len(data) >= maxRecord:
		return r.cut(ctx, data)
	}
	line := bytes.NewBuffer(make([]byte, 0, len(data)+1))
	if bytes.ContainsAny(data, "\r\n") {
		if err := json.Compact(line, data); err != nil {
			return nil, err
		}
	} else {
		line.Write(data)
	}
	line.WriteByte('\n')
	return line.Bytes(), nil
}

// cut makes an event that is too large fit, as Record does.
func (r *Recorder) cut(ctx context.Context, data []byte) ([]byte, error) {
	var event record.Event
	if err := json.Unmarshal(data, &event); err != nil {
		return nil, fmt.Errorf("it has %d bytes: %w", len(data), err)
	}
	line, cut, err := encode(&event)
	if err == nil && len(cut) > 0 {
		r.logger.WarnContext(ctx, "routing event was too large and has been cut", slog.String("event_id", event.EventID), slog.Any("fields", cut))
	}
	return line, err
}

// putBatch puts a batch until all of it is taken, or its tries are used up, and returns
// how many were taken.
func (r *Recorder) putBatch(ctx context.Context, batch []types.Record) (delivered int, err error) {
	left := batch
	for try, pause := 1, batchPause; ; try, pause = try+1, 2*pause {
		var failed []types.Record
		failed, err = r.putOnce(ctx, left)
		delivered += len(left) - len(failed)
		left = failed
		if len(left) == 0 {
			return delivered, nil
		}
		if try == batchTries || ctx.Err() != nil || err != nil && classify(err) == refused || !wait(ctx, pause) {
			break
		}
	}
	return delivered, fmt.Errorf("firehose: resend: %d of %d records not delivered: %w", len(left), len(batch), err)
}

// putOnce puts a batch once and returns what was not taken, in its order. A reply that
// cannot be matched with the batch leaves all of it: twice is better than not at all. err
// is nil only when all were taken.
func (r *Recorder) putOnce(ctx context.Context, batch []types.Record) (failed []types.Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, batchLimit)
	defer cancel()
	output, err := r.client.PutRecordBatch(ctx, &firehose.PutRecordBatchInput{DeliveryStreamName: &r.stream, Records: batch})
	if err != nil {
		return batch, err
	}
	if len(output.RequestResponses) != len(batch) {
		return batch, errNoReceipt
	}
	for i, response := range output.RequestResponses {
		if response.ErrorCode != nil || response.RecordId == nil {
			failed = append(failed, batch[i])
			err = fmt.Errorf("%w: %s: %s", errRefusedOne, aws.ToString(response.ErrorCode), aws.ToString(response.ErrorMessage))
		}
	}
	return failed, err
}
