package admin

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/route"
	"switchboard/internal/virtual"
)

// The form offers what routing knows, and no more.
func TestFormOffersEveryObjective(t *testing.T) {
	if diff := cmp.Diff(route.Objectives(), objectives()); diff != "" {
		t.Errorf("objectives() (-route +form):\n%s", diff)
	}
}

// The form always sends an objective; it is kept for adaptive and for nothing else.
func TestFormKeepsTheObjectiveOfAdaptiveAlone(t *testing.T) {
	for strategy, want := range map[string]string{"adaptive": "cost", "round_robin": "", "failover": ""} {
		f := readModelForm(url.Values{
			"source": {"s"}, "version": {"0"}, "strategy": {strategy}, "objective": {"cost"}, "target_model": {"m"}, "target_weight": {""},
		})
		body, err := f.body()
		if err != nil {
			t.Fatal(err)
		}
		c, err := virtual.ParseChange(body)
		if err != nil || c.Objective != want {
			t.Errorf("%s: body %s: objective %q, %v; want %q", strategy, body, c.Objective, err, want)
		}
		var back map[string]any
		if json.Unmarshal(body, &back) != nil || formOf(c.Model, 0).Objective != want {
			t.Errorf("%s: form of it has %q, want %q", strategy, formOf(c.Model, 0).Objective, want)
		}
	}
}
