package s3log

import (
	"errors"

	"zombiezen.com/go/sqlite"
)

var (
	// errOutgrown is a cache that is too large and holds more than the question is about: a
	// new one takes its place. To delete days from it row by row would take longer than to
	// load again what is asked for.
	errOutgrown = errors.New("the event cache has outgrown its limit")
	// errFull is a question whose events alone are too many.
	errFull = errors.New("the event cache has no room for the asked range")
)

// room checks the size of the cache, for a question that needs the hours of keep.
func (r *Reader) room(c *cache, keep hours) error {
	var used int64
	err := query(c.write, "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size", func(stmt *sqlite.Stmt) {
		used = stmt.ColumnInt64(0)
	})
	if err != nil || used <= r.options.MaxBytes {
		return err
	}
	return r.full(c, keep)
}

// full is why a cache can take no more.
func (r *Reader) full(c *cache, keep hours) error {
	others := false
	err := query(c.write, "SELECT 1 FROM s3_object WHERE loaded = 1 AND (hour < ?1 OR hour > ?2) LIMIT 1", func(*sqlite.Stmt) {
		others = true
	}, int64(keep.from), int64(keep.to))
	switch {
	case err != nil:
		return err
	case others:
		return errOutgrown
	}
	return errFull
}
