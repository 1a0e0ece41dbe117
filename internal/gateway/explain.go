package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/health"
	"switchboard/internal/route"
	"switchboard/internal/wire"
)

// Ask is a request as it would be sent.
type Ask struct {
	Method string // empty: POST
	Path   string // with its query, if any
	Header http.Header
	Body   []byte
	// UserPath is whose request it is; nil: that of the client key in Header, if one is there.
	UserPath *string
}

// Explain says what the data plane would do with a request now, by the stages that the data
// plane itself runs, up to the plan. It calls no provider, writes nothing, turns no rotation
// on and takes no trial. It reads the pin once, and the alias of a previous response when
// there is one; a store that does not answer costs the pin, as for a request.
func (g *Gateway) Explain(ctx context.Context, ask Ask) Explanation {
	now := time.Now()
	e := &explainer{stored: &reading{store: g.Store}}
	x := &exchange{
		g: g.shadow(e.stored), w: &head{ResponseWriter: silent{}}, began: now, binding: affinity.Unbound(),
	}
	defer x.release()
	e.x = x
	method := ask.Method
	if method == "" {
		method = http.MethodPost
	}
	path, _, _ := strings.Cut(ask.Path, "?")
	address := &url.URL{Path: path}
	if parsed, err := url.ParseRequestURI(ask.Path); err == nil {
		address = parsed
	}
	e.Request.Method, e.Request.Path = method, address.Path
	op, known := g.operations[address.Path]
	if refusal := misplaced(method, address.Path, known); refusal != nil {
		return e.refused(refusal)
	}
	x.op = op
	e.Request.APISurface = string(op.Surface)
	e.tenant(ask)
	r := &http.Request{
		Method: method, URL: &url.URL{Path: address.Path, RawQuery: address.RawQuery}, Header: ask.Header,
		Body: io.NopCloser(bytes.NewReader(ask.Body)), ContentLength: int64(len(ask.Body)),
	}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if refusal := x.decode(r); refusal != nil {
		return e.refused(refusal)
	}
	x.identify(ctx)
	x.look(ctx)
	return e.explain(x.plan())
}

// misplaced is what the data plane answers where there is no completion.
func misplaced(method, path string, known bool) *wire.Error {
	switch {
	case !known:
		return &wire.Error{Status: http.StatusNotFound, Code: "not_found", Message: "There is no completion at this path; it is not routed."}
	case method != http.MethodPost:
		return &wire.Error{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: path + " takes POST."}
	}
	return nil
}

// shadow is a gateway like g that can only look: its store and its board have no way to
// write, it has no way to call, and its rotations are a copy, on which drawing is peeking.
func (g *Gateway) shadow(store *reading) *Gateway {
	s := &Gateway{Options: g.Options, operations: g.operations}
	s.Store, s.Aliases, s.Board = store, readingAliases{aliases: g.Aliases}, readingBoard{board: g.Board}
	s.Recorder, s.Transport = nil, nil
	s.binder = affinity.Binder{Store: store, Idle: g.IdleTTL, Budget: storeBudget}
	g.rotations.Range(func(name, counter any) bool {
		now := new(atomic.Uint64)
		now.Store(counter.(*atomic.Uint64).Load())
		s.rotations.Store(name, now)
		return true
	})
	return s
}

// reading is a store that can only look pins up, and remembers what it has seen. What it
// embeds is nil: a write would be a panic.
type reading struct {
	affinity.Store
	store affinity.Store
	pin   *affinity.Pin
}

func (r *reading) Lookup(ctx context.Context, ref affinity.Ref, now time.Time) (affinity.Pin, error) {
	pin, err := r.store.Lookup(ctx, ref, now)
	if err == nil {
		r.pin = &pin
	}
	return pin, err
}

type readingAliases struct {
	affinity.Aliases
	aliases affinity.Aliases
}

func (r readingAliases) LookupAlias(ctx context.Context, responseID string, now time.Time) (affinity.Alias, error) {
	return r.aliases.LookupAlias(ctx, responseID, now)
}

// readingBoard has no Report and no Probe.
type readingBoard struct {
	health.Board
	board health.Board
}

func (r readingBoard) View(now time.Time) health.View             { return r.board.View(now) }
func (r readingBoard) Refresh(ctx context.Context, now time.Time) { r.board.Refresh(ctx, now) }

// silent is where the headers of an answer go that nobody gets.
type silent struct{}

func (silent) Header() http.Header         { return http.Header{} }
func (silent) Write(b []byte) (int, error) { return len(b), nil }
func (silent) WriteHeader(int)             {}

// explainer puts an explanation together.
type explainer struct {
	Explanation
	x      *exchange
	stored *reading
}

// tenant finds out whose request it is.
func (e *explainer) tenant(ask Ask) {
	principal, ok := e.x.g.Auth.Authenticate(ask.Header)
	if ok && principal.Name != "" {
		e.Request.ClientKey = &principal.Name
	}
	path := principal.UserPath
	if ask.UserPath != nil {
		path = strings.TrimSuffix(*ask.UserPath, "/")
	}
	e.x.event.UserPath, e.Request.UserPath = path, path
}

// refused is the explanation of what never gets to a plan.
func (e *explainer) refused(refusal *wire.Error) Explanation {
	e.facts()
	e.Refusal = &Refusal{Status: refusal.Status, Code: refusal.Code, Message: refusal.Message, RetryAfterSeconds: refusal.RetryAfter}
	if e.DecisionReason == "" {
		e.DecisionReason = route.ReasonUnavailable
	}
	e.fill()
	return e.Explanation
}

// facts are what is known of the request, however far it got.
func (e *explainer) facts() {
	x := e.x
	if x.request == nil {
		return
	}
	f := &e.Request
	f.RequestedModel, f.Stream = x.request.Fields.Model, x.request.Fields.Stream
	f.SessionID, f.SessionSource, f.SessionKey = x.identity.ID, x.identity.Source, x.identity.Key
	f.EstimatedInputTokens = x.estimatedInput()
	if x.home != nil {
		f.PreviousResponse = &Target{Provider: x.home.Provider, KeyID: x.home.KeyID, Model: x.home.Model}
	}
}

// explain is the plan with its reasons.
func (e *explainer) explain(d route.Decision) Explanation {
	x := e.x
	e.DecisionReason, e.MaxAttempts = d.Reason, x.g.MaxAttempts
	e.Affinity = string(x.binding.State())
	all := append(d.Attempts[:len(d.Attempts):len(d.Attempts)], d.More()...)
	view := x.g.Board.View(x.began)
	scores := x.catalog.Scores(x.question())
	for i := range all {
		c := e.candidate(&all[i], view)
		c.Place, c.Score = i+1, scoreOf(scores, c.Target)
		e.Candidates = append(e.Candidates, c)
		if i < x.g.MaxAttempts {
			e.Attempts = append(e.Attempts, c.Target)
		}
	}
	for i := range d.Excluded {
		e.Candidates = append(e.Candidates, e.excluded(&d.Excluded[i]))
	}
	if e.stored.pin != nil {
		e.Pin = &PinFacts{View: e.stored.pin.View(), Usable: x.usable(e.stored.pin.Target)}
		e.Pin.Followed = len(all) > 0 && all[0].Pinned
	}
	refusal := x.unserved(d)
	if refusal == nil && len(all) == 0 {
		refusal = x.nothingLeft(d, nil, untried{})
	}
	if refusal != nil {
		return e.refused(refusal)
	}
	e.facts()
	e.writes(&all[0])
	e.fill()
	return e.Explanation
}

// writes are what the first attempt does to the pin, if it answers.
func (e *explainer) writes(first *route.Attempt) {
	x := e.x
	pin, to := x.binding.Pin(), x.target(*first)
	write := func(what, when string) *Write {
		e.Writes = append(e.Writes, Write{Write: what, When: when, Target: Target{Provider: to.Provider, KeyID: to.KeyID, Model: to.Model}})
		return &e.Writes[len(e.Writes)-1]
	}
	switch {
	case !x.op.Billed || !x.binding.Bound() || x.binding.State() == affinity.StateUnknown:
	case pin == nil:
		write(WriteClaim, BeforeCall)
		write(WriteConfirm, FirstOutput)
	case !x.pinFollows(to):
	case pin.Same(to):
		if !pin.Served {
			write(WriteConfirm, FirstOutput)
		}
	case !pin.Served:
		write(WriteMove, FirstOutput)
	default:
		w := write(WriteSwitch, FirstOutput)
		if nano, known := first.Model.Pricing.SwitchCost(pin.LastInputTokens); known {
			w.SwitchCostNanoUSD, w.SwitchCost = &nano, usd(nano)
		}
	}
}
