package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/config"

	"switchboard/internal/firehose"
	"switchboard/internal/replay"
	"switchboard/internal/sqlite"
)

// toStream puts events back into a Firehose delivery stream.
type toStream struct{ recorder *firehose.Recorder }

// openStream uses the SDK's own configuration, unlike the functions: somebody sits here
// with profiles and SSO.
func openStream(ctx context.Context, name string, p process) (*toStream, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	return &toStream{firehose.New(firehose.NewClient(cfg), name, warnings(p))}, nil
}

// put cannot know what is there already: whoever reads the events drops those that are
// there twice.
func (d *toStream) put(ctx context.Context, events []replay.Event) (delivered, known int, err error) {
	records := make([][]byte, 0, len(events))
	for _, event := range events {
		records = append(records, event.JSON)
	}
	delivered, err = d.recorder.Resend(ctx, records)
	return delivered, 0, err
}

func (d *toStream) close(context.Context) error { return nil }

// toDatabase puts events back into the database of a switchboard on one machine, which may
// be running.
type toDatabase struct{ db *sqlite.DB }

func openDatabase(ctx context.Context, path string, p process) (*toDatabase, error) {
	db, err := sqlite.Open(ctx, path, warnings(p))
	if err != nil {
		return nil, err
	}
	return &toDatabase{db}, nil
}

func (d *toDatabase) put(ctx context.Context, events []replay.Event) (delivered, known int, err error) {
	ids := make([]string, 0, len(events))
	for i := range events {
		ids = append(ids, events[i].EventID)
	}
	before, err := d.db.Recorded(ctx, ids)
	if err != nil {
		return 0, 0, err
	}
	for i := range events {
		if !before[ids[i]] {
			err = errors.Join(err, d.db.Record(ctx, &events[i].Event))
		}
	}
	after, readErr := before, d.db.Flush(ctx)
	if readErr == nil { // what was queued may still have been refused
		after, readErr = d.db.Recorded(ctx, ids)
	}
	return max(0, len(after)-len(before)), len(before), errors.Join(err, readErr)
}

func (d *toDatabase) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBudget)
	defer cancel()
	return d.db.Close(ctx)
}

func warnings(p process) *slog.Logger {
	return slog.New(slog.NewJSONHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
