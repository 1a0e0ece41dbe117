package s3log

import (
	"strings"
	"time"
)

// hour is an hour since 1970, UTC.
type hour int64

func hourOf(t time.Time) hour {
	s := t.Unix()
	h := s / 3600
	if s%3600 < 0 {
		h--
	}
	return hour(h)
}

func (h hour) start() time.Time { return time.Unix(int64(h)*3600, 0).UTC() }
func (h hour) end() time.Time   { return (h + 1).start() }
func (h hour) sameDay(o hour) bool {
	return h.start().Format(time.DateOnly) == o.start().Format(time.DateOnly)
}

// day and prefix are where the objects of a day and of an hour lie (template.yaml).
func (h hour) day(prefix string) string {
	return prefix + "dt=" + h.start().Format(time.DateOnly) + "/"
}

func (h hour) prefix(prefix string) string {
	return h.day(prefix) + "hour=" + h.start().Format("15") + "/"
}

// hourOfKey is the hour in which an object arrived.
func hourOfKey(prefix, key string) (hour, bool) {
	const layout = "dt=2006-01-02/hour=15/"
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok || len(rest) < len(layout) {
		return 0, false
	}
	t, err := time.Parse(layout, rest[:len(layout)])
	return hourOf(t), err == nil
}

// hours is a range of them, both ends included.
type hours struct{ from, to hour }

// run is a contiguous part of one day that one listing covers.
func runs(list []hour) []hours {
	var all []hours
	for _, h := range list {
		if n := len(all); n > 0 && all[n-1].to+1 == h && all[n-1].to.sameDay(h) {
			all[n-1].to = h
		} else {
			all = append(all, hours{h, h})
		}
	}
	return all
}
