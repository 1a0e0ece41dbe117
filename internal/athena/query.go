package athena

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/athena"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"

	"switchboard/internal/audit"
)

// runs is how often a statement is run: once, and once more when Athena says that this may
// help.
const runs = 2

// rows runs a statement and hands over its rows.
func (q *question) rows(ctx context.Context, s audit.Statement, do func(audit.Row) error) error {
	if len(s.SQL) > maxStatement {
		return errLongValue
	}
	r := q.reader
	select {
	case r.places <- struct{}{}:
		defer func() { <-r.places }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for run := 1; ; run++ {
		id, err := r.run(ctx, q.name, s.SQL)
		if err == nil {
			return r.results(ctx, id, do)
		}
		if run == runs || ctx.Err() != nil || !again(err) {
			return err
		}
	}
}

// run starts a statement and waits for its end. When ctx ends first, or it reads too much,
// the query is stopped.
func (r *Reader) run(ctx context.Context, name, statement string) (id string, err error) {
	start := time.Now()
	if id, err = r.start(ctx, statement); err != nil {
		return "", err
	}
	execution, err := r.wait(ctx, id)
	if err != nil && !ended(execution) {
		r.stop(ctx, id)
	}
	r.log(ctx, name, id, execution, time.Since(start), err)
	return id, err
}

// start starts a query. It outlasts ctx by a moment, because a query whose id is not known
// cannot be stopped.
func (r *Reader) start(ctx context.Context, statement string) (id string, err error) {
	longer, release := lasting(ctx, r.options.StopWithin)
	defer release()
	output, err := r.client.StartQueryExecution(longer, &sdk.StartQueryExecutionInput{
		QueryString:           &statement,
		WorkGroup:             &r.options.Workgroup,
		QueryExecutionContext: &types.QueryExecutionContext{Database: &r.options.Database},
	})
	if err != nil {
		return "", translate(ctx, "start", "", err)
	}
	if id = aws.ToString(output.QueryExecutionId); id == "" {
		return "", &QueryError{Op: "start", Reason: "an answer without an id"}
	}
	return id, nil
}

// lasting is a context that ends d after ctx. Release ends it.
func lasting(ctx context.Context, d time.Duration) (longer context.Context, release func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var waiter sync.WaitGroup
	waiter.Go(func() {
		select {
		case <-ctx.Done():
			_ = sleep(longer, d)
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() {
		cancel()
		waiter.Wait()
	}
}

// wait looks at a query, ever less often, until it has ended. What it returns beside an
// error is what was seen last.
func (r *Reader) wait(ctx context.Context, id string) (*types.QueryExecution, error) {
	seen := &types.QueryExecution{}
	for pause := r.options.Poll; ; pause = min(pause+pause/2, 10*r.options.Poll) {
		if err := sleep(ctx, pause+rand.N(pause/4+1)); err != nil {
			return seen, err
		}
		output, err := r.client.GetQueryExecution(ctx, &sdk.GetQueryExecutionInput{QueryExecutionId: &id})
		if err != nil {
			return seen, translate(ctx, "poll", id, err)
		}
		if output.QueryExecution == nil || output.QueryExecution.Status == nil {
			return seen, &QueryError{Op: "poll", QueryID: id, Reason: "an answer without a status"}
		}
		seen = output.QueryExecution
		switch {
		case seen.Status.State == types.QueryExecutionStateSucceeded:
			return seen, nil
		case ended(seen):
			return seen, failed(id, seen.Status)
		case scanned(seen) > r.options.MaxBytes:
			return seen, &QueryError{Op: "run", QueryID: id, Reason: "stopped by our limit", Err: ErrScanLimit}
		}
	}
}

// stop ends a query that nobody waits for. It must not go on reading, and being billed.
// Stopping one that has ended is no error.
func (r *Reader) stop(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.options.StopWithin)
	defer cancel()
	if _, err := r.client.StopQueryExecution(ctx, &sdk.StopQueryExecutionInput{QueryExecutionId: &id}); err != nil {
		r.options.Logger.WarnContext(ctx, "athena query not stopped", slog.String("query_id", id), slog.Any("cause", translate(ctx, "stop", id, err)))
	}
}

func (r *Reader) log(ctx context.Context, name, id string, seen *types.QueryExecution, took time.Duration, err error) {
	attrs := []slog.Attr{
		slog.String("question", name),
		slog.String("query_id", id),
		slog.Int64("scanned_bytes", scanned(seen)),
		slog.Duration("took", took),
	}
	if err != nil {
		r.options.Logger.LogAttrs(ctx, slog.LevelWarn, "athena query failed", append(attrs, slog.Any("cause", err))...)
		return
	}
	r.options.Logger.LogAttrs(ctx, slog.LevelInfo, "athena query", attrs...)
}

// results hands over the rows of a query that has succeeded, page by page.
func (r *Reader) results(ctx context.Context, id string, do func(audit.Row) error) error {
	var next *string
	for first := true; ; first = false {
		output, err := r.client.GetQueryResults(ctx, &sdk.GetQueryResultsInput{QueryExecutionId: &id, NextToken: next})
		if err != nil {
			return translate(ctx, "results", id, err)
		}
		set := output.ResultSet
		if set == nil || set.ResultSetMetadata == nil {
			return &QueryError{Op: "results", QueryID: id, Reason: "an answer without rows"}
		}
		rows, columns := set.Rows, set.ResultSetMetadata.ColumnInfo
		if first && len(rows) > 0 && header(rows[0].Data, columns) {
			rows = rows[1:]
		}
		for _, one := range rows {
			bad := len(one.Data) != len(columns)
			err := do(row{one.Data, &bad})
			if bad || err != nil {
				return &QueryError{Op: "results", QueryID: id, Reason: "a row is not what was asked for"}
			}
		}
		if next = output.NextToken; aws.ToString(next) == "" {
			return nil
		}
	}
}

func ended(e *types.QueryExecution) bool {
	if e.Status == nil {
		return false
	}
	switch e.Status.State {
	case types.QueryExecutionStateSucceeded, types.QueryExecutionStateFailed, types.QueryExecutionStateCancelled:
		return true
	}
	return false
}

func scanned(e *types.QueryExecution) int64 {
	if e.Statistics == nil {
		return 0
	}
	return aws.ToInt64(e.Statistics.DataScannedInBytes)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
