package athena

import (
	"context"
	"slices"
	"sync"
	"time"

	"switchboard/internal/audit"
)

const windowCalls = 8

// span is a range of created_at.
type span struct{ from, to time.Time }

// asked is the range that a question is about. Open tells that the question did not say
// from when: what is older is not looked at. Used is when the only session of the question
// was in use, where that is known: nil else.
//
// A pin is made by the first request that was answered and touched by the last one; those
// that nobody answered may lie around that.
func (r *Reader) asked(ctx context.Context, f audit.Filter, now time.Time) (s span, open bool, used *span) {
	s = span{f.From, f.To}
	if s.to.IsZero() || s.to.After(now) {
		s.to = now
	}
	if open = s.from.IsZero(); open {
		s.from = s.to.Add(-r.options.Lookback).UTC().Truncate(24 * time.Hour)
	}
	if f.SessionID == "" || !f.PathOnly || r.options.Window == nil {
		return s, open, nil
	}
	from, to, ok := r.options.Window(ctx, f.UserPath, f.SessionID)
	if !ok || from.IsZero() {
		return s, open, nil
	}
	used = &span{from.Add(-r.options.Late), to.Add(r.options.Around)}
	if open || used.from.After(s.from) {
		s.from = used.from
	}
	if used.to.Before(s.to) {
		s.to = used.to
	}
	if s.to.Before(s.from) {
		s.to = s.from
	}
	return s, open, used
}

func (s span) around(d time.Duration) span { return span{s.from.Add(-d), s.to.Add(d)} }

func (s span) until(now time.Time) span {
	if s.to.After(now) {
		s.to = now
	}
	return s
}

func (s span) with(o span) span {
	if o.from.Before(s.from) {
		s.from = o.from
	}
	if o.to.After(s.to) {
		s.to = o.to
	}
	return s
}

// windows is when the sessions of a page were in use, all in one. Ok is false when nobody
// knows of any.
func (r *Reader) windows(ctx context.Context, threads []audit.Thread) (all span, ok bool) {
	if r.options.Window == nil {
		return span{}, false
	}
	found := make([]span, len(threads))
	var calls sync.WaitGroup
	places := make(chan struct{}, windowCalls)
	for i := range threads {
		if threads[i].SessionID == "" {
			continue
		}
		places <- struct{}{}
		calls.Go(func() {
			defer func() { <-places }()
			if from, to, ok := r.options.Window(ctx, threads[i].UserPath, threads[i].SessionID); ok && !from.IsZero() {
				found[i] = span{from, to}
			}
		})
	}
	calls.Wait()
	found = slices.DeleteFunc(found, func(s span) bool { return s.from.IsZero() })
	if len(found) == 0 {
		return span{}, false
	}
	all = found[0]
	for _, s := range found[1:] {
		all = all.with(s)
	}
	return all, true
}

// hour is a partition: dt=2006-01-02/hour=15, UTC.
type hour struct{ dt, hour string }

func hourOf(t time.Time) hour {
	t = t.UTC()
	return hour{t.Format(time.DateOnly), t.Format("15")}
}

// hours are where the events of a span lie. An object is named after the arrival of its
// first event, so it may be older than an event by the buffer interval; and an event arrives
// when its request ends: one of 23:59:58 lies in the next day.
func (r *Reader) hours(s span) (first, last hour) {
	o := &r.options
	return hourOf(s.from.Add(-o.Buffer - o.Delay)), hourOf(s.to.Add(o.Late + o.Buffer))
}

// partitions is the span as predicates over the partition keys, which are text. Those of
// dt alone are ranges, which prune before anything is listed. The literals are plain, not
// expressions that somebody has to fold first; they have digits and dashes only.
func (r *Reader) partitions(s span) []string {
	first, last := r.hours(s)
	if first.dt == last.dt {
		return []string{"r.dt = '" + first.dt + "'", "r.hour >= '" + first.hour + "'", "r.hour <= '" + last.hour + "'"}
	}
	return []string{
		"r.dt >= '" + first.dt + "'", "r.dt <= '" + last.dt + "'",
		"(r.dt > '" + first.dt + "' OR r.hour >= '" + first.hour + "')",
		"(r.dt < '" + last.dt + "' OR r.hour <= '" + last.hour + "')",
	}
}
