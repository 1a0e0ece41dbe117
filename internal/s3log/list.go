package s3log

import (
	"context"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"
)

const (
	listPage    = 1000
	listWorkers = 4
)

// listing is a page of what a run of hours has: all objects of the hours in done, which
// have all been seen now, and some of the next hour.
type listing struct {
	objects []Object
	hours   []hour // of the objects
	done    hours
	at      time.Time // when the listing began
	err     error
}

// list lists hours and writes down what they have. One that could not be listed does not
// keep the others from it.
func (r *Reader) list(ctx context.Context, c *cache, due []hour) error {
	var failed error
	err := parallel(ctx, listWorkers, slices.Values(runs(due)), r.listRun, func(page listing) error {
		if page.err != nil {
			failed = page.err
			return nil
		}
		return c.noteListing(page)
	})
	if err != nil {
		return err
	}
	return failed
}

// listRun lists a run page by page: contiguous hours of a day lie side by side.
func (r *Reader) listRun(ctx context.Context, run hours, emit func(listing) bool) {
	prefix, after := run.from.prefix(r.options.Prefix), ""
	if run.from != run.to {
		prefix, after = run.from.day(r.options.Prefix), prefix
	}
	at := r.options.Now()
	for {
		objects, more, err := r.options.Bucket.List(ctx, prefix, after, listPage)
		if err != nil {
			emit(listing{err: err})
			return
		}
		page := listing{at: at, done: hours{run.from, run.to}}
		for _, o := range objects {
			after = o.Key
			h, ok := hourOfKey(r.options.Prefix, o.Key)
			if !ok || h < run.from {
				continue
			}
			if h > run.to {
				more = false
				break
			}
			page.objects, page.hours = append(page.objects, o), append(page.hours, h)
		}
		more = more && len(objects) > 0
		if more {
			page.done.to = run.from - 1
			if n := len(page.hours); n > 0 {
				page.done.to = page.hours[n-1] - 1
			}
			run.from = max(run.from, page.done.to+1)
		}
		if !emit(page) || !more {
			return
		}
	}
}

// noteListing writes a page down: objects that are new, or not what they were, are to be
// loaded.
func (c *cache) noteListing(page listing) error {
	return c.transact(func() error {
		for i, o := range page.objects {
			err := c.exec(`INSERT INTO s3_object (key, etag, hour, loaded) VALUES (?1, ?2, ?3, ?4)
				ON CONFLICT DO UPDATE SET etag = excluded.etag, loaded = excluded.loaded WHERE etag <> excluded.etag`,
				o.Key, o.ETag, int64(page.hours[i]), loadedIf(o.Size == 0))
			if err != nil {
				return err
			}
		}
		for h := page.done.from; h <= page.done.to; h++ {
			if err := c.exec("REPLACE INTO s3_hour (hour, listed_at) VALUES (?1, ?2)", int64(h), page.at.UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	})
}

func loadedIf(empty bool) int64 {
	if empty {
		return 1
	}
	return 0
}

func (c *cache) exec(sql string, args ...any) error {
	return query(c.write, sql, func(*sqlite.Stmt) {}, args...)
}

// transact runs do in a transaction of the write connection.
func (c *cache) transact(do func() error) error {
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := do()
	if err == nil {
		err = c.exec("COMMIT")
	}
	if err != nil && !c.write.AutocommitEnabled() {
		// What led here is the error that counts.
		_ = c.exec("ROLLBACK")
	}
	return err
}
