package gateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/budget"
	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/proxy"
	"switchboard/internal/record"
	"switchboard/internal/route"
	"switchboard/internal/wire"
)

// failed is an attempt that gave the client nothing.
type failed struct {
	route.Attempt
	*proxy.Failure
}

// attempt tries the decision's targets until one gives output. It returns an answer to
// relay, or what the client is told. Both are nil when the client has been answered already.
func (x *exchange) attempt(ctx context.Context, decision route.Decision) (*proxy.Answer, *wire.Error) {
	var failures []failed
	var untranslatable *wire.Error
	queue := queue{now: decision.Attempts, more: decision.More}
	for calls := 0; calls < x.g.MaxAttempts; {
		target, ok := queue.next(func(a route.Attempt) bool { return x.onTrialElsewhere(ctx, a) })
		if !ok {
			break
		}
		calls++
		answer, failure := x.call(ctx, target)
		if answer != nil {
			x.served, x.answer, x.streaming = target, answer, answer.Stream
			if len(failures) > 0 || untranslatable != nil {
				x.event.DecisionReason = route.ReasonFallback
			}
			return answer, nil
		}
		if failure.Untranslatable != nil { // not asked, and not to be blamed
			calls--
			if untranslatable == nil {
				untranslatable = failure.Untranslatable
			}
			continue
		}
		failures = append(failures, failed{target, failure})
		x.blame(failure.Cause, target.Key)
		switch failure.Class {
		case health.ClientGone:
			return nil, x.givenUp(failure.Cause)
		case health.Request:
			x.named(target)
			return nil, x.relayRefusal(failure)
		}
		queue.learn(target, failure.Class)
	}
	if untranslatable != nil && len(failures) == 0 && !x.mayBeServed(decision) {
		return nil, untranslatable
	}
	x.event.DecisionReason = route.ReasonUnavailable
	return nil, x.nothingLeft(decision, failures, queue.rest())
}

// mayBeServed tells whether a request that cannot be translated will be served when somebody
// who speaks its surface is well again.
func (x *exchange) mayBeServed(decision route.Decision) bool {
	for _, p := range x.catalog.Providers() {
		if p.Speaks(x.op.Surface) && slices.Contains(degraded(decision), p.Identity) {
			return true
		}
	}
	return false
}

// givenUp ends a request that its client or our own deadline has ended: no provider is to blame.
func (x *exchange) givenUp(cause error) *wire.Error {
	if errors.Is(cause, proxy.ErrDeadline) {
		x.event.Outcome = record.OutcomeTimeout
		return errDeadline()
	}
	x.event.Outcome = record.OutcomeCancelled
	return errClientGone()
}

// call makes one attempt and reports what came of it.
func (x *exchange) call(ctx context.Context, to route.Attempt) (*proxy.Answer, *proxy.Failure) {
	began := time.Now()
	x.depart(to, began)
	answer, failure := x.g.client.Open(ctx, x.request, proxy.Target{
		Provider: to.Provider, Key: to.Key, Model: to.Model, As: to.As, Mixed: to.Mixed, Hint: x.hint(to),
	})
	now := time.Now()
	entry := record.Attempt{
		Provider: to.Provider.Identity, KeyID: to.Key.ID, Model: to.Model.Upstream,
		LatencyMillis: now.Sub(began).Milliseconds(),
	}
	if failure != nil && failure.Untranslatable != nil {
		return nil, failure
	}
	if to.As != x.op.Surface {
		entry.Surface = string(to.As)
	}
	outcome := health.OK
	var retryAfter time.Duration
	if failure != nil {
		outcome, retryAfter = failure.Class, failure.RetryAfter
		entry.Status, entry.Error = failure.Status, string(outcome)
		if errors.Is(failure.Cause, proxy.ErrDeadline) {
			entry.Error = string(health.Timeout) // ours, so that nobody is degraded; the client has waited
		}
	} else {
		entry.Status = answer.Status()
	}
	x.event.Attempts = append(x.event.Attempts, entry)
	x.report(ctx, to, outcome, retryAfter, now)
	return answer, failure
}

// hint names the session to a provider that is to know it. The store's key is what is
// hashed: two tenants with one id are two sessions.
func (x *exchange) hint(to route.Attempt) string {
	if !to.Provider.SessionHint {
		return ""
	}
	return to.Key.SessionHint(x.identity.Key)
}

func (x *exchange) report(ctx context.Context, to route.Attempt, class health.Class, retryAfter time.Duration, now time.Time) {
	x.observe(class, now)
	x.g.Board.Report(health.Outcome{
		Provider: to.Provider.Identity, KeyID: to.Key.ID, Model: to.Model.Upstream, Class: class,
		Subscription: to.Provider.Billing == provider.Subscription, RetryAfter: retryAfter,
	}, now)
	x.share(ctx)
}

// share carries what was reported to the other instances, beside the request: they need it
// now, and this answer may go on for minutes. finish waits for it.
func (x *exchange) share(ctx context.Context) {
	if !x.g.Board.Pending() {
		return
	}
	x.sharing.Go(func() {
		ctx, release := budget.With(context.WithoutCancel(ctx), shareBudget)
		defer release()
		x.guard(ctx, func(ctx context.Context) { x.g.Board.Share(ctx, time.Now()) })
	})
}

// probeLease is how long a trial may take before another request may try.
const probeLease = time.Minute

// onTrialElsewhere tells whether an attempt must be left out now: its trial belongs to
// another request.
func (x *exchange) onTrialElsewhere(ctx context.Context, a route.Attempt) bool {
	if !a.Trial {
		return false
	}
	ctx, release := budget.With(ctx, storeBudget)
	defer release()
	return !x.g.Board.Probe(ctx, a.Provider.Identity, a.Key.ID, a.Model.Upstream, time.Now(), probeLease)
}

// relay commits to the answer and copies it to the client.
func (x *exchange) relay(ctx context.Context, answer *proxy.Answer) {
	to := x.target(x.served)
	x.named(x.served)
	if x.op.Billed && x.pinFollows(to) {
		x.event.Switched = x.binding.Commit(ctx, affinity.Commitment{
			To: to, RequestID: x.event.RequestID, UserPath: x.event.UserPath, ClientSessionID: x.identity.ID,
			SwitchCost: func(read affinity.Pin) int64 {
				cost, known := x.served.Model.Pricing.SwitchCost(read.LastInputTokens)
				if known {
					x.event.SwitchCostNanoUSD = &cost
				}
				return cost
			},
		}, time.Now())
	}
	if !x.event.Switched {
		x.event.SwitchCostNanoUSD = nil
	}
	x.remember(ctx, answer.ResponseID())
	h := x.w.Header()
	if pin := x.binding.Pin(); pin != nil {
		count := pin.SwitchCount
		x.event.SwitchCount = &count
		h["X-Switchboard-Switches"] = []string{itoa(count)}
	}
	h["X-Switchboard-Decision"] = []string{x.event.DecisionReason}
	x.translated(answer.Translated())
	ttft := time.Since(x.began).Milliseconds()
	x.event.TTFTMillis = &ttft
	if answer.ReleaseRequest() {
		x.releaseBody() // a stream may go on for minutes
	}
	answer.WriteHeader(x.w)
	ending := answer.Copy(x.w)
	x.abort = ending.Abort
	x.settle(ctx, ending)
}

// pinFollows tells whether the pin may follow to where the request was served. A request
// that had to go where its previous response lives says nothing about where the rest of
// its session belongs.
func (x *exchange) pinFollows(to affinity.Target) bool {
	pin := x.binding.Pin()
	return x.home == nil || pin == nil || pin.Same(to)
}

// settle books how the answer ended.
func (x *exchange) settle(ctx context.Context, ending proxy.Ending) {
	x.blame(ending.Cause, x.served.Key)
	switch {
	case ending.Class == health.OK:
		x.event.Outcome = record.OutcomeOK
		return
	case errors.Is(ending.Cause, proxy.ErrDeadline):
		x.event.Outcome = record.OutcomeTimeout
		return // our time is up, which says nothing of the provider
	case ending.Class == health.ClientGone:
		x.event.Outcome = record.OutcomeCancelled
		return
	case ending.Class == health.Timeout:
		x.event.Outcome = record.OutcomeTimeout
	default:
		x.event.Outcome = record.OutcomeUpstreamError
	}
	if n := len(x.event.Attempts); n > 0 {
		x.event.Attempts[n-1].Error = string(ending.Class)
	}
	x.report(ctx, x.served, ending.Class, ending.Failure.RetryAfter, time.Now())
}

// blame keeps a cause for the log. Transport errors quote what upstream sent, which may be
// our key.
func (x *exchange) blame(cause error, key provider.Key) {
	if cause != nil {
		x.cause = string(provider.Redact([]byte(cause.Error()), []string{key.Text}))
	}
}

// named says in the event and the headers who the request went to.
func (x *exchange) named(a route.Attempt) {
	x.event.Provider, x.event.KeyID = a.Provider.Identity, a.Key.ID
	x.event.ModelName, x.event.BillingModel = a.Model.Upstream, string(a.Provider.Billing)
	h := x.w.Header()
	h["X-Switchboard-Provider"] = []string{percent(a.Provider.Identity)}
	h["X-Switchboard-Model"] = []string{percent(a.Model.Upstream)}
}

// translated says in the headers what a translation was from and to, and what it left out.
func (x *exchange) translated(how string) {
	if how != "" {
		x.w.Header()["X-Switchboard-Translated"] = []string{how}
	}
}

// relayRefusal passes on an answer that says the request itself is wrong: no failover.
func (x *exchange) relayRefusal(f *proxy.Failure) *wire.Error {
	x.event.Outcome = record.OutcomeUpstreamError
	x.w.Header()["X-Switchboard-Decision"] = []string{x.event.DecisionReason}
	x.translated(f.Translated)
	if !f.JSON {
		return &wire.Error{Status: f.Status, Type: typeOf(f.Status), Message: "The provider refused the request: " + http.StatusText(f.Status) + "."}
	}
	x.passOn(f)
	return nil
}

// passOn sends an upstream's error answer as it is, our keys taken out.
func (x *exchange) passOn(f *proxy.Failure) {
	proxy.CopyHeaders(x.w.Header(), f.Header, "")
	h := x.w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{itoa(int64(len(f.Body)))}
	x.w.WriteHeader(f.Status)
	x.w.Write(f.Body) //nolint:errcheck // the client may be gone; nothing is left to do
}
