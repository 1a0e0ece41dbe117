package gateway

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/budget"
	"switchboard/internal/provider"
	"switchboard/internal/record"
	"switchboard/internal/session"
	"switchboard/internal/wire"
)

// aliasTTL is how long a response is remembered (DESIGN 6).
const aliasTTL = 24 * time.Hour

// book writes the usage of a served request into the event and onto the pin, and
// remembers where a response lives.
func (x *exchange) book(ctx context.Context) {
	if x.event.Outcome == "" {
		x.event.Outcome = record.OutcomeUpstreamError
	}
	if x.answer == nil || !x.op.Billed {
		return
	}
	usage := x.answer.Usage()
	delta := x.account(usage)
	// Also when the pin points elsewhere: the row's totals are the session's, and one whose
	// request lost a race, or went home to its previous response, is in use.
	now := time.Now()
	x.settlePin(ctx, now)
	x.binding.AddUsage(ctx, delta, now, x.countBudget(ctx, now))
	x.remember(ctx, x.answer.ResponseID())
}

// settlePin writes a switch again to which the store did not answer before the first byte:
// the row may have counted it already, and then this request's event must say so.
func (x *exchange) settlePin(ctx context.Context, now time.Time) {
	before := x.binding.Pin()
	if x.binding.Settle(ctx, now, x.countBudget(ctx, now)) {
		x.event.Switched = true
	} else if !x.event.Switched {
		x.event.SwitchCostNanoUSD = nil
	}
	if pin := x.binding.Pin(); pin != nil && pin != before {
		count := pin.SwitchCount
		x.event.SwitchCount = &count
	}
}

// countBudget is how long the store may take to count: longer where no client waits for it
// any more, and at most half of what is left, as the event needs the rest.
func (x *exchange) countBudget(ctx context.Context, now time.Time) time.Duration {
	limit := storeBudget
	if x.ended {
		limit = tailBudget
	}
	if deadline, limited := ctx.Deadline(); limited {
		limit = min(limit, deadline.Sub(now)/2)
	}
	return limit
}

// account puts usage and its price into the event. What is unknown stays nil.
func (x *exchange) account(u provider.Usage) affinity.Usage {
	x.event.UsageQuality = u.Quality
	if u.Quality == record.UsageUnknown || u.Quality == "" {
		x.event.UsageQuality = record.UsageUnknown
		return affinity.Usage{}
	}
	x.event.InputTokens, x.event.CachedInputTokens, x.event.CacheWriteTokens = &u.Input, &u.CachedInput, &u.CacheWrite
	x.event.OutputTokens, x.event.ReasoningTokens = &u.Output, &u.Reasoning
	delta := affinity.Usage{InputTokens: u.Input, OutputTokens: u.Output, CachedTokens: u.CachedInput}
	if bill, ok := x.served.Model.Bill(u); ok {
		x.event.CostNanoUSD, delta.CostNanoUSD = &bill.Total, bill.Total
		if bill.Split {
			x.event.InputCostNanoUSD, x.event.OutputCostNanoUSD = &bill.Parts.Input, &bill.Parts.Output
		}
	}
	return delta
}

// remember writes down where a response lives, before the client can know its id: the next
// request may continue it at once, and through another process.
func (x *exchange) remember(ctx context.Context, responseID string) {
	if responseID == "" || responseID == x.remembered || x.op.Surface != wire.Responses {
		return
	}
	x.remembered = responseID
	ctx, release := budget.With(context.WithoutCancel(ctx), storeBudget)
	defer release()
	err := x.g.Aliases.PutAlias(ctx, affinity.Alias{
		ResponseID: session.Scope(x.event.UserPath, responseID), SessionKey: x.identity.Key,
		ClientSessionID: x.identity.ID, SessionSource: x.identity.Source,
		Target: x.place(x.served), ExpiresAt: time.Now().Add(aliasTTL),
	})
	if err != nil {
		x.g.Logger.WarnContext(ctx, "response alias not kept", slog.String("request_id", x.event.RequestID), slog.Any("cause", err))
	}
}

// refuse tells the client that the request was not served.
func (x *exchange) refuse(e *wire.Error) {
	if x.event.Outcome == "" {
		x.event.Outcome = record.OutcomeRefused
	}
	if e.Cause != nil {
		x.cause = e.Cause.Error()
	} else if x.cause == "" {
		x.cause = e.Message
	}
	if x.event.DecisionReason != "" {
		x.w.Header()["X-Switchboard-Decision"] = []string{x.event.DecisionReason}
	}
	wire.WriteError(x.w, x.op.Surface, e)
}

func asError(err error) *wire.Error {
	var e *wire.Error
	if errors.As(err, &e) {
		return e
	}
	return &wire.Error{Status: 400, Type: "invalid_request_error", Code: "invalid_body", Message: "The request body could not be read.", Cause: err}
}
