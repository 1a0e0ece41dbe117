package s3log

import (
	"context"
	"errors"
	"fmt"

	"switchboard/internal/audit"
	"switchboard/internal/eventdb"
)

// Threads implements audit.Reader.
func (r *Reader) Threads(ctx context.Context, f audit.Filter, p audit.Page) (answer audit.Threads, err error) {
	err = r.ask(ctx, "threads", f, func(q question) error {
		if answer, err = q.reader.Threads(ctx, q.filter, p); err != nil {
			return err
		}
		more, err := r.whole(ctx, q, answer.Sessions)
		if err != nil || !more {
			return err
		}
		answer, err = q.reader.Threads(ctx, q.filter, p)
		return err
	})
	return answer, err
}

// Log implements audit.Reader.
func (r *Reader) Log(ctx context.Context, f audit.Filter, p audit.Page) (answer audit.Log, err error) {
	err = r.ask(ctx, "log", f, func(q question) error {
		answer, err = q.reader.Log(ctx, q.filter, p)
		return err
	})
	return answer, err
}

// Sessions implements audit.Reader.
func (r *Reader) Sessions(ctx context.Context, f audit.Filter, p audit.Page) (answer audit.SessionUsages, err error) {
	err = r.ask(ctx, "sessions", f, func(q question) error {
		answer, err = q.reader.Sessions(ctx, q.filter, p)
		return err
	})
	return answer, err
}

// Summary implements audit.Reader.
func (r *Reader) Summary(ctx context.Context, f audit.Filter) (answer audit.Summary, err error) {
	err = r.ask(ctx, "summary", f, func(q question) error {
		answer, err = q.reader.Summary(ctx, q.filter)
		return err
	})
	return answer, err
}

// Daily implements audit.Reader.
func (r *Reader) Daily(ctx context.Context, f audit.Filter) (answer audit.Days, err error) {
	err = r.ask(ctx, "daily", f, func(q question) error {
		answer, err = q.reader.Daily(ctx, q.filter)
		return err
	})
	return answer, err
}

// question is one whose events are loaded.
type question struct {
	reader *eventdb.Reader
	cache  *cache
	filter audit.Filter
	span   span
	cover  *audit.Coverage
	again  bool // the cache has been made anew for it
}

// ask loads what a question needs and has it answered. A cache that turns out to be damaged
// or too large is made anew, once.
func (r *Reader) ask(ctx context.Context, name string, f audit.Filter, answer func(question) error) error {
	used, err := r.try(ctx, f, question{}, answer)
	if ctx.Err() == nil && (isDamaged(err) || errors.Is(err, errOutgrown)) {
		if err = r.replace(ctx, used, err); err == nil {
			_, err = r.try(ctx, f, question{again: true}, answer)
		}
	}
	if err != nil {
		return fmt.Errorf("s3log: %s: %w", name, err)
	}
	return nil
}

func (r *Reader) try(ctx context.Context, f audit.Filter, q question, answer func(question) error) (*cache, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	q.cache, q.filter = r.cache, f
	if q.cache == nil {
		return nil, errClosed
	}
	if err := ctx.Err(); err != nil {
		return q.cache, err
	}
	q.span = r.span(ctx, f, r.options.Now())
	asked := q.span.hours(&r.options)
	coverage, err := r.ensure(ctx, q.cache, need{hours: asked, keep: asked, again: q.again})
	if err != nil {
		return q.cache, err
	}
	if q.span.open && r.floor.below(hourOf(q.span.from)) {
		coverage.Since = q.span.from
		if f.SessionID == "" {
			q.filter.From = q.span.from // older events may be here in part
		}
	}
	q.cover = &coverage
	q.reader = eventdb.NewReader(q.cache.read, func(context.Context, audit.Filter) (audit.Coverage, error) { return *q.cover, nil })
	return q.cache, answer(q)
}
