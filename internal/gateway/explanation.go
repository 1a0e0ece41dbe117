package gateway

import (
	"encoding/json"
	"math/big"
	"strings"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/route"
)

// Explanation is what the data plane would do with a request, and why (DESIGN 9). No header
// and no part of the body is in it but what names session and model; keys are in it by id.
type Explanation struct {
	Request RequestFacts `json:"request"`
	// Refusal is what the client would be told without any provider being called; nil: it
	// would be tried.
	Refusal        *Refusal    `json:"refusal"`
	Affinity       string      `json:"affinity"` // before anything is written: pinned, none, unknown
	Pin            *PinFacts   `json:"pin"`      // as stored; nil: none
	DecisionReason string      `json:"decision_reason"`
	Attempts       []Target    `json:"attempts"`   // in order; each one's turn comes when those before have failed
	Candidates     []Candidate `json:"candidates"` // by place, then those that are out
	MaxAttempts    int         `json:"max_attempts"`
	Writes         []Write     `json:"writes"` // to the pin, if the first attempt answers; empty: none
}

// RequestFacts is what routing knows of the request.
type RequestFacts struct {
	Method               string  `json:"method"`
	Path                 string  `json:"path"`
	APISurface           string  `json:"api_surface"`
	RequestedModel       string  `json:"requested_model"`
	Stream               bool    `json:"stream"`
	ClientKey            *string `json:"client_key"` // name of the client key that was sent; nil: none is known
	UserPath             string  `json:"user_path"`
	SessionID            string  `json:"session_id"` // empty: no session
	SessionSource        string  `json:"session_source"`
	SessionKey           string  `json:"session_key"`
	PreviousResponse     *Target `json:"previous_response"` // where the response that is continued lives
	EstimatedInputTokens int64   `json:"estimated_input_tokens"`
}

// Refusal is an answer without a call.
type Refusal struct {
	Status            int    `json:"status"`
	Code              string `json:"code"`
	Message           string `json:"message"`
	RetryAfterSeconds int    `json:"retry_after_s,omitempty"`
}

// PinFacts is a stored pin.
type PinFacts struct {
	affinity.View
	Usable   bool `json:"usable"`   // its provider and key are configured
	Followed bool `json:"followed"` // the first attempt goes where it points
}

// Target is a provider, one of its keys and its model.
type Target struct {
	Provider string `json:"provider"`
	KeyID    string `json:"key_id"`
	Model    string `json:"model"`
}

// Candidate is a target that the requested model can mean.
type Candidate struct {
	Target
	BillingModel         string       `json:"billing_model"`
	Place                int          `json:"place,omitempty"`  // from 1; 0: it is out
	Reason               string       `json:"reason,omitempty"` // why it is out: surface, no_key, degraded, home, unknown
	Pinned               bool         `json:"pinned"`           // the pin points to it
	Trial                bool         `json:"trial"`            // it has failed, and one request finds out whether it works again
	Health               *HealthFacts `json:"health"`           // nil: healthy
	Score                *ScoreFacts  `json:"score,omitempty"`  // nil: the strategy is not adaptive, or there is nothing to compare
	EstimatedCostNanoUSD *int64       `json:"estimated_cost_nano_usd"`
	EstimatedCost        *json.Number `json:"estimated_cost"` // in US dollars; nil: no price is known
	// TranslatedTo is the surface in which the provider is called, where it is not the request's.
	TranslatedTo string `json:"translated_to,omitempty"`
}

// HealthFacts is why a candidate is left alone, or on trial.
type HealthFacts struct {
	State   string     `json:"state"` // degraded, trial
	Reason  string     `json:"reason"`
	RetryAt *time.Time `json:"retry_at"` // nil: not before the key's text changes
}

// ScoreFacts is how the adaptive strategy sees a candidate. Of two that are drawn by weight,
// the one with the lower score is taken.
type ScoreFacts struct {
	Score      float64 `json:"score"`
	TTFBMillis *int64  `json:"ttfb_ms"`    // nil: it has not answered lately
	Confidence float64 `json:"confidence"` // how far ttfb_ms is still true, 0 to 1
	InFlight   float64 `json:"in_flight"`
	Failures   float64 `json:"failures"`    // share of attempts lately, 0 to 1
	PriceRatio float64 `json:"price_ratio"` // to the cheapest one's
}

// Write is a change of the pin.
type Write struct {
	Write string `json:"write"`
	When  string `json:"when"`
	Target
	SwitchCostNanoUSD *int64       `json:"switch_cost_nano_usd,omitempty"`
	SwitchCost        *json.Number `json:"switch_cost,omitempty"`
}

// What is written, and when.
const (
	WriteClaim   = "claim"   // a tentative pin for a new session
	WriteConfirm = "confirm" // the claim has served
	WriteMove    = "move"    // a claim that never served moves, uncounted
	WriteSwitch  = "switch"  // a pin that served moves, counted

	BeforeCall  = "before_call"
	FirstOutput = "first_output"
)

// fill makes lists of what would be null.
func (e *Explanation) fill() {
	if e.Attempts == nil {
		e.Attempts = []Target{}
	}
	if e.Candidates == nil {
		e.Candidates = []Candidate{}
	}
	if e.Writes == nil {
		e.Writes = []Write{}
	}
}

func (e *explainer) candidate(a *route.Attempt, view health.View) Candidate {
	c := Candidate{
		Target:       Target{Provider: a.Provider.Identity, KeyID: a.Key.ID, Model: a.Model.Upstream},
		BillingModel: string(a.Provider.Billing), Pinned: a.Pinned, Trial: a.Trial,
	}
	if status := view.Status(a.Provider.Identity, a.Key.ID, a.Model.Upstream); status.State != health.Healthy {
		c.Health = healthFacts(status)
	}
	if a.As != e.x.op.Surface {
		c.TranslatedTo = string(a.As)
	}
	c.price(a.Model.Pricing, e.x.estimatedInput())
	return c
}

func (e *explainer) excluded(out *route.Exclusion) Candidate {
	c := Candidate{Target: Target{Provider: out.Provider, KeyID: out.KeyID, Model: out.Model}, Reason: out.Reason}
	if out.Reason == route.OutDegraded {
		c.Health = healthFacts(out.Status)
	}
	if pin := e.stored.pin; pin != nil {
		c.Pinned = pin.Provider == out.Provider && pin.KeyID == out.KeyID && pin.Target.Model == out.Model
	}
	for _, p := range e.x.catalog.Providers() {
		if p.Identity != out.Provider {
			continue
		}
		c.BillingModel = string(p.Billing)
		for i := range p.Models {
			if p.Models[i].Upstream == out.Model {
				c.price(p.Models[i].Pricing, e.x.estimatedInput())
				break
			}
		}
	}
	return c
}

func (c *Candidate) price(pricing *provider.Pricing, input int64) {
	if nano, known := pricing.Estimate(input); known {
		c.EstimatedCostNanoUSD, c.EstimatedCost = &nano, usd(nano)
	}
}

func healthFacts(s health.Status) *HealthFacts {
	h := &HealthFacts{State: "degraded", Reason: string(s.Class)}
	if s.State == health.Trial {
		h.State = "trial"
	}
	if !s.Until.IsZero() {
		until := s.Until.UTC()
		h.RetryAt = &until
	}
	return h
}

// usd is nano-USD in US dollars: exact, nine decimals at most.
func usd(nano int64) *json.Number {
	text := new(big.Rat).SetFrac64(nano, 1_000_000_000).FloatString(9)
	number := json.Number(strings.TrimRight(strings.TrimRight(text, "0"), "."))
	return &number
}
