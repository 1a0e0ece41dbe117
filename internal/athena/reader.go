package athena

import (
	"context"
	"fmt"
	"time"

	"switchboard/internal/audit"
)

// Threads implements audit.Reader.
func (r *Reader) Threads(ctx context.Context, f audit.Filter, p audit.Page) (answer audit.Threads, err error) {
	err = r.ask(ctx, "threads", f, &answer.Coverage, func(q *question) error {
		if err := q.threads(ctx, p, &answer); err != nil {
			return err
		}
		more, err := q.widen(ctx, answer.Sessions)
		if err != nil || !more {
			return err
		}
		answer.Sessions = nil
		return q.threads(ctx, p, &answer)
	})
	return answer, err
}

func (q *question) threads(ctx context.Context, p audit.Page, answer *audit.Threads) error {
	err := q.each(ctx, q.dialect().Threads(q.filter, p), func(row row) error {
		latest, err := audit.ScanEvent(row, 4)
		answer.Total = row.n(0)
		answer.Sessions = append(answer.Sessions, audit.Thread{
			UserPath: row.Text(1), SessionID: row.Text(2), RequestCount: row.n(3), Latest: latest,
		})
		return err
	})
	if err != nil {
		return err
	}
	return q.total(ctx, &answer.Total, len(answer.Sessions), p, q.dialect().ThreadsTotal)
}

// Log implements audit.Reader.
func (r *Reader) Log(ctx context.Context, f audit.Filter, p audit.Page) (answer audit.Log, err error) {
	err = r.ask(ctx, "log", f, &answer.Coverage, func(q *question) error {
		err := q.each(ctx, q.dialect().Log(q.filter, p), func(row row) error {
			event, err := audit.ScanEvent(row, 1)
			answer.Total = row.n(0)
			answer.Entries = append(answer.Entries, event)
			return err
		})
		if err != nil {
			return err
		}
		return q.total(ctx, &answer.Total, len(answer.Entries), p, q.dialect().LogTotal)
	})
	return answer, err
}

// Sessions implements audit.Reader.
func (r *Reader) Sessions(ctx context.Context, f audit.Filter, p audit.Page) (answer audit.SessionUsages, err error) {
	err = r.ask(ctx, "sessions", f, &answer.Coverage, func(q *question) error {
		err := q.each(ctx, q.dialect().Sessions(q.filter, p), func(row row) error {
			answer.Total = row.n(0)
			answer.Entries = append(answer.Entries, audit.SessionUsage{
				UserPath: row.Text(1), SessionID: row.Text(2), LastUsedAt: audit.TimeOfKey(row.Text(3)),
				Usage: audit.ScanUsage(row, 4),
			})
			return nil
		})
		if err != nil {
			return err
		}
		return q.total(ctx, &answer.Total, len(answer.Entries), p, q.dialect().SessionsTotal)
	})
	return answer, err
}

// Summary implements audit.Reader.
func (r *Reader) Summary(ctx context.Context, f audit.Filter) (answer audit.Summary, err error) {
	err = r.ask(ctx, "summary", f, &answer.Coverage, func(q *question) error {
		return q.each(ctx, q.dialect().Summary(q.filter), func(row row) error {
			group := audit.Group{Model: row.Text(1), Provider: row.Text(2), Usage: audit.ScanUsage(row, 3)}
			answer.Sessions = row.n(0)
			answer.Groups = append(answer.Groups, group)
			answer.Usage.Add(group.Usage)
			return nil
		})
	})
	return answer, err
}

// Daily implements audit.Reader.
func (r *Reader) Daily(ctx context.Context, f audit.Filter) (answer audit.Days, err error) {
	err = r.ask(ctx, "daily", f, &answer.Coverage, func(q *question) error {
		return q.each(ctx, q.dialect().Daily(q.filter), func(row row) error {
			answer.Days = append(answer.Days, audit.Day{Date: row.Text(0), Usage: audit.ScanUsage(row, 1)})
			return nil
		})
	})
	return answer, err
}

// question is one that is being answered.
type question struct {
	reader       *Reader
	name         string
	filter       audit.Filter
	asked, whole span
	known        bool // whole is when the only session was in use
	now          time.Time
	cover        *audit.Coverage
}

func (q *question) dialect() audit.Dialect { return q.reader.dialect(q.asked, q.whole) }

// ask finds out which partitions a question needs, and has it answered.
func (r *Reader) ask(ctx context.Context, name string, f audit.Filter, cover *audit.Coverage, answer func(*question) error) error {
	err := ctx.Err()
	if err == nil {
		err = sayable(f)
	}
	if err == nil {
		q := r.question(ctx, name, f, cover)
		if f.From.IsZero() || f.To.IsZero() || f.From.Before(f.To) {
			err = answer(q)
		}
	}
	if err != nil {
		return fmt.Errorf("athena: %s: %w", name, err)
	}
	return nil
}

func (r *Reader) question(ctx context.Context, name string, f audit.Filter, cover *audit.Coverage) *question {
	q := &question{reader: r, name: name, filter: f, now: r.options.Now(), cover: cover}
	*cover = audit.Coverage{AsOf: q.now.Add(-r.options.Buffer - r.options.Delay).UTC(), Complete: true, Uncounted: true}
	var open bool
	var used *span
	q.asked, open, used = r.asked(ctx, f, q.now)
	if q.known = used != nil; q.known {
		q.whole = q.asked.with(*used).until(q.now)
	} else {
		q.whole = q.asked.around(r.options.Around).until(q.now)
	}
	if open {
		cover.Since = q.asked.from
		if f.SessionID == "" {
			q.filter.From = q.asked.from // the first partitions have older events in part
		}
	}
	return q
}

// widen lets the threads of a page be counted over all the time in which their sessions
// were in use, where that is more than has been looked at. More tells whether it is.
func (q *question) widen(ctx context.Context, threads []audit.Thread) (more bool, err error) {
	if q.known {
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
	wider := q.whole.with(used.until(q.now))
	firstBefore, lastBefore := q.reader.hours(q.whole)
	first, last := q.reader.hours(wider)
	q.whole = wider
	return first != firstBefore || last != lastBefore, ctx.Err()
}

// total asks how many rows there are when a page beyond the end could not say.
func (q *question) total(ctx context.Context, total *int64, rows int, p audit.Page, statement func(audit.Filter) audit.Statement) error {
	if rows > 0 || p.Offset == 0 {
		return nil
	}
	return q.each(ctx, statement(q.filter), func(row row) error {
		*total = row.n(0)
		return nil
	})
}
