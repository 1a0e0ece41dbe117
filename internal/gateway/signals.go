package gateway

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"switchboard/internal/budget"
	"switchboard/internal/health"
	"switchboard/internal/route"
	"switchboard/internal/signal"
)

// Signals of attempts, for the adaptive strategy (DESIGN 8). While no virtual model is
// adaptive nothing here does anything.

// depart counts an attempt as under way.
func (x *exchange) depart(to route.Attempt, now time.Time) {
	x.flight.End(now)
	x.flight = signal.Flight{}
	if !x.op.Billed {
		return // to count tokens takes no time that matters to anything else
	}
	if target, watched := x.catalog.Watches(to); watched {
		x.flight = x.g.Signals.Begin(target, x.request.Fields.Stream, now)
	}
}

// observe takes what came of the attempt that is under way. Only its end is still to come.
func (x *exchange) observe(class health.Class, now time.Time) {
	switch class {
	case health.OK:
		x.flight.Answered(now)
	case health.Request, health.ClientGone: // say nothing of how the target does
	case health.Timeout:
		x.flight.Answered(now) // it takes at least that long
		x.flight.Failed(now)
	default:
		x.flight.Failed(now)
	}
}

// shareSignals tells the other instances what was seen here, beside the rest of the end. A
// request that follows its pin never does: it has two calls of the store, and no use for
// signals. Whoever needed a decision pays for telling what this instance has seen since.
func (x *exchange) shareSignals(ctx context.Context) {
	if x.catalog == nil || !x.catalog.Adaptive() || x.event.DecisionReason == route.ReasonAffinity || !x.g.Signals.Pending(time.Now()) {
		return
	}
	x.sharing.Go(func() {
		ctx, release := budget.With(ctx, shareBudget)
		defer release()
		x.guard(ctx, func(ctx context.Context) { x.g.Signals.Share(ctx, time.Now()) })
	})
}

// random is the chance in decisions, where no session gives it.
func random() uint64 { return rand.Uint64() }

// scoreOf is the score of a candidate, for an explanation; nil when it has none.
func scoreOf(scores []route.Score, of Target) *ScoreFacts {
	for i := range scores {
		s := &scores[i]
		if s.Provider != of.Provider || s.Model != of.Model {
			continue
		}
		facts := &ScoreFacts{
			Score: thousandths(s.Score), Confidence: thousandths(s.Confidence), InFlight: thousandths(s.InFlight),
			Failures: thousandths(s.Failures), PriceRatio: thousandths(s.PriceRatio),
		}
		if s.Confidence > 0 {
			ms := int64(s.TTFB * 1000)
			facts.TTFBMillis = &ms
		}
		return facts
	}
	return nil
}

func thousandths(f float64) float64 { return math.Round(f*1000) / 1000 }
