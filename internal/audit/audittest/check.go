package audittest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"switchboard/internal/audit"
	"switchboard/internal/record"
)

// Open makes a reader over events, which come in the order of their delivery and some of
// them twice. Events that are the same have the same id.
type Open func(t *testing.T, events []record.Event) audit.Reader

// rig is a reader and what it should answer.
type rig struct {
	audit.Reader
	oracle oracle
}

func newRig(t *testing.T, open Open, events []record.Event) rig {
	t.Helper()
	return rig{open(t, events), newOracle(events)}
}

// whole is a page that holds all that a test of few events has.
func whole() audit.Page { return audit.Page{Limit: audit.MaxLimit} }

// same asks every question and compares.
func (r rig) same(t *testing.T, f audit.Filter, pages ...audit.Page) {
	t.Helper()
	if len(pages) == 0 {
		pages = []audit.Page{whole()}
	}
	for _, p := range pages {
		r.sameThreads(t, f, p)
		r.sameLog(t, f, p)
		r.sameSessions(t, f, p)
	}
	summary, err := r.Summary(t.Context(), f)
	compare(t, "Summary", f, nil, r.oracle.summary(f), summary, err, &summary.Coverage)
	days, err := r.Daily(t.Context(), f)
	compare(t, "Daily", f, nil, r.oracle.daily(f), days, err, &days.Coverage)
}

func (r rig) sameThreads(t *testing.T, f audit.Filter, p audit.Page) audit.Threads {
	t.Helper()
	got, err := r.Threads(t.Context(), f, p)
	compare(t, "Threads", f, &p, r.oracle.threads(f, p), got, err, &got.Coverage)
	return got
}

func (r rig) sameLog(t *testing.T, f audit.Filter, p audit.Page) audit.Log {
	t.Helper()
	got, err := r.Log(t.Context(), f, p)
	compare(t, "Log", f, &p, r.oracle.log(f, p), got, err, &got.Coverage)
	return got
}

func (r rig) sameSessions(t *testing.T, f audit.Filter, p audit.Page) audit.SessionUsages {
	t.Helper()
	got, err := r.Sessions(t.Context(), f, p)
	compare(t, "Sessions", f, &p, r.oracle.sessions(f, p), got, err, &got.Coverage)
	return got
}

// compare leaves the coverage to its own test: here everything has been delivered.
func compare(t *testing.T, question string, f audit.Filter, p *audit.Page, want, got any, err error, coverage *audit.Coverage) {
	t.Helper()
	asked := question + "(" + describe(f, p) + ")"
	if err != nil {
		t.Fatalf("%s = %v", asked, err)
	}
	if !coverage.Complete || coverage.AsOf.IsZero() {
		t.Errorf("%s has coverage %+v, want it complete", asked, *coverage)
	}
	diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(audit.Coverage{}))
	if diff == "" {
		return
	}
	const enough = 4000
	if len(diff) > enough {
		diff = diff[:enough] + "\n…"
	}
	t.Errorf("%s (-want +got):\n%s", asked, diff)
}
