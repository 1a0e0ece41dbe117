// Package gateway runs one request through the stages and always leaves one event.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"switchboard/internal/affinity"
	"switchboard/internal/auth"
	"switchboard/internal/budget"
	"switchboard/internal/health"
	"switchboard/internal/proxy"
	"switchboard/internal/record"
	"switchboard/internal/route"
	"switchboard/internal/session"
	"switchboard/internal/signal"
	"switchboard/internal/wire"
)

// Catalogs yields what can be asked for, as it is now. A request takes one and keeps it.
type Catalogs interface {
	// Refresh takes over what other instances have changed, if it is time to ask. It waits no
	// longer than ctx, and leaves everything as it was when there is no answer.
	Refresh(ctx context.Context, now time.Time)
	// For is what exists for callers with that user path. It costs no I/O.
	For(userPath string) *route.Catalog
}

var _ Catalogs = (*route.Catalog)(nil)

// Options are what a gateway is made of. All are needed, but for switches.
type Options struct {
	Catalog     Catalogs
	Identifier  *session.Identifier
	Auth        *auth.Authenticator
	Store       affinity.Store
	Aliases     affinity.Aliases
	Recorder    record.Recorder
	Board       health.Board
	Signals     *signal.Table // nil: one of this gateway alone
	Random      func() uint64 // for decisions of adaptive; nil: real chance
	Transport   http.RoundTripper
	Timeouts    proxy.Timeouts
	MaxAttempts int           // calls to providers per request
	MaxBody     int64         // bytes of a request body
	OnlyVirtual bool          // GET /v1/models lists virtual models alone
	IdleTTL     time.Duration // of a pin
	Logger      *slog.Logger
}

const (
	// storeBudget is how long one store call may keep a request waiting (DESIGN 6).
	storeBudget = 250 * time.Millisecond
	// tailBudget is the same when its client has had the whole answer.
	tailBudget = 2 * time.Second
)

const (
	// recordBudget is how long a request waits to hand over its event.
	recordBudget = 5 * time.Second
	// shareBudget is how long what it learned of providers may take to the other instances.
	shareBudget = time.Second
	// relayMargin is how long before the carrier's deadline an answer is stopped: what is
	// left must be enough to tell the client and to hand over the event (DESIGN 7).
	relayMargin = 5 * time.Second
	// killMargin is how long before that deadline, which is the instant of the kill on
	// Lambda, everything must be over.
	killMargin = 500 * time.Millisecond
)

// Gateway is the data plane as an http.Handler.
type Gateway struct {
	Options
	client     *proxy.Client
	binder     affinity.Binder
	operations map[string]wire.Operation
	rotations  sync.Map // rotation name -> *atomic.Uint64
	bodies     sync.Pool
}

// New returns the data plane.
func New(o Options) *Gateway {
	if o.Signals == nil {
		o.Signals = signal.NewTable()
	}
	if o.Random == nil {
		o.Random = random
	}
	return &Gateway{
		Options:    o,
		client:     proxy.NewClient(o.Transport, o.Timeouts),
		binder:     affinity.Binder{Store: o.Store, Idle: o.IdleTTL, Budget: storeBudget},
		operations: wire.Operations(),
	}
}

// ServeHTTP answers one request. It recovers from every panic below it; the only panic
// that leaves it is http.ErrAbortHandler, when an answer broke in a way that only a broken
// connection can tell the client.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if op, ok := g.operations[r.URL.Path]; ok && r.Method == http.MethodPost {
		if g.serve(w, r, op) {
			panic(http.ErrAbortHandler)
		}
		return
	}
	g.serveOther(w, r)
}

// serve runs one data-plane request through the stages. abort asks for a broken connection.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, op wire.Operation) (abort bool) {
	now := time.Now()
	x := &exchange{g: g, w: &head{ResponseWriter: w}, op: op, began: now, binding: affinity.Unbound()}
	x.event.EventID = newULID(now)
	x.event.RequestID = x.event.EventID
	x.event.CreatedAt = now.UnixMilli()
	x.event.APISurface = string(op.Surface)
	x.event.UsageQuality = record.UsageUnknown
	w.Header()["X-Request-Id"] = []string{x.event.RequestID}
	defer func() {
		if cause := recover(); cause != nil {
			x.panicked(r.Context(), cause)
		}
		if !x.abort {
			x.end()
		}
		x.finish(r.Context())
		abort = x.abort
	}()
	ctx, release := beforeDeadline(r.Context())
	defer release()
	if e := x.run(ctx, r); e != nil {
		x.refuse(e)
	}
	return false
}

// beforeDeadline is a context that ends in time to tell the client, where the carrier has a
// deadline. A function with a very short time limit has half of it.
func beforeDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, limited := ctx.Deadline()
	if !limited {
		return ctx, func() {}
	}
	margin := min(relayMargin, time.Until(deadline)/2)
	return context.WithDeadlineCause(ctx, deadline.Add(-margin), proxy.ErrDeadline)
}

// afterwards is a context for what is left to do when the answer is over, however it ended.
func afterwards(ctx context.Context) (context.Context, func()) {
	limit := recordBudget
	if deadline, limited := ctx.Deadline(); limited {
		limit = min(limit, time.Until(deadline)-killMargin)
	}
	return budget.With(context.WithoutCancel(ctx), limit)
}

// run takes the request through decode, authenticate, identify, decide, claim, relay and
// commit. What it returns is for the client.
func (x *exchange) run(ctx context.Context, r *http.Request) *wire.Error {
	principal, ok := x.g.Auth.Authenticate(r.Header)
	if !ok {
		return errUnauthenticated()
	}
	x.event.UserPath = principal.UserPath
	if e := x.decode(r); e != nil {
		return e
	}
	x.identify(ctx)
	decision, e := x.decide(ctx)
	if e != nil {
		return e
	}
	answer, e := x.attempt(ctx, decision)
	if answer == nil {
		x.binding.Release(ctx)
		return e
	}
	x.relay(ctx, answer)
	return nil
}

// end tells the carrier that the answer is whole. A carrier that cannot see its client leave
// may learn only now that nobody has the answer: that is not the provider's failure.
func (x *exchange) end() {
	ended, err := x.w.end()
	x.ended = ended
	if err != nil && x.event.Outcome == record.OutcomeOK {
		x.event.Outcome = record.OutcomeCancelled
		x.cause = err.Error()
	}
}

// finish writes what the request leaves: the pin's usage, the response's alias and the event.
func (x *exchange) finish(ctx context.Context) {
	ctx, release := afterwards(ctx)
	defer release()
	x.event.LatencyMillis = time.Since(x.began).Milliseconds() // to the last byte, not to the last entry
	x.flight.End(time.Now())
	x.shareSignals(ctx)
	x.guard(ctx, x.book)
	x.event.Affinity = string(x.binding.State())
	x.event.ResponseStatus = x.w.status
	if err := x.binding.Err(); err != nil {
		x.g.Logger.WarnContext(ctx, "affinity store fault", slog.String("request_id", x.event.RequestID), slog.Any("cause", err))
	}
	line := []slog.Attr{slog.Any("event", &x.event), slog.String("cause", x.cause)}
	if x.cause == "" {
		line = line[:1]
	}
	x.g.Logger.LogAttrs(ctx, slog.LevelInfo, "request", line...)
	x.guard(ctx, x.record)
	x.sharing.Wait()
	x.release()
}

// record hands the event over; one that is not taken is in the log whole.
func (x *exchange) record(ctx context.Context) {
	err := errors.New("the recorder panicked")
	defer func() {
		if err != nil {
			x.g.Logger.ErrorContext(ctx, "undelivered routing event", slog.Any("undelivered_event", &x.event), slog.Any("cause", err))
		}
	}()
	err = x.g.Recorder.Record(ctx, &x.event)
}

// guard keeps a panic in the bookkeeping from the caller: the client has been answered.
func (x *exchange) guard(ctx context.Context, do func(context.Context)) {
	defer func() {
		if cause := recover(); cause != nil {
			x.logPanic(ctx, cause)
		}
	}()
	do(ctx)
}

func (x *exchange) logPanic(ctx context.Context, cause any) {
	x.g.Logger.ErrorContext(ctx, "panic", slog.String("request_id", x.event.RequestID), slog.String("cause", fmt.Sprint(cause)), slog.String("stack", stack()))
}

// panicked turns a panic below the gateway into one answer in the surface's shape, or one
// in-band error when the answer is under way.
func (x *exchange) panicked(ctx context.Context, cause any) {
	x.logPanic(ctx, cause)
	x.event.Outcome = record.OutcomeUpstreamError
	e := &wire.Error{Status: http.StatusInternalServerError, Type: "api_error", Code: "internal_error", Message: "switchboard failed on this request; request id " + x.event.RequestID}
	defer func() {
		if recover() != nil { // the writer itself is broken
			x.abort = true
		}
	}()
	x.close()
	x.body = nil // what panicked may still hold it
	x.binding.Release(ctx)
	switch {
	case x.w.status == 0:
		wire.WriteError(x.w, x.op.Surface, e)
	case x.streaming:
		x.w.Write(append([]byte("\n\n"), wire.StreamError(x.op.Surface, e)...)) //nolint:errcheck // the client may be gone
	default:
		x.abort = true
	}
}

func newULID(now time.Time) string {
	return ulid.MustNewDefault(now).String()
}
