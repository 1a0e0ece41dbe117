// Package emulator is AWS on this machine, in this process: what switchboard uses of
// DynamoDB, Firehose, S3, Parameter Store and Secrets Manager, behind one HTTP endpoint.
package emulator

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/truora/minidyn/server"
)

// The services, as Calls and SetFault name them.
const (
	DynamoDB       = "DynamoDB"
	Firehose       = "Firehose"
	S3             = "S3"
	SSM            = "SSM"
	SecretsManager = "SecretsManager"
)

// maxBody is above every limit of the services themselves, so that those answer.
const maxBody = 64 << 20

// Options of New. The zero value is usable.
type Options struct {
	Region  string           // of the ARNs; default us-east-1
	Account string           // of the ARNs; default 000000000000
	Now     func() time.Time // stamps records and objects; default time.Now
	Logger  *slog.Logger     // what happens behind the requests; default: nowhere
}

// Cloud is the services and what they hold. It is an http.Handler: its address is what
// AWS_ENDPOINT_URL wants. Any number of requests and method calls may run at the same time.
//
// Not here: signatures (every credential is accepted), IAM, throttling, consumed capacity,
// eventual consistency (every read sees every write before it), and TTL deletion (as on AWS,
// where it comes days late, nobody may count on it).
type Cloud struct {
	options Options
	dynamo  dynamo
	objects *s3mem.Backend
	s3      http.Handler
	streams streams
	params  vault // Parameter Store
	secrets vault // Secrets Manager
	closing chan struct{}
	close   sync.Once

	mu    sync.Mutex
	calls map[string]int
	fault func(service, operation string, body []byte) Fault
}

// New makes an empty account. Close ends it.
func New(o Options) *Cloud {
	o.Region = cmp.Or(o.Region, "us-east-1")
	o.Account = cmp.Or(o.Account, "000000000000")
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	clock := s3Clock{o.Now}
	objects := s3mem.New(s3mem.WithTimeSource(clock))
	c := &Cloud{
		options: o,
		dynamo:  dynamo{engine: server.NewServer(), tables: map[string]*table{}},
		objects: objects,
		s3:      gofakes3.New(objects, gofakes3.WithTimeSource(clock), gofakes3.WithTimeSkewLimit(0)).Server(),
		params:  newVault(),
		secrets: newVault(),
		closing: make(chan struct{}),
		calls:   map[string]int{},
	}
	c.streams = newStreams(o, c.putObject)
	return c
}

// ServeHTTP answers as the service that the request is for: the X-Amz-Target header names
// it, and a request without one is for S3. It panics with http.ErrAbortHandler when a fault
// wants the connection cut.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil || len(body) > maxBody {
		http.Error(w, "the request's body is broken or over 64 MiB", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	service, operation := identify(r)
	c.count(service, operation)
	fault := c.decide(service, operation, body)
	c.pause(fault.Delay)
	switch {
	case fault.DropBefore:
		panic(http.ErrAbortHandler)
	case fault.DropAfter:
		c.serve(discard{http.Header{}}, r, service, operation, body, fault)
		panic(http.ErrAbortHandler)
	case fault.Code != "" || fault.Status != 0:
		fault.write(w, service)
	default:
		c.serve(w, r, service, operation, body, fault)
	}
}

func (c *Cloud) serve(w http.ResponseWriter, r *http.Request, service, operation string, body []byte, fault Fault) {
	switch service {
	case S3:
		c.s3.ServeHTTP(w, r)
	case DynamoDB:
		c.dynamo.serve(w, operation, body)
	case Firehose:
		c.streams.serve(w, operation, body, fault.FailRecords)
	case SSM:
		c.serveParameters(w, operation, body)
	case SecretsManager:
		c.serveSecrets(w, operation, body)
	default:
		writeError(w, apiError{Code: "UnknownOperationException", Message: "not here: " + r.Header.Get("X-Amz-Target")})
	}
}

// identify finds who is asked to do what.
func identify(r *http.Request) (service, operation string) {
	target := r.Header.Get("X-Amz-Target")
	prefix, operation, _ := strings.Cut(target, ".")
	switch prefix {
	case "":
		return S3, s3Operation(r)
	case "DynamoDB_20120810":
		return DynamoDB, operation
	case "Firehose_20150804":
		return Firehose, operation
	case "AmazonSSM":
		return SSM, operation
	case "secretsmanager":
		return SecretsManager, operation
	}
	return prefix, operation
}

// Calls is how often each operation was asked for since the last ResetCalls, by
// "Service.Operation", for example "DynamoDB.UpdateItem". Failed calls count.
func (c *Cloud) Calls() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.calls)
}

// ResetCalls starts counting again.
func (c *Cloud) ResetCalls() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.calls)
}

func (c *Cloud) count(service, operation string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[service+"."+operation]++
}

// FlushStreams delivers what all delivery streams hold, now.
func (c *Cloud) FlushStreams() error {
	return c.streams.flush()
}

// Close ends delays that are running, delivers what the streams hold and waits for their
// goroutines, until ctx ends. Requests after it are still answered, but records that
// arrive then are delivered at once. It may be called again.
func (c *Cloud) Close(ctx context.Context) error {
	c.close.Do(func() { close(c.closing) })
	done := make(chan error, 1)
	go func() { done <- c.streams.close() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("emulator: close: %w", context.Cause(ctx))
	}
}

// pause waits for d, or until Close. The client's leaving does not shorten it: on AWS a
// request that has arrived is carried out although nobody waits for it any more.
func (c *Cloud) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.closing:
	}
}

// discard is the answer that a cut connection never carries.
type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

var errNoBucket = errors.New("emulator: no such bucket")
