package s3log

import (
	"context"
	"slices"
	"sync"
	"time"

	"switchboard/internal/audit"
)

const windowCalls = 8

// span is the range of created_at that a question needs.
type span struct {
	from, to time.Time
	open     bool // the question does not say from when
}

// hours are where the events of the span lie. An object is named after the arrival of its
// first event, so it may be older than an event by the buffer interval; and an event arrives
// when its request ends.
func (s span) hours(o *Options) hours {
	return hours{hourOf(s.from.Add(-o.Buffer - o.Delay)), hourOf(s.to.Add(o.Late + o.Buffer))}
}

// span finds the range of a filter. The bounds of one session's are narrowed by when the
// session was in use.
func (r *Reader) span(ctx context.Context, f audit.Filter, now time.Time) span {
	s := span{from: f.From, to: f.To}
	if s.to.IsZero() || s.to.After(now) {
		s.to = now
	}
	if s.from.IsZero() {
		s.open = true
		s.from = s.to.Add(-r.options.Lookback).UTC().Truncate(24 * time.Hour)
	}
	if f.SessionID != "" && f.PathOnly && r.options.Window != nil {
		if from, to, ok := r.options.Window(ctx, f.UserPath, f.SessionID); ok {
			s = s.narrow(from, to)
		}
	}
	return s
}

// narrow is what of the span the other range covers, at least an instant.
func (s span) narrow(from, to time.Time) span {
	if s.open || from.After(s.from) {
		s.from = from
	}
	s.open = false // all of the session's time is in it
	if to.Before(s.to) {
		s.to = to
	}
	if s.to.Before(s.from) {
		s.to = s.from
	}
	return s
}

// whole loads what else there is of the sessions of a page, whose requests are counted
// whatever the filter. More tells whether something was loaded.
func (r *Reader) whole(ctx context.Context, q question, threads []audit.Thread) (more bool, err error) {
	now := r.options.Now()
	earliest := earlier(q.span.from, now.Add(-r.options.Lookback))
	asked := q.span.hours(&r.options)
	if asked.to >= hourOf(now) && !q.span.from.After(earliest) {
		return false, nil // there is nothing around it
	}
	n := need{keep: asked, again: q.again}
	var parts []hours
	for _, s := range r.around(ctx, q, threads) {
		if s.from.Before(earliest) {
			s.from = earliest
		}
		in := s.hours(&r.options)
		n.keep = hours{min(n.keep.from, in.from), max(n.keep.to, in.to)}
		parts = append(parts, in.without(asked)...)
	}
	for _, n.hours = range parts {
		before, err := r.stateOf(ctx, q.cache, n.hours, now)
		if err != nil {
			return more, err
		}
		coverage, err := r.ensure(ctx, q.cache, n)
		if err != nil {
			return more, err
		}
		more = more || len(before.list) > 0 || before.pending > 0
		q.cover.Complete = q.cover.Complete && coverage.Complete
		q.cover.Pending += coverage.Pending
	}
	return more, nil
}

// around is when the sessions were in use, merged. Where that is not known, it may be
// anywhere around what was asked for.
func (r *Reader) around(ctx context.Context, q question, threads []audit.Thread) []span {
	found := make([]span, len(threads))
	var calls sync.WaitGroup
	places := make(chan struct{}, windowCalls)
	for i := range threads {
		if threads[i].SessionID == "" {
			continue
		}
		if r.options.Window == nil {
			found[i] = q.span.around(r.options.Around)
			continue
		}
		places <- struct{}{}
		calls.Go(func() {
			defer func() { <-places }()
			from, to, ok := r.options.Window(ctx, threads[i].UserPath, threads[i].SessionID)
			if ok {
				found[i] = span{from: from, to: to}
			} else {
				found[i] = q.span.around(r.options.Around)
			}
		})
	}
	calls.Wait()
	return merged(found)
}

func (s span) around(d time.Duration) span { return span{from: s.from.Add(-d), to: s.to.Add(d)} }

// merged joins what overlaps, and leaves out what is zero.
func merged(all []span) []span {
	slices.SortFunc(all, func(a, b span) int { return a.from.Compare(b.from) })
	var out []span
	for _, s := range all {
		if s.from.IsZero() {
			continue
		}
		if n := len(out); n > 0 && !s.from.After(out[n-1].to) {
			if s.to.After(out[n-1].to) {
				out[n-1].to = s.to
			}
			continue
		}
		out = append(out, s)
	}
	return out
}

// without is what of a range lies outside of another.
func (s hours) without(o hours) (parts []hours) {
	if s.to < o.from || s.from > o.to {
		return []hours{s}
	}
	if s.from < o.from {
		parts = append(parts, hours{s.from, o.from - 1})
	}
	if s.to > o.to {
		parts = append(parts, hours{o.to + 1, s.to})
	}
	return parts
}
