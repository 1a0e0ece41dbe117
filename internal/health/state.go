package health

import (
	"cmp"
	"slices"
	"time"
)

// state is what is known of all providers. It is immutable: whoever changes it copies.
type state struct {
	providers map[string]record
	standings int // of all records: 0 means that nothing is degraded
}

// record is what is known of one provider.
type record struct {
	failures  int // provider-scope failures in a row
	standings map[Scope]standing
}

// standing is a degradation, from its beginning until a success disproves it.
type standing struct {
	class   Class
	until   time.Time // zero when forGood
	lease   time.Time // a trial is under way until then; zero: none
	times   int       // how often in a row the scope was degraded, for doubling
	forGood bool      // until the process starts again with another key
}

// active tells whether the scope is to be left alone at now.
func (s standing) active(now time.Time) bool { return s.forGood || now.Before(s.until) }

func (s standing) status(scope Scope, now time.Time) Status {
	status := Status{State: Trial, Class: s.class, Until: s.until, Scope: scope}
	switch {
	case s.active(now):
		status.State = Degraded
	case now.Before(s.lease):
		status.State, status.Until = Degraded, s.lease
	}
	return status
}

// covering lists the scopes that cover a target, widest first. For a provider without keys
// (keyID empty) some of them are the same.
func covering(provider, keyID, model string) [4]Scope {
	return [4]Scope{
		{Provider: provider},
		{Provider: provider, KeyID: keyID},
		{Provider: provider, Model: model},
		{Provider: provider, KeyID: keyID, Model: model},
	}
}

// status is the worst that stands against a target: what lasts longest of what is degraded,
// else the widest that is on trial.
func (s *state) status(provider, keyID, model string, now time.Time) Status {
	r, known := s.providers[provider]
	if !known || len(r.standings) == 0 {
		return Status{}
	}
	var worst Status
	for _, scope := range covering(provider, keyID, model) {
		if standing, bad := r.standings[scope]; bad {
			if status := standing.status(scope, now); worse(status, worst) {
				worst = status
			}
		}
	}
	return worst
}

func worse(a, b Status) bool {
	switch {
	case a.State == Degraded && b.State == Degraded:
		return !b.Until.IsZero() && (a.Until.IsZero() || a.Until.After(b.Until))
	case b.State == Healthy:
		return true
	}
	return a.State == Degraded && b.State != Degraded
}

func (s *state) list(now time.Time) []Status {
	list := make([]Status, 0, s.standings)
	for _, r := range s.providers {
		for scope, standing := range r.standings {
			list = append(list, standing.status(scope, now))
		}
	}
	slices.SortFunc(list, func(a, b Status) int {
		return cmp.Or(
			cmp.Compare(a.Scope.Provider, b.Scope.Provider),
			cmp.Compare(a.Scope.KeyID, b.Scope.KeyID),
			cmp.Compare(a.Scope.Model, b.Scope.Model),
		)
	})
	return list
}

// with returns a state in which the provider's record is r.
func (s *state) with(provider string, r record) *state {
	next := &state{
		providers: make(map[string]record, len(s.providers)+1),
		standings: s.standings - len(s.providers[provider].standings) + len(r.standings),
	}
	for name, other := range s.providers {
		if name != provider {
			next.providers[name] = other
		}
	}
	if r.failures > 0 || len(r.standings) > 0 {
		next.providers[provider] = r
	}
	return next
}
