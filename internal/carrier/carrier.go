// Package carrier serves an http.Handler where the process runs: on the Lambda Runtime API
// behind a Function URL, or on a socket.
package carrier

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
)

const (
	// envRuntimeAPI holds the host and port of the Runtime API. It is set where, and only
	// where, the process is a Lambda function.
	envRuntimeAPI = "AWS_LAMBDA_RUNTIME_API"
	// envConcurrency is how many invocations one process takes at a time; 1 when not set.
	envConcurrency = "AWS_LAMBDA_MAX_CONCURRENCY"
)

// Options say where to serve.
type Options struct {
	Getenv func(string) string
	Listen string // address of the socket, where there is no Runtime API
	Logger *slog.Logger
}

// OnLambda reports whether Serve would use the Runtime API.
func OnLambda(getenv func(string) string) bool {
	return getenv != nil && getenv(envRuntimeAPI) != ""
}

// Serve answers requests with handler until ctx ends, and then returns nil when all that
// was under way has been finished.
//
// On Lambda a request's context carries the invocation's deadline as it is, the instant at
// which the process is killed, and an Invocation. It is not cancelled when the client
// leaves, because Lambda does not tell; a Write that fails does. The ResponseWriter sends
// the status and headers at the first Write or WriteHeader and each Write at once, and is a
// Finisher. The body has a method Bytes (see Buffered). The next invocation is only asked
// for when the handler has returned. A panic of the handler ends its request, never the
// process.
//
// It fails when the address cannot be listened on or the Runtime API does not answer; on
// Lambda the process should then exit. A binary built with the tag lambdaonly has no socket:
// that is what is deployed, a fiftieth smaller.
func Serve(ctx context.Context, handler http.Handler, o Options) error {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if OnLambda(o.Getenv) {
		return serveLambda(ctx, handler, o)
	}
	if handler == nil {
		return errNoHandler
	}
	return serveSocket(ctx, handler, o)
}

var errNoHandler = errors.New("carrier: no handler")

// Finisher is a ResponseWriter whose response can end before its handler does.
type Finisher interface {
	// FinishResponse ends the response: the client sees its end, and the handler may go on
	// with what the client need not wait for. It returns what kept the response from being
	// delivered, as Write would; calling it again returns the same. Later writes fail.
	FinishResponse() error
}

// Buffered is a request body that is in memory as a whole.
type Buffered interface {
	// Bytes returns what has not been read yet, without reading it. The bytes are the
	// carrier's and are overwritten once the handler has returned: whoever still holds them
	// then, like a transport that is sending them, must be done by then.
	Bytes() []byte
}

// Invocation is what Lambda says of a request besides the request itself.
type Invocation struct {
	RequestID   string // AWS's, as in the function's log
	TraceID     string // X-Ray's; may be empty
	FunctionARN string
}

type invocationKey struct{}

// InvocationOf returns the invocation whose request ctx belongs to; false off Lambda.
func InvocationOf(ctx context.Context) (*Invocation, bool) {
	i, ok := ctx.Value(invocationKey{}).(*Invocation)
	return i, ok
}
