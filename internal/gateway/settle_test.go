package gateway_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"switchboard/internal/mem"
	"switchboard/internal/upstreamtest"
)

// S-DB-03 b: a switch is counted once, in the row and in one event, also when the store did not
// answer while the client waited: whether it had written it or not.
func TestSDB03UnansweredSwitchIsInTheEvent(t *testing.T) {
	for _, applied := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, rigYAML(t))
			r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
			r.network.Set("B", upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
			r.post("/v1/chat/completions", chatBody, "X-Session-Id: s1")
			unanswered := 1
			r.store.Fault = func(op string) (bool, error) {
				if op == mem.OpIncrementSwitch && unanswered > 0 {
					unanswered--
					return applied, errors.New("no answer in time")
				}
				return true, nil
			}
			r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(503, `{"error":{"message":"no"}}`)))
			a := r.post("/v1/chat/completions", chatBody, "X-Session-Id: s1")
			e := r.last(t)
			row, _ := r.row("s1", "m-oai")
			if a.status != 200 || row.Provider != "B" || row.SwitchCount != 1 || row.Requests != 2 {
				t.Errorf("applied %t: answer %d, row %+v, want 200 and one switch to B in two requests", applied, a.status, row)
			}
			if !e.Switched || e.SwitchCount == nil || *e.SwitchCount != 1 || e.SwitchCostNanoUSD == nil || *e.SwitchCostNanoUSD != row.SwitchCostNanoUSD {
				t.Errorf("applied %t: event %+v, want the switch and its cost", applied, e)
			}
			if e.Affinity != "unknown" {
				t.Errorf("applied %t: affinity %q, want unknown: the store had not answered", applied, e.Affinity)
			}
		})
	}
}
