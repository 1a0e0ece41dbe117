package s3log

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"zombiezen.com/go/sqlite"

	"switchboard/internal/audit"
)

// ensure brings the cache up to date for a range of hours, as far as time allows, and says
// what is in it.
func (r *Reader) ensure(ctx context.Context, c *cache, s hours) (audit.Coverage, error) {
	now := r.options.Now()
	s.to = min(s.to, hourOf(now))
	st, err := r.stateOf(ctx, c, s, now)
	if err != nil {
		return audit.Coverage{}, err
	}
	if len(st.list) == 0 && st.pending == 0 && !r.floor.stale(s.from, now, r.options.Refresh) {
		return r.coverage(st, now), nil
	}
	if err := r.refresh(ctx, c, s); err != nil {
		return audit.Coverage{}, err
	}
	if st, err = r.stateOf(ctx, c, s, now); err != nil {
		return audit.Coverage{}, err
	}
	return r.coverage(st, now), nil
}

func (r *Reader) stateOf(ctx context.Context, c *cache, s hours, now time.Time) (st state, err error) {
	err = c.read(ctx, func(_ context.Context, conn *sqlite.Conn) error {
		st, err = r.state(conn, s, now)
		return err
	})
	return st, err
}

func (r *Reader) coverage(st state, now time.Time) audit.Coverage {
	return audit.Coverage{
		AsOf:       earlier(st.listedAt, now).Add(-r.options.Buffer - r.options.Delay).UTC().Truncate(time.Millisecond),
		Complete:   st.never == 0 && st.pending == 0,
		Unreadable: st.unreadable,
		Pending:    st.pending,
	}
}

// refresh lists and loads, one question at a time. An error means that there is nothing to
// answer from; what else goes wrong leaves the answer incomplete.
func (r *Reader) refresh(ctx context.Context, c *cache, s hours) error {
	patience := r.options.Patience
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)*3/4) // the rest is for the answer
	}
	loading, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-loading.Done():
		return ctx.Err()
	}
	now := r.options.Now()
	listErr := r.refreshList(loading, c, s, now)
	if isDamaged(listErr) {
		return listErr
	}
	loadErr := r.load(loading, c, s)
	switch err := errors.Join(listErr, loadErr); {
	case ctx.Err() != nil:
		return ctx.Err()
	case isDamaged(loadErr):
		return loadErr
	case err == nil, loading.Err() != nil:
		return nil
	default:
		return r.tolerate(ctx, c, s, now, err)
	}
}

// refreshList lists what is due.
func (r *Reader) refreshList(ctx context.Context, c *cache, s hours, now time.Time) error {
	var floorErr error
	if r.floor.stale(s.from, now, r.options.Refresh) {
		floorErr = r.findFloor(ctx, now)
	}
	st, err := r.stateOf(ctx, c, s, now)
	if err != nil {
		return err
	}
	if floorErr != nil {
		return floorErr
	}
	return r.list(ctx, c, st.list)
}

// tolerate lets an answer be made of what is there, if anything is.
func (r *Reader) tolerate(ctx context.Context, c *cache, s hours, now time.Time, cause error) error {
	st, err := r.stateOf(ctx, c, s, now)
	if err != nil {
		return err
	}
	if st.listed == 0 && st.never > 0 || st.pending > 0 && !st.loaded && !errors.Is(cause, errFull) {
		return fmt.Errorf("events: %w", cause)
	}
	r.options.Logger.LogAttrs(ctx, slog.LevelWarn, "events are not up to date", slog.Any("error", cause), slog.Int64("pending", st.pending))
	return nil
}
