// Package s3log answers audit questions from the routing events that a delivery stream has
// put into a bucket.
//
// Objects are read once: their events go into an SQLite file (eventdb), a cache that answers
// from then on. A question loads only the hours that it asks for.
package s3log

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"switchboard/internal/audit"
)

// Object is what a listing says of one object.
type Object struct {
	Key, ETag string
	Size      int64
}

// Bucket is where the events are.
//
// Duties: List and Get may be called from any goroutine, end when ctx ends, and try again by
// themselves where that helps. A listing sees every object whose write had ended before.
type Bucket interface {
	// List returns objects whose keys begin with prefix and come after the key after, in
	// the order of their keys, at most limit, and whether there are more behind them.
	List(ctx context.Context, prefix, after string, limit int) (objects []Object, more bool, err error)
	// Get opens an object, as it is stored. It is ErrGone when there is none any more.
	Get(ctx context.Context, key string) (io.ReadCloser, error)
}

// ErrGone is an object that has been deleted since it was listed.
var ErrGone = errors.New("s3log: the object is gone")

// Options of Open. Bucket and Dir are needed; what is zero has a default.
type Options struct {
	Bucket Bucket
	// Source names the bucket. A cache of another source is not used.
	Source string
	Prefix string // of the hours, default "events/": below it are dt=2006-01-02/hour=15/, UTC
	Dir    string // of the cache, of one process; made if it is not there

	// Buffer is the stream's buffer interval, default 60 s: an event is put into the bucket
	// at the latest after it, and its object is named after the first event in it.
	Buffer time.Duration
	// Delay is how long that put may take, default 30 s.
	Delay time.Duration
	// Late is how long after created_at an event may arrive at the stream, default 1 h: it
	// is written when its request ends.
	Late time.Duration
	// Sealed is how long after its end an hour may get objects, default 25 h: a stream that
	// cannot reach the bucket tries for a day. Older hours are listed once.
	Sealed time.Duration
	// Refresh is how long a listing of the last two hours is good for, default 3 s. Other
	// hours that are not sealed are listed again after 100 times that.
	Refresh time.Duration
	// Lookback is how far a question without From goes back, default 7 days.
	Lookback time.Duration
	// Around is how long before and after the asked range the rest of a session's requests
	// is looked for, when there is no Window for it; default a day.
	Around time.Duration
	// Window is when a session was in use, ok if that is known: then its events are looked
	// for there only. It may be nil.
	Window func(ctx context.Context, userPath, sessionID string) (from, to time.Time, ok bool)

	Patience time.Duration // how long a question waits for a load, default 20 s
	Parallel int           // objects that are read at the same time, default 16
	MaxBytes int64         // of the cache, default 1 GiB; beyond it only what is asked for is kept

	Now    func() time.Time // default time.Now
	Logger *slog.Logger     // default: nowhere
}

func (o *Options) defaults() error {
	if o.Bucket == nil || o.Dir == "" {
		return errors.New("s3log: a bucket and a directory are needed")
	}
	o.Prefix = cmp.Or(o.Prefix, "events/")
	o.Buffer = cmp.Or(o.Buffer, time.Minute)
	o.Delay = cmp.Or(o.Delay, 30*time.Second)
	o.Late = cmp.Or(o.Late, time.Hour)
	o.Sealed = cmp.Or(o.Sealed, 25*time.Hour)
	o.Refresh = cmp.Or(o.Refresh, 3*time.Second)
	o.Lookback = cmp.Or(o.Lookback, 7*24*time.Hour)
	o.Around = cmp.Or(o.Around, 24*time.Hour)
	o.Patience = cmp.Or(o.Patience, 20*time.Second)
	o.Parallel = cmp.Or(o.Parallel, 16)
	o.MaxBytes = cmp.Or(o.MaxBytes, 1<<30)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Reader is an audit.Reader over a bucket. It may be used from any goroutine.
//
// Consistency: an event that was put at the time of an answer's AsOf is in it. An event that
// arrived more than Late after its created_at is found by questions that reach to its arrival.
type Reader struct {
	options  Options
	turn     chan struct{} // held by the one that loads
	progress progress

	mu    sync.RWMutex // held for reading by those who use the cache, for writing to replace it
	cache *cache

	floor        floor
	commitEvents int // in one transaction
}

var _ audit.Reader = (*Reader)(nil)

// Open opens the cache in o.Dir, or makes it. It does not read the bucket.
func Open(ctx context.Context, o Options) (*Reader, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	c, err := openCache(ctx, &o)
	if err != nil {
		return nil, fmt.Errorf("s3log: %w", err)
	}
	return &Reader{options: o, turn: make(chan struct{}, 1), cache: c, commitEvents: commitEvents}, nil
}

// Close closes the cache, when those who use it are done.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cache == nil {
		return nil
	}
	err := r.cache.close()
	r.cache = nil
	return err
}

var errClosed = errors.New("s3log: closed")
