package carrier

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"
)

var errUnwound = errors.New("carrier: the handler ended its goroutine")

// reportBudget is how long the Runtime API may take to accept an error.
const reportBudget = 5 * time.Second

// Not here: _X_AMZN_TRACE_ID. It is one for the whole process, however many invocations
// that has; a handler finds the trace in its Invocation.

// serveLambda takes invocations until ctx ends or the Runtime API fails, by as many loops
// as the process may have invocations.
func serveLambda(ctx context.Context, handler http.Handler, o Options) error {
	if handler == nil {
		return errors.Join(errNoHandler, ReportInitError(ctx, o.Getenv, errNoHandler))
	}
	n := 1
	if set, err := strconv.Atoi(o.Getenv(envConcurrency)); err == nil && set > 1 {
		n = set
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make([]error, n)
	var loops sync.WaitGroup
	for i := range n {
		loops.Go(func() {
			defer cancel() // one that ends takes the others along, when their handlers have returned
			l := &loop{link: link{address: o.Getenv(envRuntimeAPI)}, handler: handler, logger: o.Logger}
			failed[i] = errUnwound // what is left when the handler ends this goroutine
			failed[i] = l.run(ctx)
		})
	}
	loops.Wait()
	for _, err := range failed {
		if err != nil {
			return err // the others, if they have one, have the same
		}
	}
	return nil
}

// loop takes one invocation after the other. What it holds is used again by the next one.
type loop struct {
	link    link
	handler http.Handler
	logger  *slog.Logger

	buf   []byte // the event
	event event
	pen   pen
}

// run returns nil when ctx has ended.
func (l *loop) run(ctx context.Context) error {
	defer l.link.drop()
	for ctx.Err() == nil {
		inv, buf, err := l.link.next(ctx, l.buf)
		l.buf = buf
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		l.invoke(ctx, inv)
	}
	return nil
}

// invoke runs the handler on one event and leaves the link ready for the next. It returns
// when the handler has returned and the response has arrived, or cannot.
func (l *loop) invoke(ctx context.Context, inv invocation) {
	// Stopping does not break off what is under way: the deadline does.
	ctx = context.WithValue(context.WithoutCancel(ctx), invocationKey{}, &inv.Invocation)
	ctx, cancel := inv.limit(ctx)
	defer cancel()
	if err := l.event.decode(l.buf); err != nil {
		l.refuse(ctx, inv, err)
		return
	}
	r := l.event.request(ctx)
	body := r.Body // the handler may put another in its place
	w := &response{ctx: ctx, link: &l.link, pen: &l.pen, id: inv.RequestID, head: r.Method == http.MethodHead}
	l.handle(w, r)
	body.Close() //nolint:errcheck // never fails
	if err := w.done(inv.deadline); err != nil {
		l.logger.WarnContext(ctx, "response not delivered", slog.String("aws_request_id", inv.RequestID), slog.Any("cause", err))
	}
}

// limit gives ctx the invocation's deadline.
func (inv invocation) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if inv.deadline.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, inv.deadline)
}

// handle runs the handler. A panic is the end of the request, not of the process.
func (l *loop) handle(w *response, r *http.Request) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if cause != http.ErrAbortHandler { //nolint:errorlint // as net/http has it: the value itself, said on purpose
			l.logger.ErrorContext(r.Context(), "handler panicked", slog.String("aws_request_id", w.id),
				slog.Any("cause", cause), slog.String("stack", string(debug.Stack())))
		}
		w.abort(panicFailure(cause))
	}()
	l.handler.ServeHTTP(w, r)
}

// refuse reports an event that no request can be made of. Whoever sent it did not come
// through the Function URL, so there is no HTTP client to answer.
func (l *loop) refuse(ctx context.Context, inv invocation, cause error) {
	l.logger.ErrorContext(ctx, "invocation refused", slog.String("aws_request_id", inv.RequestID), slog.Any("cause", cause))
	ctx, cancel := context.WithTimeout(ctx, reportBudget)
	defer cancel()
	f := newFailure("Runtime.InvalidEvent", cause.Error())
	if err := l.link.post(ctx, "invocation/"+inv.RequestID+"/error", f.kind, f.json()); err != nil {
		l.logger.WarnContext(ctx, "error not reported", slog.String("aws_request_id", inv.RequestID), slog.Any("cause", err))
	}
}
