package admin

import (
	"context"
	"net/http"
	"time"

	"switchboard/internal/health"
	"switchboard/internal/provider"
)

// providerView is a provider as operators see it: never a key's text, nor its print.
type providerView struct {
	Identity     string       `json:"identity"`
	Type         string       `json:"type"`
	BaseURL      string       `json:"base_url"`
	Surfaces     []string     `json:"surfaces"`
	BillingModel string       `json:"billing_model"`
	Models       []modelView  `json:"models"` // empty: any
	Keys         []keyView    `json:"keys"`   // empty: none is needed
	Health       []healthView `json:"health"` // what is not healthy; empty: all is
}

type modelView struct {
	ID            string `json:"id"`
	UpstreamModel string `json:"upstream_model"`
	Priced        bool   `json:"priced"`
}

type keyView struct {
	KeyID  string `json:"key_id"`
	Usable bool   `json:"usable"` // it has a text
}

// healthView is one degradation. Without key_id and model it covers the whole provider.
type healthView struct {
	KeyID   string     `json:"key_id,omitempty"`
	Model   string     `json:"model,omitempty"`
	State   string     `json:"state"` // degraded, trial
	Reason  string     `json:"reason"`
	RetryAt *time.Time `json:"retry_at"` // null: not before the key's text changes
}

// providers lists the configured providers and how they stand now.
func (a *Admin) providers(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"providers": a.providerViews(r.Context(), time.Now())})
}

func (a *Admin) providerViews(ctx context.Context, now time.Time) []providerView {
	a.Health.Refresh(ctx, now)
	standing := map[string][]healthView{}
	for _, s := range a.Health.List(now) {
		standing[s.Scope.Provider] = append(standing[s.Scope.Provider], viewHealth(s))
	}
	views := make([]providerView, 0, len(a.Providers))
	for _, p := range a.Providers {
		views = append(views, viewProvider(p, standing[p.Identity]))
	}
	return views
}

func viewProvider(p *provider.Provider, standing []healthView) providerView {
	v := providerView{
		Identity: p.Identity, Type: p.Type, BaseURL: p.BaseURL, BillingModel: string(p.Billing),
		Surfaces: []string{}, Models: []modelView{}, Keys: []keyView{}, Health: standing,
	}
	if v.Health == nil {
		v.Health = []healthView{}
	}
	for _, s := range p.Surfaces {
		v.Surfaces = append(v.Surfaces, string(s))
	}
	for _, m := range p.Models {
		v.Models = append(v.Models, modelView{m.ID, m.Upstream, m.Pricing != nil})
	}
	for _, k := range p.Keys {
		v.Keys = append(v.Keys, keyView{k.ID, k.Text != ""})
	}
	return v
}

func viewHealth(s health.Status) healthView {
	v := healthView{KeyID: s.Scope.KeyID, Model: s.Scope.Model, State: "degraded", Reason: string(s.Class)}
	if s.State == health.Trial {
		v.State = "trial"
	}
	if !s.Until.IsZero() {
		until := s.Until.UTC()
		v.RetryAt = &until
	}
	return v
}
