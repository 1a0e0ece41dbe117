package s3log_test

import (
	"context"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/internal/audit"
	"switchboard/internal/audit/audittest"
	"switchboard/internal/awsclient"
	"switchboard/internal/emulator"
	"switchboard/internal/firehose"
	"switchboard/internal/record"
	"switchboard/internal/s3log"
)

// The prefix of template.yaml.
const prefix = "events/dt=!{timestamp:yyyy-MM-dd}/hour=!{timestamp:HH}/"

// cloud is AWS behind a socket, at a time that the test moves.
type cloud struct {
	*emulator.Cloud
	env *awsclient.Env
	now atomic.Pointer[time.Time]
}

func (c *cloud) time() time.Time     { return *c.now.Load() }
func (c *cloud) add(d time.Duration) { c.set(c.time().Add(d)) }
func (c *cloud) set(now time.Time)   { c.now.Store(&now) }

func newCloud(t testing.TB) *cloud {
	t.Helper()
	c := &cloud{}
	c.set(audittest.Start())
	c.Cloud = emulator.New(emulator.Options{Now: c.time})
	server := httptest.NewServer(c.Cloud)
	t.Cleanup(func() {
		c.Close(context.Background())
		server.Close()
	})
	var err error
	c.env, err = awsclient.FromEnv(func(name string) string {
		return map[string]string{
			"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_ENDPOINT_URL": server.URL,
		}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CreateBucket("events-bucket"); err != nil {
		t.Fatal(err)
	}
	return c
}

// deliver sends the events through a delivery stream, in the order of the list, each when
// it was made or when the one before it was.
func (c *cloud) deliver(t testing.TB, events []record.Event, gzip bool) {
	t.Helper()
	const stream = "events"
	if err := c.CreateStream(emulator.Stream{
		Name: stream, Bucket: "events-bucket", Prefix: prefix, ErrorPrefix: "errors/!{firehose:error-output-type}/", GZIP: gzip, Interval: time.Hour / 5,
	}); err != nil {
		t.Fatal(err)
	}
	recorder := firehose.New(firehose.NewClient(c.env.Config("firehose")), stream, nil)
	flushed := c.time()
	for i := range events {
		if made := time.UnixMilli(events[i].CreatedAt); made.After(c.time()) {
			c.set(made)
		}
		if c.time().Sub(flushed) > time.Minute {
			c.flush(t)
			flushed = c.time()
		}
		if err := recorder.Record(t.Context(), &events[i]); err != nil {
			t.Fatal(err)
		}
	}
	c.flush(t)
}

func (c *cloud) flush(t testing.TB) {
	t.Helper()
	if err := c.FlushStreams(); err != nil {
		t.Fatal(err)
	}
}

func (c *cloud) open(t testing.TB, o s3log.Options) *s3log.Reader {
	t.Helper()
	o.Bucket, o.Source = s3log.NewS3(s3log.NewClient(c.env.Config("s3")), "events-bucket"), "events-bucket"
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Now == nil {
		o.Now = c.time
	}
	r, err := s3log.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// windows knows when each session was in use, as pins do.
func windows(events []record.Event) func(context.Context, string, string) (time.Time, time.Time, bool) {
	type window struct{ from, to time.Time }
	known := map[[2]string]window{}
	for i := range events {
		e := &events[i]
		key, made := [2]string{e.UserPath, e.SessionID}, time.UnixMilli(e.CreatedAt)
		w, ok := known[key]
		if !ok || made.Before(w.from) {
			w.from = made
		}
		if made.After(w.to) {
			w.to = made
		}
		known[key] = w
	}
	return func(_ context.Context, userPath, sessionID string) (from, to time.Time, ok bool) {
		w, ok := known[[2]string{userPath, sessionID}]
		return w.from, w.to, ok
	}
}

// TestSuite is the contract, over events that a delivery stream has put into a bucket: gzip
// and with a window for each session, then plain and without, by turns.
func TestSuite(t *testing.T) {
	turns := 0
	audittest.Run(t, func(t *testing.T, events []record.Event) audit.Reader {
		turns++
		gzip := turns%2 == 0
		c := newCloud(t)
		c.deliver(t, events, gzip)
		c.add(time.Hour)
		o := s3log.Options{Lookback: 60 * 24 * time.Hour, Around: 60 * 24 * time.Hour}
		if gzip {
			o.Window, o.Around = windows(events), time.Nanosecond
		}
		return c.open(t, o)
	})
}
