package athena

import (
	"context"
	"fmt"
	"time"

	"switchboard/internal/audit"
)

// Threads implements audit.Reader.
func (r *Reader) Threads(ctx context.Context, f audit.Filter, p audit.Page) (answer audit.Threads, err error) {
	cover, err := r.ask(ctx, "threads", f, func(q *question) error {
		q.lookAround()
		if answer, err = q.sql().Threads(ctx, q.filter, p); err != nil {
			return err
		}
		more, err := q.widen(ctx, answer.Sessions)
		if err != nil || !more {
			return err
		}
		answer, err = q.sql().Threads(ctx, q.filter, p)
		return err
	})
	answer.Coverage = cover
	return answer, err
}

// Log implements audit.Reader.
func (r *Reader) Log(ctx context.Context, f audit.Filter, p audit.Page) (answer audit.Log, err error) {
	cover, err := r.ask(ctx, "log", f, func(q *question) error {
		answer, err = q.sql().Log(ctx, q.filter, p)
		return err
	})
	answer.Coverage = cover
	return answer, err
}

// Sessions implements audit.Reader.
func (r *Reader) Sessions(ctx context.Context, f audit.Filter, p audit.Page) (answer audit.SessionUsages, err error) {
	cover, err := r.ask(ctx, "sessions", f, func(q *question) error {
		answer, err = q.sql().Sessions(ctx, q.filter, p)
		return err
	})
	answer.Coverage = cover
	return answer, err
}

// Summary implements audit.Reader.
func (r *Reader) Summary(ctx context.Context, f audit.Filter) (answer audit.Summary, err error) {
	cover, err := r.ask(ctx, "summary", f, func(q *question) error {
		answer, err = q.sql().Summary(ctx, q.filter)
		return err
	})
	answer.Coverage = cover
	return answer, err
}

// Daily implements audit.Reader.
func (r *Reader) Daily(ctx context.Context, f audit.Filter) (answer audit.Days, err error) {
	cover, err := r.ask(ctx, "daily", f, func(q *question) error {
		answer, err = q.sql().Daily(ctx, q.filter)
		return err
	})
	answer.Coverage = cover
	return answer, err
}

// question is one that is being answered.
type question struct {
	reader       *Reader
	name         string
	filter       audit.Filter
	asked, whole span  // of the events, and of the rest of their threads
	used         *span // when the only session was in use, if that is known
	now          time.Time
	cover        audit.Coverage
}

func (q *question) sql() audit.SQL {
	return audit.SQL{Dialect: q.reader.dialect(q.asked, q.whole), Rows: q.rows}
}

// ask finds out which partitions a question needs, and has it answered.
func (r *Reader) ask(ctx context.Context, name string, f audit.Filter, answer func(*question) error) (audit.Coverage, error) {
	err := ctx.Err()
	if err == nil {
		err = sayable(f)
	}
	if err != nil {
		return audit.Coverage{}, fmt.Errorf("athena: %s: %w", name, err)
	}
	q := r.question(ctx, name, f)
	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		return q.cover, nil // nothing is in there
	}
	if err := answer(q); err != nil {
		return q.cover, fmt.Errorf("athena: %s: %w", name, err)
	}
	return q.cover, nil
}

func (r *Reader) question(ctx context.Context, name string, f audit.Filter) *question {
	q := &question{reader: r, name: name, filter: f, now: r.options.Now()}
	q.cover = audit.Coverage{AsOf: q.now.Add(-r.options.Buffer - r.options.Delay).UTC(), Complete: true, Uncounted: true}
	var open bool
	q.asked, open, q.used = r.asked(ctx, f, q.now)
	q.whole = q.asked
	if open {
		q.cover.Since = q.asked.from
		if f.SessionID == "" {
			q.filter.From = q.asked.from // the first partitions have older events in part
		}
	}
	return q
}

// lookAround lets threads be counted over more time than was asked for: over all in which
// their session was in use, or as much as is likely.
func (q *question) lookAround() {
	if q.used != nil {
		q.whole = q.asked.with(q.used.until(q.now))
	} else {
		q.whole = q.asked.around(q.reader.options.Around).until(q.now)
	}
}

// widen is lookAround once it is known which sessions are on the page. More tells whether
// that takes partitions which have not been looked at.
func (q *question) widen(ctx context.Context, threads []audit.Thread) (more bool, err error) {
	if q.used != nil {
		return false, nil
	}
	used, ok := q.reader.windows(ctx, threads)
	if !ok {
		return false, ctx.Err()
	}
	// No further back than a question without From would.
	if earliest := q.now.Add(-q.reader.options.Lookback); used.from.Before(earliest) {
		used.from = earliest
	}
	firstBefore, lastBefore := q.reader.hours(q.whole)
	q.whole = q.whole.with(used.until(q.now))
	first, last := q.reader.hours(q.whole)
	return first != firstBefore || last != lastBefore, ctx.Err()
}
