package admin

import (
	"net/http"
	"time"

	"switchboard/internal/admin/ui"
)

// providersPage is Providers.
type providersPage struct {
	shell
	Providers []providerRow
	Now       time.Time
}

type providerRow struct {
	providerView
	State string // ok, degraded, down
	Says  string
	Keys  []keyRow
	Ills  []ill
}

type keyRow struct {
	keyView
	State string
}

// ill is one degradation.
type ill struct {
	Scope, State, Reason, Retry, In string
}

// providersPage shows the configured providers and how they stand.
func (a *Admin) showProviders(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	v := providersPage{shell: a.shell(r, "Providers", providersPath), Now: now}
	for _, p := range a.providerViews(r.Context(), now) {
		v.Providers = append(v.Providers, rowOf(p, now))
	}
	a.show(w, r, http.StatusOK, "providers", v)
}

func rowOf(p providerView, now time.Time) providerRow {
	row := providerRow{providerView: p, State: "ok", Says: "healthy"}
	out := map[string]string{}
	for _, h := range p.Health {
		row.Ills = append(row.Ills, illOf(h, now))
		row.State, row.Says = worse(row, h)
		if h.KeyID != "" && h.Model == "" {
			out[h.KeyID] = h.State
		}
	}
	usable := 0
	for _, k := range p.Keys {
		state := out[k.KeyID]
		switch {
		case !k.Usable:
			state = "without a value"
		case state == "":
			state = "ok"
			usable++
		}
		row.Keys = append(row.Keys, keyRow{k, state})
	}
	if len(p.Keys) > 0 && usable == 0 {
		row.State, row.Says = "down", "no usable key"
	}
	return row
}

// worse is what a provider's badge says when it has this degradation as well.
func worse(row providerRow, h healthView) (state, says string) {
	switch {
	case h.KeyID == "" && h.Model == "" && h.State != "trial":
		return "down", "left alone"
	case row.State == "down":
		return row.State, row.Says
	case h.State == "trial":
		return "degraded", "being tried again"
	}
	return "degraded", "partly degraded"
}

func illOf(h healthView, now time.Time) ill {
	i := ill{State: h.State, Reason: h.Reason, Scope: "whole provider", Retry: "when the key is replaced"}
	switch {
	case h.KeyID != "" && h.Model != "":
		i.Scope = "key " + h.KeyID + ", model " + h.Model
	case h.KeyID != "":
		i.Scope = "key " + h.KeyID
	case h.Model != "":
		i.Scope = "model " + h.Model
	}
	if h.RetryAt != nil {
		i.Retry = ui.Stamp(*h.RetryAt) + " UTC"
		if left := h.RetryAt.Sub(now).Milliseconds(); left > 0 {
			i.In = "in " + ui.Millis(left)
		} else {
			i.In = "now"
		}
	}
	return i
}
