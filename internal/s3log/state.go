package s3log

import (
	"time"

	"zombiezen.com/go/sqlite"
)

// state is what the cache has of a range of hours.
type state struct {
	list       []hour    // to be listed, oldest first
	never      int       // hours that have never been listed
	listed     int       // hours that have
	pending    int64     // objects listed and not loaded
	loaded     bool      // some object is
	unreadable int64     // records of the loaded ones
	listedAt   time.Time // of the hours that may get objects soon, the oldest listing
}

func (st state) complete() bool { return st.never == 0 && st.pending == 0 }

// state reads what the cache has of range s.
func (r *Reader) state(c *sqlite.Conn, s hours, now time.Time) (state, error) {
	known := map[hour]time.Time{}
	err := query(c, "SELECT hour, listed_at FROM s3_hour WHERE hour BETWEEN ?1 AND ?2", func(stmt *sqlite.Stmt) {
		known[hour(stmt.ColumnInt64(0))] = time.UnixMilli(stmt.ColumnInt64(1))
	}, int64(s.from), int64(s.to))
	if err != nil {
		return state{}, err
	}
	st := state{listedAt: now}
	for h := max(s.from, r.floor.first(now, r.options.Sealed)); h <= s.to; h++ {
		at, listed := known[h]
		if listed {
			st.listed++
		} else {
			st.never++
		}
		if r.due(h, at, listed, now) {
			st.list = append(st.list, h)
		}
		switch {
		case !listed:
			st.listedAt = earlier(st.listedAt, h.start())
		case at.Before(h.end().Add(r.settled())):
			st.listedAt = earlier(st.listedAt, at)
		}
	}
	err = query(c, `SELECT (SELECT COUNT(*) FROM s3_object WHERE loaded = 0 AND hour BETWEEN ?1 AND ?2),
		(SELECT COALESCE(SUM(unreadable), 0) FROM s3_object WHERE unreadable > 0 AND hour BETWEEN ?1 AND ?2),
		EXISTS (SELECT 1 FROM s3_object WHERE loaded = 1 AND hour BETWEEN ?1 AND ?2)`, func(stmt *sqlite.Stmt) {
		st.pending, st.unreadable, st.loaded = stmt.ColumnInt64(0), stmt.ColumnInt64(1), stmt.ColumnInt64(2) != 0
	}, int64(s.from), int64(s.to))
	return st, err
}

// settled is how long after its end an hour gets objects when nothing is wrong.
func (r *Reader) settled() time.Duration { return r.options.Buffer + r.options.Delay + time.Hour }

// due tells whether an hour has to be listed now.
func (r *Reader) due(h hour, listedAt time.Time, listed bool, now time.Time) bool {
	age := now.Sub(listedAt)
	switch {
	case !listed:
		return true
	case !listedAt.Before(h.end().Add(r.options.Sealed)):
		return false
	case !now.Before(h.end().Add(r.settled())):
		return age >= 100*r.options.Refresh
	}
	return age >= r.options.Refresh || age < 0
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
