package gateway_test

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/gateway"
	"switchboard/internal/health"
	"switchboard/internal/mem"
	"switchboard/internal/shared"
	"switchboard/internal/upstreamtest"
)

// sharing is a rig whose board is shared through cell.
func sharing(t *testing.T, r *rig, cell shared.Cell) {
	t.Helper()
	keys := health.Keys{}
	for _, p := range r.cfg.Providers {
		keys[p.Identity] = map[string]string{}
		for _, k := range p.Keys {
			keys[p.Identity][k.ID] = k.Print
		}
	}
	r.restart(t, func(o *gateway.Options) {
		o.Board = health.NewShared(r.cfg.Degrade, cell, keys, slog.New(slog.DiscardHandler))
	})
}

// nobody is a request without a session.
const nobody = `{"model":"m-oai","messages":[]}`

// What one instance learns of a provider, the others know within a second, and of all of
// them one probes when the time has come.
func TestInstancesShareWhatTheyLearn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell := &mem.Cell{}
		one, two := newRig(t, rigYAML(t)), newRig(t, rigYAML(t))
		sharing(t, one, cell)
		sharing(t, two, cell)
		limited := upstreamtest.JSON(429, `{"error":{"message":"slow down"}}`).With("Retry-After", "30")
		fine := upstreamtest.JSON(200, `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}`)
		for _, r := range []*rig{one, two} {
			r.network.Set("A", upstreamtest.Always(limited))
			r.network.Set("B", upstreamtest.Always(fine))
			r.post("/v1/chat/completions", `{"model":"B/m-oai","messages":[]}`) // the board has been read
		}
		if a := one.post("/v1/chat/completions", nobody); a.status != 200 || one.network.Order(1) != "A,B" {
			t.Fatalf("first = %d from %s, want 200 from A,B", a.status, one.network.Order(1))
		}
		time.Sleep(time.Second)
		before := len(two.network.Calls())
		if a := two.post("/v1/chat/completions", nobody); a.status != 200 || len(two.network.Calls()) != before+1 {
			t.Errorf("the other instance made %d calls, want it to go straight to B", len(two.network.Calls())-before)
		}
		if e := two.last(t); len(e.DegradedProviders) != 1 || e.DegradedProviders[0] != "A" {
			t.Errorf("degraded_providers = %v, want A", e.DegradedProviders)
		}

		time.Sleep(30 * time.Second)
		one.network.Set("A", upstreamtest.Always(fine))
		if a := one.post("/v1/chat/completions", nobody); a.status != 200 || one.last(t).Provider != "A" {
			t.Errorf("trial = %d from %s, want 200 from A", a.status, one.last(t).Provider)
		}
		time.Sleep(time.Second)
		two.network.Set("A", upstreamtest.Always(fine))
		if two.post("/v1/chat/completions", nobody); two.last(t).Provider != "A" {
			t.Errorf("after the trial: served by %s, want A", two.last(t).Provider)
		}
	})
}

// A board that cannot be shared costs neither the answer nor time beyond its budget.
func TestSharedBoardDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigYAML(t))
		sharing(t, r, &mem.Cell{Fault: func(string) (bool, error) { return false, errors.New("throttled") }})
		r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(429, `{"error":{"message":"slow down"}}`).With("Retry-After", "1")))
		r.network.Set("B", upstreamtest.Always(upstreamtest.JSON(200, `{"choices":[]}`)))
		for range 5 {
			if a := r.post("/v1/chat/completions", nobody); a.status != 200 {
				t.Errorf("status %d, want 200", a.status)
			}
			time.Sleep(2 * time.Second)
		}
	})
}
