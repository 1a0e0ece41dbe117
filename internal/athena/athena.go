// Package athena answers audit questions from the routing events in a bucket, by SQL over
// the Glue table that lies on them.
package athena

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	sdk "github.com/aws/aws-sdk-go-v2/service/athena"

	"switchboard/internal/audit"
)

// Options of New. Database and Workgroup are needed; what is zero has a default.
type Options struct {
	Database  string // of the Glue table
	Workgroup string // it says where results go, and how many bytes a query may read at most
	Table     string // default "routing_events"; letters, digits and underscores

	// Buffer is the stream's buffer interval, default 60 s: an event is put into the bucket
	// at the latest after it, and its object is named after the first event in it.
	Buffer time.Duration
	// Delay is how long that put may take, default 30 s.
	Delay time.Duration
	// Late is how long after created_at an event may arrive at the stream, default 1 h: it
	// is written when its request ends.
	Late time.Duration
	// Lookback is how far a question without From goes back, default 7 days; and how far a
	// thread's requests are counted back, before what was asked for.
	Lookback time.Duration
	// Around is how long before and after the asked range the rest of a session's requests
	// is looked for, when Window does not know it; default a day.
	Around time.Duration
	// Window is when a session was in use, ok if that is known: then its events are looked
	// for there only. It may be nil.
	Window func(ctx context.Context, userPath, sessionID string) (from, to time.Time, ok bool)

	// MaxBytes is how many bytes one question's statement may read, default 10 GiB; then it
	// is stopped. The workgroup's own limit is the harder one: Athena reports what a running
	// query has read with some delay.
	MaxBytes int64
	// Parallel is how many statements run at the same time, default 4: an account has few
	// places for all its queries.
	Parallel int
	// Poll is the wait before the first look at a query, default 200 ms; each further one is
	// half as long again, up to ten times the first.
	Poll time.Duration
	// StopWithin is how long stopping a query that nobody waits for may take, default 2 s.
	StopWithin time.Duration

	Now    func() time.Time // default time.Now
	Logger *slog.Logger     // default: nowhere
}

const defaultTable = "routing_events"

func (o *Options) defaults() error {
	o.Table = cmp.Or(o.Table, defaultTable)
	switch {
	case o.Database == "" || o.Workgroup == "":
		return errors.New("athena: a database and a workgroup are needed")
	case !plainName(o.Table):
		return fmt.Errorf("athena: %q is no name of a table", o.Table)
	}
	o.Buffer = cmp.Or(o.Buffer, time.Minute)
	o.Delay = cmp.Or(o.Delay, 30*time.Second)
	o.Late = cmp.Or(o.Late, time.Hour)
	o.Lookback = cmp.Or(o.Lookback, 7*24*time.Hour)
	o.Around = cmp.Or(o.Around, 24*time.Hour)
	o.MaxBytes = cmp.Or(o.MaxBytes, 10<<30)
	o.Parallel = cmp.Or(o.Parallel, 4)
	o.Poll = cmp.Or(o.Poll, 200*time.Millisecond)
	o.StopWithin = cmp.Or(o.StopWithin, 2*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// plainName is what stands in a statement without quotes.
func plainName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9' || i == 0) {
			return false
		}
	}
	return s != ""
}

// Reader is an audit.Reader over one table. It may be used from any goroutine; it has none
// of its own, and no query of its goes on when a method has returned.
//
// Consistency: an answer is of the objects that were in the bucket when its query listed
// them: all events up to AsOf. An event that arrived more than Late after its created_at is
// found by questions that reach to its arrival. Damaged lines are skipped, uncounted.
//
// Not here: reuse of results. It would answer with events older than AsOf says.
type Reader struct {
	client  *sdk.Client
	options Options
	places  chan struct{} // one for each statement that runs
}

var _ audit.Reader = (*Reader)(nil)

// New returns a reader. The client should be one of NewClient. Nothing is called.
func New(client *sdk.Client, o Options) (*Reader, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	return &Reader{client: client, options: o, places: make(chan struct{}, o.Parallel)}, nil
}

// NewClient returns a client that waits and tries again, five times in all, when Athena
// throttles or is not there for a moment: starting a query has a token, so that a second
// try starts no second query.
func NewClient(cfg aws.Config) *sdk.Client {
	return sdk.NewFromConfig(cfg, func(o *sdk.Options) {
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = 5, 5*time.Second })
	})
}
