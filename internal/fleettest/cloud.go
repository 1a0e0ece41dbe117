package fleettest

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"switchboard/internal/emulator"
)

// Names of what the functions use on AWS.
const (
	SessionTable = "session_affinity"
	StateTable   = "switchboard_state"
	Bucket       = "events"
	stream       = "events"
)

// Cloud is an AWS account on this machine with what the functions need: tables, a bucket and a
// delivery stream, which delivers when it is told to.
type Cloud struct {
	*emulator.Cloud
	URL string // for AWS_ENDPOINT_URL
	t   testing.TB
}

// NewCloud makes an account that ends with the test.
func NewCloud(t testing.TB) *Cloud {
	t.Helper()
	c := &Cloud{Cloud: emulator.New(emulator.Options{}), t: t}
	t.Cleanup(func() { c.Close(context.Background()) }) //nolint:errcheck // nothing is read any more
	if err := errors.Join(
		c.CreateTable(SessionTable, "session_id", "model_name", "expires_at"),
		c.CreateTable(StateTable, "id", "", "expires_at"),
		c.CreateBucket(Bucket),
		c.CreateStream(emulator.Stream{
			Name: stream, Bucket: Bucket, Interval: 15 * time.Minute, GZIP: true,
			Prefix: "events/dt=!{timestamp:yyyy-MM-dd}/hour=!{timestamp:HH}/", ErrorPrefix: "errors/!{firehose:error-output-type}/", // as in template.yaml
		}),
	); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// Env are the variables that let a function use the account.
func (c *Cloud) Env() []string {
	return []string{
		"AWS_ENDPOINT_URL=" + c.URL, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"SESSION_TABLE=" + SessionTable, "STATE_TABLE=" + StateTable, "EVENTS_STREAM=" + stream, "EVENTS_BUCKET=" + Bucket,
	}
}

// Lines are the events in the bucket, after delivery of all that the stream holds.
func (c *Cloud) Lines() [][]byte {
	c.t.Helper()
	c.Flush()
	lines, err := c.Events(Bucket)
	if err != nil {
		c.t.Fatal(err)
	}
	return lines
}

// Flush makes the stream deliver all that it holds.
func (c *Cloud) Flush() {
	c.t.Helper()
	if err := c.FlushStreams(); err != nil {
		c.t.Fatal(err)
	}
}
