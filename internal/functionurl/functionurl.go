// Package functionurl is a Lambda Function URL with its Runtime API on this machine, in front
// of processes of a real bootstrap binary.
//
// A request becomes a Function URL event (payload 2.0), is handed to an execution environment
// that has asked for one, and what the runtime posts back goes to the client piece by piece.
// An environment is one process with a Runtime API of its own on loopback; it serves one request
// at a time, or Options.MaxConcurrency.
//
// Not here: authentication (AWS_IAM), CORS, the URL's BUFFERED mode as a setting (a buffered
// answer is understood whenever a runtime sends one), the 200 MB limit and the bandwidth of
// streams, events for extensions (an extension may register and then waits for ever, which is
// what asks for SIGTERM at the end), and X-Ray.
package functionurl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// EventLimit is the most bytes that an event may have; AWS counts the JSON, not the body.
const EventLimit = 6 << 20

const (
	defaultTimeout     = 3 * time.Second  // as on AWS
	defaultInitTimeout = 10 * time.Second // as on AWS
	defaultMemory      = 128              // MB, as on AWS
	defaultRegion      = "us-east-1"
	defaultName        = "function"
)

// ErrClosed is the answer of a Function that was closed.
var ErrClosed = errors.New("functionurl: closed")

// Options say which program runs, and how. The zero value of all but Bootstrap is usable.
type Options struct {
	Bootstrap string   // the program
	Args      []string // its arguments; on AWS there are none
	// Env are the function's variables, "NAME=value". They win over those that Lambda sets,
	// except AWS_LAMBDA_RUNTIME_API. Nothing of this process's environment is passed on.
	Env []string
	// TaskRoot is the working directory and LAMBDA_TASK_ROOT. Default: where Bootstrap lies.
	TaskRoot string
	Name     string // AWS_LAMBDA_FUNCTION_NAME, default "function"
	Handler  string // _HANDLER, default "bootstrap"
	Region   string // default us-east-1
	MemoryMB int    // AWS_LAMBDA_FUNCTION_MEMORY_SIZE, told but not enforced; default 128
	// Domain is the requestContext.domainName and the Host that the function sees. Default: the
	// Host of the request, so that links and same-origin checks hold on this machine.
	Domain string

	Environments   int           // how many processes at most, default 1; started when needed
	MaxConcurrency int           // requests at a time in one process, default 1
	Timeout        time.Duration // of an invocation, from its delivery to the next; default 3 s
	InitTimeout    time.Duration // from the start to the first next; default 10 s

	// Queue makes a request wait for an environment where AWS would answer 429.
	Queue bool
	// Spread gives a request to the environment that has rested longest, and starts all before
	// it uses one twice. Default: the first that is free.
	Spread bool
	// Freeze stops a process (SIGSTOP) as soon as it has asked for its next event and there is
	// none, and lets it go on with the next event.
	Freeze bool
	// FailWrites breaks the runtime's connection when the client has left. AWS does not: the
	// function writes on, unheard.
	FailWrites bool
	// Base64 sends every body in base64, also text.
	Base64 bool

	// Logs gets what the processes print, and what Lambda would log of their end, line by line,
	// each behind its environment's number. Writes come one at a time.
	Logs io.Writer
	// OnInvoke is called before an event is handed over, on the request's way: be quick.
	OnInvoke func(Invocation)
}

// Invocation is what OnInvoke is told.
type Invocation struct {
	ID          string
	Environment int
	PID         int
	Cold        bool // the first of its process
}

// Function is a running Function URL: an http.Handler that must be closed.
type Function struct {
	options Options
	logs    *logs
	buffers sync.Pool // *[]byte: bodies, events, pieces

	mu        sync.Mutex
	slots     []slot
	queue     []*invocation // waiting for an environment, first come first served
	turn      uint64        // counts invocations, to know which environment rested longest
	closed    bool
	throttled int
	running   sync.WaitGroup // processes and all that belongs to them
	unwatch   func() bool
}

var (
	_ http.Handler = (*Function)(nil)
	_ io.Closer    = (*Function)(nil)
)

// Start checks the options and returns a Function that starts processes when requests come.
// When ctx ends its processes end too; Close must still be called, to wait for that.
func Start(ctx context.Context, o Options) (*Function, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	f := &Function{options: o, logs: &logs{to: o.Logs}, slots: make([]slot, o.Environments)}
	f.buffers.New = func() any { return new([]byte) }
	f.unwatch = context.AfterFunc(ctx, f.shutDown)
	return f, nil
}

func (o Options) complete() (Options, error) {
	path, err := filepath.Abs(o.Bootstrap)
	if err != nil {
		return o, fmt.Errorf("functionurl: bootstrap: %w", err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return o, fmt.Errorf("functionurl: bootstrap: %w", err)
	case !info.Mode().IsRegular():
		return o, fmt.Errorf("functionurl: bootstrap %s is not a file", o.Bootstrap)
	case o.Freeze && !canFreeze:
		return o, errors.New("functionurl: processes cannot be frozen on this system")
	}
	o.Bootstrap = path
	if o.TaskRoot, err = filepath.Abs(or(o.TaskRoot, filepath.Dir(path))); err != nil {
		return o, fmt.Errorf("functionurl: task root: %w", err)
	}
	o.Name, o.Handler, o.Region = or(o.Name, defaultName), or(o.Handler, "bootstrap"), or(o.Region, defaultRegion)
	o.MemoryMB = max(or(o.MemoryMB, defaultMemory), 1)
	o.Environments, o.MaxConcurrency = max(o.Environments, 1), max(o.MaxConcurrency, 1)
	o.Timeout, o.InitTimeout = or(o.Timeout, defaultTimeout), or(o.InitTimeout, defaultInitTimeout)
	return o, nil
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// Kill ends the process of environment i at once (SIGKILL) and returns when it is gone: the
// next request starts another. An environment without a process is an error.
func (f *Function) Kill(i int) error {
	if i < 0 || i >= len(f.slots) {
		return fmt.Errorf("functionurl: no environment %d, there are %d", i, len(f.slots))
	}
	f.mu.Lock()
	e := f.slots[i].env
	if e != nil {
		e.doom("")
	}
	f.mu.Unlock()
	if e == nil {
		return fmt.Errorf("functionurl: environment %d has no process", i)
	}
	<-e.gone
	return nil
}

// Close ends all processes and returns when nothing of them is left. Requests in flight end as
// they would if their environment died. It may be called more than once.
func (f *Function) Close() error {
	f.unwatch()
	f.shutDown()
	f.running.Wait()
	return nil
}

func (f *Function) shutDown() {
	f.mu.Lock()
	f.closed = true
	waiting := f.queue
	f.queue = nil
	for i := range f.slots {
		if e := f.slots[i].env; e != nil {
			e.end()
		}
	}
	f.mu.Unlock()
	for _, inv := range waiting {
		inv.finish(ErrClosed)
	}
}

// buffer lends a byte slice of length 0 and at least size bytes of room.
func (f *Function) buffer(size int) *[]byte {
	b := f.buffers.Get().(*[]byte)
	if cap(*b) < size {
		*b = make([]byte, 0, size)
	}
	*b = (*b)[:0]
	return b
}

func (f *Function) giveBack(b *[]byte) { f.buffers.Put(b) }
