package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/budget"
	"switchboard/internal/proxy"
	"switchboard/internal/record"
	"switchboard/internal/route"
	"switchboard/internal/session"
	"switchboard/internal/signal"
	"switchboard/internal/wire"
)

// exchange is one request on its way through the stages.
type exchange struct {
	g     *Gateway
	w     *head
	op    wire.Operation
	began time.Time
	event record.Event
	cause string // of a failure, for the log alone

	catalog  *route.Catalog // what exists for this request, from its decision to its end
	request  *wire.Request
	body     *[]byte // pooled
	identity session.Identity
	home     *affinity.Target // where the previous response lives
	binding  *affinity.Binding

	answer    *proxy.Answer
	served    route.Attempt
	flight    signal.Flight // of the attempt under way
	streaming bool
	abort     bool
	ended     bool // the client has had the whole answer, and waits for nothing

	remembered string         // the response whose alias is written
	sharing    sync.WaitGroup // what carries health to the other instances
}

// head remembers the status that was sent.
type head struct {
	http.ResponseWriter
	status int
}

func (h *head) WriteHeader(status int) {
	if h.status == 0 {
		h.status = status
	}
	h.ResponseWriter.WriteHeader(status)
}

func (h *head) Write(b []byte) (int, error) {
	if h.status == 0 {
		h.status = http.StatusOK
	}
	return h.ResponseWriter.Write(b)
}

// SetWriteDeadline limits how long writes may wait for the client, where the carrier can.
func (h *head) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(h.ResponseWriter).SetWriteDeadline(t)
}

// Flush sends what is buffered, where the carrier buffers.
func (h *head) Flush() {
	if f, ok := h.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// end tells the carrier that the answer is whole, where it can: the client then does not
// wait for what the request leaves behind. An error says that nobody took the answer.
func (h *head) end() (ended bool, err error) {
	f, ok := h.ResponseWriter.(interface{ FinishResponse() error })
	if !ok {
		return false, nil
	}
	return true, f.FinishResponse()
}

// decode reads the body once and finds the routing fields.
func (x *exchange) decode(r *http.Request) *wire.Error {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return errEncoded()
	}
	body, err := x.read(r)
	if err != nil {
		return asError(err)
	}
	x.request, err = wire.Decode(x.op, r.URL.RawQuery, r.Header, body)
	if err != nil {
		return asError(err)
	}
	x.event.RequestedModel = x.request.Fields.Model
	x.event.Stream = x.request.Fields.Stream
	return nil
}

// read returns the body: the carrier's own memory where it has it whole, else a pooled copy.
func (x *exchange) read(r *http.Request) ([]byte, error) {
	if body, ok, err := wire.InMemory(r.Body, x.g.MaxBody); ok {
		return body, err
	}
	if x.body, _ = x.g.bodies.Get().(*[]byte); x.body == nil {
		x.body = new([]byte)
	}
	body, err := wire.ReadBody(r.Body, r.ContentLength, x.g.MaxBody, *x.body)
	if err == nil {
		*x.body = body
	}
	return body, err
}

// identify names the session, and finds where the previous response lives.
func (x *exchange) identify(ctx context.Context) {
	var alias *affinity.Alias
	if previous := x.request.Fields.PreviousResponse; previous != "" && x.op.Surface == wire.Responses {
		ctx, release := budget.With(ctx, storeBudget)
		defer release()
		found, err := x.g.Aliases.LookupAlias(ctx, session.Scope(x.event.UserPath, previous), x.began)
		if err == nil {
			alias, x.home = &found, &found.Target
		} else if !errors.Is(err, affinity.ErrNotFound) {
			x.cause = err.Error()
		}
	}
	x.identity = x.g.Identifier.Identify(x.request, x.event.UserPath, func(string) (session.Identity, bool) {
		if alias == nil || alias.SessionKey == "" {
			return session.Identity{}, false
		}
		return session.Identity{ID: alias.ClientSessionID, Key: alias.SessionKey, Source: "previous_response_id"}, true
	})
	x.event.SessionID, x.event.SessionKey, x.event.SessionSource = x.identity.ID, x.identity.Key, x.identity.Source
	if x.identity.ID != "" {
		h := x.w.Header()
		h["X-Switchboard-Session"] = []string{percent(x.identity.ID)}
		h["X-Switchboard-Session-Source"] = []string{x.identity.Source}
	}
}

// decide looks the pin up, plans, and claims the first target for a new session. A claim
// that another request won is adopted and planned again with its pin.
func (x *exchange) decide(ctx context.Context) (route.Decision, *wire.Error) {
	x.look(ctx)
	decision := x.plan()
	if e := x.unserved(decision); e != nil {
		return decision, e
	}
	if x.op.Billed && len(decision.Attempts) > 0 &&
		x.binding.Claim(ctx, x.target(decision.Attempts[0]), x.event.RequestID, x.event.UserPath, x.identity.ID, x.began) {
		decision = x.plan()
	}
	x.event.DecisionReason = decision.Reason
	x.event.DegradedProviders = degraded(decision)
	return decision, nil
}

// look reads what a plan depends on beside the request: the pin, what the other instances
// know of the providers' health, and what exists for the caller, which stays as it is now
// until the request ends.
func (x *exchange) look(ctx context.Context) {
	x.catalog = x.g.Catalog.For(x.event.UserPath)
	pins := x.bind(ctx)
	refreshing, release := budget.With(ctx, storeBudget)
	x.g.Board.Refresh(refreshing, x.began)
	x.g.Catalog.Refresh(refreshing, x.began) // after the lookup, which may have brought its news along
	x.catalog = x.g.Catalog.For(x.event.UserPath)
	if x.catalog.Adaptive() {
		x.g.Signals.Refresh(refreshing, x.began)
	}
	release()
	if now, _ := x.catalog.Pins(x.request.Fields.Model); now != pins {
		x.bind(ctx)
	}
}

// bind looks the pin up, if the model has pins.
func (x *exchange) bind(ctx context.Context) (pins bool) {
	model := x.request.Fields.Model
	pins, _ = x.catalog.Pins(model)
	x.binding = affinity.Unbound()
	if pins && x.identity.Key != "" {
		ref := affinity.Ref{SessionKey: x.identity.Key, Model: model}
		x.binding = x.g.binder.Lookup(ctx, ref, x.began, x.usable)
	}
	return pins
}

// unserved refuses what no configured provider could ever serve.
func (x *exchange) unserved(decision route.Decision) *wire.Error {
	switch {
	case !decision.Known:
		return errUnknownModel(x.request.Fields.Model)
	case !decision.Served:
		return errWrongSurface(x.request.Fields.Model, x.op.Surface)
	}
	return nil
}

func (x *exchange) plan() route.Decision { return x.catalog.Plan(x.question()) }

// question is all that a decision depends on.
func (x *exchange) question() route.Input {
	return route.Input{
		Model: x.request.Fields.Model, Surface: x.op.Surface, Native: !x.op.Billed, SessionKey: x.identity.Key,
		Pin: x.binding.Pin(), Home: x.home, Health: x.g.Board.View(x.began),
		EstimatedInput: x.estimatedInput(), Draw: x.draw,
		Stream: x.request.Fields.Stream, Signals: x.g.Signals.View(x.began), Random: x.g.Random,
	}
}

// bytesPerToken is the usual rule of thumb for English text and code; ranking only needs
// the proportion of input to output prices.
const bytesPerToken = 4

func (x *exchange) estimatedInput() int64 { return int64(len(x.request.Body)) / bytesPerToken }

func (x *exchange) usable(t affinity.Target) bool {
	return x.catalog.Configured(t)
}

// target is where a pin to an attempt points. Where keys take turns within a session it
// names none of them: moving between them is no switch.
func (x *exchange) target(a route.Attempt) affinity.Target {
	t := x.place(a)
	if !a.Provider.StickyKeys {
		t.KeyID, t.KeyPrint = "", ""
	}
	return t
}

// place is where an attempt goes, with its key: a response can be continued there alone.
func (x *exchange) place(a route.Attempt) affinity.Target {
	return affinity.Target{
		Provider: a.Provider.Identity, KeyID: a.Key.ID, KeyPrint: a.Key.Print,
		Model: a.Model.Upstream, Surface: string(x.op.Surface),
	}
}

// draw returns the next number of a rotation. What is not billed has rotations of its own:
// a count_tokens before each first turn would else take every second place.
func (x *exchange) draw(rotation string) uint64 {
	if !x.op.Billed {
		rotation = "unbilled:" + rotation
	}
	return x.g.draw(rotation)
}

func (g *Gateway) draw(rotation string) uint64 {
	counter, ok := g.rotations.Load(rotation)
	if !ok {
		counter, _ = g.rotations.LoadOrStore(rotation, new(atomic.Uint64))
	}
	return counter.(*atomic.Uint64).Add(1) - 1
}

// release gives back what the exchange holds.
func (x *exchange) release() {
	x.close()
	x.releaseBody()
}

// releaseBody gives the request's memory to the next one. Nothing may read it any more.
func (x *exchange) releaseBody() {
	if x.body != nil && cap(*x.body) <= maxPooledBody {
		*x.body = (*x.body)[:0]
		x.g.bodies.Put(x.body)
	}
	x.body, x.request = nil, nil
}

func (x *exchange) close() {
	if x.answer != nil {
		x.answer.Close()
		x.answer = nil
	}
}

// maxPooledBody keeps one giant request from holding memory for good.
const maxPooledBody = 1 << 20

func stack() string { return string(debug.Stack()) }

func percent(id string) string {
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c >= 0x7f || c == '%' {
			return url.PathEscape(id)
		}
	}
	return id
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
