package gateway

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/budget"
	"switchboard/internal/route"
	"switchboard/internal/wire"
)

// Destination is where an operator may move a pin, and what the cold cache there costs.
type Destination struct {
	To                affinity.Target
	SwitchCostNanoUSD *int64 // nil: unknown
}

// Destination finds the target that an operator means: one that can serve the pin's model on
// the pin's surface now, as a request of that session would find it. Of a provider's keys and
// models, where they are not said, it is the one that such a request would try first. The
// error is for who asked: it names the field at fault.
func (g *Gateway) Destination(ctx context.Context, pin *affinity.Pin, want Target) (Destination, *wire.Error) {
	now := time.Now()
	refreshing, release := budget.With(ctx, storeBudget)
	g.Board.Refresh(refreshing, now)
	g.Catalog.Refresh(refreshing, now)
	release()
	catalog := g.Catalog.For(pin.UserPath)
	switch pins, known := catalog.Pins(pin.Ref.Model); {
	case !known:
		return Destination{}, unfit("model", fmt.Sprintf("%q is not configured any more", pin.Ref.Model))
	case !pins:
		return Destination{}, unfit("model", fmt.Sprintf("%q is not pinned: its strategy or session_affinity says so", pin.Ref.Model))
	}
	surfaces := []wire.Surface{wire.Surface(pin.Surface)}
	if pin.Surface == "" { // a row that was written by hand
		surfaces = []wire.Surface{wire.Chat, wire.Responses, wire.Messages, wire.Embeddings}
	}
	var refusal *wire.Error
	for _, surface := range surfaces {
		d := catalog.Plan(route.Input{Model: pin.Ref.Model, Surface: surface, SessionKey: pin.SessionKey, Health: g.Board.View(now)})
		a, err := choose(&d, want)
		if err == nil {
			to := (&exchange{op: wire.Operation{Surface: surface}}).target(a)
			found := Destination{To: to}
			if nano, known := a.Model.Pricing.SwitchCost(pin.LastInputTokens); known {
				found.SwitchCostNanoUSD = &nano
			}
			return found, nil
		}
		if refusal == nil {
			refusal = err
		}
	}
	return Destination{}, refusal
}

// choose is the first attempt that want means, or why there is none.
func choose(d *route.Decision, want Target) (route.Attempt, *wire.Error) {
	fits := func(field, wanted, is string, at string) string {
		if at == "" && wanted != "" && wanted != is {
			return field
		}
		return at
	}
	fault := "provider"
	for _, a := range append(d.Attempts[:len(d.Attempts):len(d.Attempts)], d.More()...) {
		if a.Provider.Identity != want.Provider {
			continue
		}
		switch at := fits("key_id", want.KeyID, a.Key.ID, fits("target_model", want.Model, a.Model.Upstream, "")); {
		case at != "":
			fault = at
		case want.KeyID != "" && !a.Provider.StickyKeys:
			return a, unfit("key_id", fmt.Sprintf("the keys of %q take turns; leave it out", want.Provider))
		default:
			return a, nil
		}
	}
	for i := range d.Excluded {
		out := &d.Excluded[i]
		if out.Provider != want.Provider || want.Model != "" && want.Model != out.Model || want.KeyID != "" && out.KeyID != "" && want.KeyID != out.KeyID {
			continue
		}
		return route.Attempt{}, unfit("provider", fmt.Sprintf("%q cannot serve it: %s", want.Provider, outText(out)))
	}
	return route.Attempt{}, unfit(fault, "nothing of that name serves the model on the pin's surface")
}

func outText(out *route.Exclusion) string {
	switch out.Reason {
	case route.OutDegraded:
		text := "degraded (" + string(out.Status.Class) + ")"
		if !out.Status.Until.IsZero() {
			text += " until " + out.Status.Until.UTC().Format(time.RFC3339)
		}
		return text
	case route.OutSurface:
		return "it does not speak the pin's surface"
	case route.OutNoKey:
		return "it has no usable key"
	}
	return out.Reason
}

func unfit(field, text string) *wire.Error {
	return &wire.Error{
		Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "invalid_destination", Param: field,
		Message: field + ": " + text + ".",
	}
}
