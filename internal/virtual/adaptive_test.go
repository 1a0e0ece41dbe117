package virtual_test

import (
	"strings"
	"testing"
	"time"

	"switchboard/internal/mem"
	"switchboard/internal/virtual"
)

// A saved virtual model may be adaptive, and says what it weighs.
func TestSavedAdaptive(t *testing.T) {
	for _, tt := range []struct{ sent, objective string }{
		{``, "balanced"}, {`,"objective":""`, "balanced"}, {`,"objective":"cost"`, "cost"}, {`,"objective":"latency"`, "latency"},
	} {
		i := newInstance(t, &mem.Cell{})
		if i.For("").Adaptive() {
			t.Error("Adaptive() before anything is saved, want not")
		}
		l := i.saves(`{"source":"s","strategy":"adaptive","targets":[{"model":"A/m"},{"model":"B/m"}]` + tt.sent + `}`)
		saved, ok := l.Find("s")
		if !ok || saved.Strategy != "adaptive" || saved.Objective != tt.objective || saved.Problem != "" {
			t.Errorf("%s: saved %+v, want the objective %s", tt.sent, saved, tt.objective)
		}
		if !i.For("").Adaptive() {
			t.Errorf("%s: Adaptive() = false", tt.sent)
		}
	}
}

func TestBadObjectivesAreRefused(t *testing.T) {
	for body, want := range map[string]string{
		`{"source":"s","strategy":"adaptive","target_model":"m","objective":"speed"}`: `objective: there is no objective "speed"; known here: balanced, latency, cost`,
		`{"source":"s","strategy":"cost","target_model":"m","objective":"cost"}`:      `objective: the objective "cost" means nothing to the strategy cost`,
		`{"source":"s","target_model":"m","objective":"latency"}`:                     `objective: the objective "latency" means nothing to the strategy round_robin`,
	} {
		if err := newInstance(t, &mem.Cell{}).refuses(body); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Save(%s) = %v, want %q", body, err, want)
		}
	}
	if _, err := virtual.ParseChange([]byte(`{"source":"s","target_model":"m","objective":7}`)); err == nil || !strings.Contains(err.Error(), "objective: a number") {
		t.Errorf("ParseChange of a number = %v, want it refused", err)
	}
	// One that another switchboard has stored keeps nothing else from working.
	i := newInstance(t, stored(t, `{"source":"bad","strategy":"adaptive","objective":"speed","targets":[{"model":"m"}]}`,
		`{"source":"good","strategy":"adaptive","targets":[{"model":"m"},{"model":"A/a"}]}`))
	i.Refresh(t.Context(), time.Now())
	if c := i.For(""); c.HasVirtual("bad") || !c.HasVirtual("good") {
		t.Errorf("bad %v, good %v; want good alone", c.HasVirtual("bad"), c.HasVirtual("good"))
	}
}
