package dynamo

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

const (
	// attempts fit in the 250 ms that a request gives its store: whoever cannot answer twice
	// is left alone.
	attempts   = 2
	minBackoff = 10 * time.Millisecond
	maxBackoff = 25 * time.Millisecond
)

// NewClient returns a client with the retry rules of a request that waits: two attempts,
// hardly any pause, a new connection for the second when the first one broke, as it does
// after a freeze.
func NewClient(cfg aws.Config) *dynamodb.Client {
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.HTTPClient = renewing(o.HTTPClient)
		o.RetryMaxAttempts = 0 // else it would wrap the retryer
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts = attempts
			r.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) {
				return minBackoff + rand.N(maxBackoff-minBackoff), nil
			})
			// A bucket would refuse the retries of one request for the faults of others.
			r.RateLimiter = ratelimit.None
			r.Retryables = append(r.Retryables, retry.IsErrorRetryableFunc(retryable))
		})
		o.EndpointDiscovery.EnableEndpointDiscovery = aws.EndpointDiscoveryDisabled
		o.AccountIDEndpointMode = aws.AccountIDEndpointModeDisabled
		// The clock is taken for right. The correction measures an answer's date against the
		// time it was read: after a freeze in between it would sign with a wrong time.
		o.DisableClockSkewCorrection = true
	})
}

// retryable adds what a freeze does (S-LAM-06): a signature that is too old, and pooled
// connections that have died.
func retryable(err error) aws.Ternary {
	var coded interface{ ErrorCode() string }
	if errors.As(err, &coded) {
		switch coded.ErrorCode() {
		case "InvalidSignatureException", "RequestTimeTooSkewed", "RequestExpired":
			return aws.TrueTernary
		}
		return aws.UnknownTernary
	}
	if broken(err) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

func broken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "server closed idle connection") // net/http does not export it
}

// renewer drops the pooled connections when one of them turns out to be dead: they were
// frozen together, and a retry on another of them would fail as well.
type renewer struct {
	client dynamodb.HTTPClient
	drop   func()
}

func renewing(client dynamodb.HTTPClient) dynamodb.HTTPClient {
	if client == nil {
		return nil
	}
	if pool, ok := client.(interface{ CloseIdleConnections() }); ok {
		return &renewer{client: client, drop: pool.CloseIdleConnections}
	}
	return client
}

// Do implements dynamodb.HTTPClient.
func (r *renewer) Do(req *http.Request) (*http.Response, error) {
	resp, err := r.client.Do(req)
	if err != nil && broken(err) && !errors.Is(err, context.Canceled) {
		r.drop()
	}
	return resp, err
}
