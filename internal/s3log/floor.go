package s3log

import (
	"context"
	"sync"
	"time"
)

// floor is where the bucket's events begin: what lies before need not be listed.
type floor struct {
	mu    sync.Mutex
	found time.Time // when it was; zero: unknown
	hour  hour      // of the first object; 0: there is none
}

// first is the first hour that has to be listed. An hour that is not sealed may get an
// object that is the first of all.
func (f *floor) first(now time.Time, sealed time.Duration) hour {
	f.mu.Lock()
	defer f.mu.Unlock()
	unsealed := hourOf(now.Add(-sealed))
	switch {
	case f.found.IsZero():
		return 0
	case f.hour == 0:
		return unsealed
	}
	return min(f.hour, unsealed)
}

// stale tells whether an answer from hour from on needs the floor to be looked for.
func (f *floor) stale(from hour, now time.Time, good time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.found.IsZero() || (f.hour == 0 || from < f.hour) && now.Sub(f.found) >= good
}

// below tells whether there are events before hour from.
func (f *floor) below(from hour) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hour != 0 && f.hour < from
}

// find looks for the first object.
func (r *Reader) findFloor(ctx context.Context, now time.Time) error {
	prefix := r.options.Prefix + "dt="
	after := ""
	for {
		objects, more, err := r.options.Bucket.List(ctx, prefix, after, 1)
		if err != nil {
			return err
		}
		first := hour(0)
		if len(objects) > 0 {
			var ok bool
			if first, ok = hourOfKey(r.options.Prefix, objects[0].Key); !ok && more {
				after = objects[0].Key // whatever that is
				continue
			}
		}
		r.floor.mu.Lock()
		defer r.floor.mu.Unlock()
		r.floor.found, r.floor.hour = now, first
		return nil
	}
}
