package gateway

import (
	"fmt"
	"net/http"
	"time"

	"switchboard/internal/health"
	"switchboard/internal/record"
	"switchboard/internal/route"
	"switchboard/internal/wire"
)

// nothingLeft is the honest answer when no target served (DESIGN 5): 429 when all are rate
// limited, with the soonest retry; 502 when all refused our credentials, never 401; else 503.
func (x *exchange) nothingLeft(decision route.Decision, failures []failed, rest untried) *wire.Error {
	now := time.Now()
	board := x.g.Board.View(now)
	var details []wire.Detail
	limited, credentials, timeouts := !rest.left, !rest.left, len(failures) > 0
	soonest := time.Duration(-1)
	add := func(d wire.Detail, class health.Class, wait time.Duration) {
		if wait > 0 {
			d.RetryAfterMS = wait.Milliseconds()
			if soonest < 0 || wait < soonest {
				soonest = wait
			}
		}
		details = append(details, d)
		limited = limited && class == health.RateLimited
		credentials = credentials && (class == health.Unauthorized || class == health.NoCredit)
	}
	for _, f := range failures {
		status := board.Status(f.Provider.Identity, f.Key.ID, f.Model.Upstream)
		wait := f.RetryAfter
		if !status.Until.IsZero() && status.Until.After(now) {
			wait = status.Until.Sub(now)
		}
		timeouts = timeouts && f.Class == health.Timeout
		add(wire.Detail{Provider: f.Provider.Identity, KeyID: f.Key.ID, Model: f.Model.Upstream, Reason: string(f.Class)}, f.Class, wait)
	}
	for _, out := range decision.Excluded {
		switch out.Reason {
		case route.OutDegraded:
			wait := time.Duration(0)
			if !out.Status.Until.IsZero() {
				wait = out.Status.Until.Sub(now)
			}
			add(wire.Detail{Provider: out.Provider, KeyID: out.KeyID, Model: out.Model, Reason: string(out.Status.Class)}, out.Status.Class, wait)
		case route.OutNoKey:
			add(wire.Detail{Provider: out.Provider, Model: out.Model, Reason: route.OutNoKey}, health.Unauthorized, 0)
		}
	}
	for _, a := range rest.onTrial {
		add(wire.Detail{Provider: a.Provider.Identity, KeyID: a.Key.ID, Model: a.Model.Upstream, Reason: "on_trial"}, "", time.Second)
	}
	x.event.Outcome = record.OutcomeUpstreamError
	if timeouts {
		x.event.Outcome = record.OutcomeTimeout
	}
	limited, credentials = limited && len(details) > 0, credentials && len(details) > 0
	e := &wire.Error{Details: details}
	if soonest >= 0 {
		e.RetryAfter = int((soonest + time.Second - 1) / time.Second)
	}
	switch {
	case x.home != nil:
		e.Status, e.Type, e.Code = http.StatusServiceUnavailable, "api_error", "previous_response_unavailable"
		e.Message = "The provider that holds previous_response_id is not available; only it can continue from there. Try again later."
	case limited:
		e.Status, e.Type, e.Code = http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded"
		e.Message = "Every provider of this model is rate limited."
		e = x.lastWord(failures, e)
	case credentials:
		e.Status, e.Type, e.Code = http.StatusBadGateway, "api_error", "provider_credentials"
		e.Message = "Every provider of this model refused the gateway's own credentials. Your key is not at fault."
		e.RetryAfter = 0
	default:
		e.Status, e.Type, e.Code = http.StatusServiceUnavailable, "api_error", "unavailable"
		e.Message = fmt.Sprintf("No provider could serve %q.", x.request.Fields.Model)
	}
	return e
}

// lastWord lets the provider's own words about its limit reach the client, when the only
// call of the request ended so.
func (x *exchange) lastWord(failures []failed, e *wire.Error) *wire.Error {
	if len(failures) != 1 || !failures[0].JSON || failures[0].Status != http.StatusTooManyRequests {
		return e
	}
	f := failures[0]
	if e.RetryAfter > 0 {
		x.w.Header()["Retry-After"] = []string{itoa(int64(e.RetryAfter))}
		f.Header = f.Header.Clone()
		f.Header.Del("Retry-After")
	}
	x.passOn(f.Failure)
	return nil
}

// degraded lists the providers that the decision left out for their health.
func degraded(d route.Decision) []string {
	var list []string
	seen := map[string]bool{}
	for _, out := range d.Excluded {
		if out.Reason == route.OutDegraded && !seen[out.Provider] {
			seen[out.Provider] = true
			list = append(list, out.Provider)
		}
	}
	return list
}

func errUnauthenticated() *wire.Error {
	return &wire.Error{Status: http.StatusUnauthorized, Type: "authentication_error", Code: "invalid_api_key", Message: "Missing or invalid API key."}
}

func errUnknownModel(model string) *wire.Error {
	return &wire.Error{
		Status: http.StatusNotFound, Type: "not_found_error", Code: "model_not_found", Param: "model",
		Message: fmt.Sprintf("The model %q does not exist here; GET /v1/models lists what does.", model),
	}
}

func errEncoded() *wire.Error {
	return &wire.Error{
		Status: http.StatusUnsupportedMediaType, Type: "invalid_request_error", Code: "unsupported_encoding",
		Message: "The request body has a Content-Encoding; send it plain.",
	}
}

func errWrongSurface(model string, surface wire.Surface) *wire.Error {
	return &wire.Error{
		Status: http.StatusNotFound, Type: "not_found_error", Code: "model_not_found", Param: "model",
		Message: fmt.Sprintf("The model %q is not served on the %s surface.", model, surface),
	}
}

// statusClientGone is what nginx calls 499: nobody reads it.
const statusClientGone = 499

func errClientGone() *wire.Error {
	return &wire.Error{Status: statusClientGone, Type: "api_error", Code: "client_cancelled", Message: "The client went away."}
}

func errDeadline() *wire.Error {
	return &wire.Error{
		Status: http.StatusGatewayTimeout, Type: "api_error", Code: "timeout",
		Message: "No provider answered before the time limit of the function.",
	}
}

func typeOf(status int) string {
	switch status {
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	}
	return "invalid_request_error"
}
