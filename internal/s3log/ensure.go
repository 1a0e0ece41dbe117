package s3log

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"

	"switchboard/internal/audit"
)

// need is what a question needs loaded.
type need struct {
	hours
	keep  hours // of all that the question needs
	again bool  // the cache has just been made anew for it
}

// ensure brings the cache up to date for a range of hours, as far as time allows, and says
// what is in it.
func (r *Reader) ensure(ctx context.Context, c *cache, n need) (audit.Coverage, error) {
	now := r.options.Now()
	n.to = min(n.to, hourOf(now))
	st, err := r.stateOf(ctx, c, n.hours, now)
	if err != nil {
		return audit.Coverage{}, err
	}
	if len(st.list) == 0 && st.pending == 0 && !r.floor.stale(n.from, now, r.options.Refresh) {
		return r.coverage(st, now), nil
	}
	if err := r.refresh(ctx, c, n, st); err != nil {
		return audit.Coverage{}, err
	}
	if st, err = r.stateOf(ctx, c, n.hours, now); err != nil {
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
		Complete:   st.complete(),
		Unreadable: st.unreadable,
		Pending:    st.pending,
	}
}

// refresh lists and loads, one question at a time. An error means that there is nothing to
// answer from; what else goes wrong leaves the answer incomplete.
func (r *Reader) refresh(ctx context.Context, c *cache, n need, st state) error {
	patience := r.options.Patience
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)*3/4) // the rest is for the answer
	}
	loading, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if mine, err := r.takeTurn(loading, c, n, st); !mine {
		return cmp.Or(ctx.Err(), err)
	}
	defer func() { <-r.turn }()
	now := r.options.Now()
	listErr := r.refreshList(loading, c, n.hours, now)
	if isDamaged(listErr) {
		return listErr
	}
	loadErr := r.load(loading, c, n.hours, n.keep)
	switch err := errors.Join(listErr, loadErr); {
	case ctx.Err() != nil:
		return ctx.Err()
	case isDamaged(loadErr), errors.Is(loadErr, errOutgrown) && !n.again:
		return loadErr
	case err == nil, loading.Err() != nil:
		return nil
	default:
		return r.tolerate(ctx, c, n.hours, now, err)
	}
}

// takeTurn waits to be the one that loads. It is false, without an error, when there is
// nothing to wait for any more: another has loaded what is missing, or time is over. What
// is only not fresh is not waited for.
func (r *Reader) takeTurn(loading context.Context, c *cache, n need, st state) (mine bool, err error) {
	for {
		told := r.progress.next()
		select {
		case r.turn <- struct{}{}:
			return true, nil
		default:
		}
		if st.complete() {
			return false, nil
		}
		select {
		case r.turn <- struct{}{}:
			return true, nil
		case <-told:
		case <-loading.Done():
			return false, nil
		}
		if st, err = r.stateOf(loading, c, n.hours, r.options.Now()); err != nil {
			return false, cmp.Or(err, loading.Err())
		}
	}
}

// progress tells those who wait that something has been loaded.
type progress struct {
	mu   sync.Mutex
	made chan struct{}
}

// next is closed at the next progress.
func (p *progress) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made == nil {
		p.made = make(chan struct{})
	}
	return p.made
}

func (p *progress) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made != nil {
		close(p.made)
		p.made = nil
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
	if st.listed == 0 && st.never > 0 || st.pending > 0 && !st.loaded && !errors.Is(cause, errFull) && !errors.Is(cause, errOutgrown) {
		return fmt.Errorf("events: %w", cause)
	}
	r.options.Logger.LogAttrs(ctx, slog.LevelWarn, "events are not up to date", slog.Any("error", cause), slog.Int64("pending", st.pending))
	return nil
}
