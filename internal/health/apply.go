package health

import (
	"maps"
	"time"
)

// maxStandings bounds what is remembered of one provider. Model names may come from
// clients (a provider that lists no models takes any), so without it they could grow the
// board without end.
const maxStandings = 1024

// indifferent tells, from the state alone, that a report changes nothing.
func (s *state) indifferent(o Outcome) bool {
	switch o.Class {
	case OK, Request, ClientGone:
	default:
		return false
	}
	r, known := s.providers[o.Provider]
	if !known {
		return true
	}
	for _, scope := range covering(o.Provider, o.KeyID, o.Model) {
		if _, bad := r.standings[scope]; bad {
			return false
		}
	}
	return r.failures == 0 || o.Class == ClientGone
}

// apply is the whole state machine: what is known after an outcome at now (DESIGN 5,
// degradation table).
func apply(settings Settings, s *state, o Outcome, now time.Time) *state {
	old := s.providers[o.Provider]
	r := record{failures: old.failures, standings: maps.Clone(old.standings)}
	if r.standings == nil {
		r.standings = map[Scope]standing{}
	}
	r.release(o)
	switch o.Class {
	case OK:
		r.succeed(o, now)
	case Request:
		r.alive(o.Provider)
	case ClientGone:
	case ServerError, Connection, Timeout:
		r.failures++
		scope := Scope{Provider: o.Provider}
		if _, was := r.standings[scope]; was || r.failures >= settings.ServerErrorAfter {
			r.degrade(settings, scope, o, now)
		}
	default:
		if scope, ok := scopeOf(o); ok {
			r.degrade(settings, scope, o, now)
		}
	}
	r.forget()
	return s.with(o.Provider, r)
}

// scopeOf is what a failure of one call condemns at once.
func scopeOf(o Outcome) (Scope, bool) {
	switch o.Class {
	case RateLimited:
		return Scope{Provider: o.Provider, KeyID: o.KeyID, Model: o.Model}, true
	case NoCredit, Unauthorized:
		return Scope{Provider: o.Provider, KeyID: o.KeyID}, true
	case Overloaded, ModelNotFound:
		return Scope{Provider: o.Provider, Model: o.Model}, true
	}
	return Scope{}, false
}

// release ends the leases of a target's trial, however it ended.
func (r *record) release(o Outcome) {
	for _, scope := range covering(o.Provider, o.KeyID, o.Model) {
		if s, bad := r.standings[scope]; bad && !s.lease.IsZero() {
			s.lease = time.Time{}
			r.standings[scope] = s
		}
	}
}

// succeed clears what a success disproves: everything that covers its target, and nothing
// beside it. A rate limit that still runs stays: nobody was sent there since, so the
// success was admitted before the limit was reached.
func (r *record) succeed(o Outcome, now time.Time) {
	r.failures = 0
	for _, scope := range covering(o.Provider, o.KeyID, o.Model) {
		if s, bad := r.standings[scope]; bad && !(s.class == RateLimited && s.active(now)) {
			delete(r.standings, scope)
		}
	}
}

// alive clears what a proper answer disproves, even one that says the request is wrong.
func (r *record) alive(provider string) {
	r.failures = 0
	scope := Scope{Provider: provider}
	switch r.standings[scope].class {
	case ServerError, Connection, Timeout:
		delete(r.standings, scope)
	}
}

// degrade begins a degradation or, when the last one has run out without a success, the
// next and longer one. While one runs, only requests that were under way when it began
// can fail: they are no news, so they neither lengthen nor shorten it; a Retry-After is
// the provider's own and newest word and replaces a time.
func (r *record) degrade(settings Settings, scope Scope, o Outcome, now time.Time) {
	old, was := r.standings[scope]
	next := standing{class: o.Class, times: old.times + 1}
	wait, asked := settings.wait(o, next.times)
	running := was && old.active(now)
	switch {
	case o.Class == Unauthorized && o.KeyID != "":
		next.forGood = true
	case running && (old.forGood || !asked && !settings.longer(old, o, now)):
		return
	case running:
		next.times = old.times
		wait, _ = settings.wait(o, next.times)
		next.until = now.Add(wait)
	default:
		next.until = now.Add(wait)
	}
	r.standings[scope] = next
}

// longer tells whether another class of failure condemns the scope for longer than what
// stands: a key without credit outlasts a short limit, a model not found an overload.
func (settings Settings) longer(old standing, o Outcome, now time.Time) bool {
	if old.class == o.Class || providerScope(old.class) && providerScope(o.Class) {
		return false
	}
	wait, _ := settings.wait(o, max(old.times, 1))
	return now.Add(wait).After(old.until)
}

func providerScope(c Class) bool { return c == ServerError || c == Connection || c == Timeout }

// wait is how long the times-th degradation in a row lasts, and whether the provider asked
// for that time.
func (settings Settings) wait(o Outcome, times int) (wait time.Duration, asked bool) {
	switch o.Class {
	case RateLimited:
		switch {
		case o.RetryAfter > 0:
			return o.RetryAfter, true
		case o.Subscription:
			return settings.SubscriptionRateLimit, false
		}
		return settings.RateLimit, false
	case NoCredit, Unauthorized: // Unauthorized without a key: there is no text to change
		return doubled(settings.NoCredit, settings.NoCreditMax, times), false
	case Overloaded:
		if o.RetryAfter > 0 {
			return o.RetryAfter, true
		}
		return doubled(settings.Overload, settings.OverloadMax, times), false
	case ServerError, Connection:
		return doubled(settings.ServerError, settings.ServerErrorMax, times), false
	case Timeout:
		return doubled(settings.Timeout, settings.TimeoutMax, times), false
	case ModelNotFound:
		return settings.ModelNotFound, false
	}
	return 0, false
}

// doubled is base for the first time, twice that for the second, up to limit.
func doubled(base, limit time.Duration, times int) time.Duration {
	limit = max(limit, base)
	for wait := base; ; wait *= 2 {
		if times <= 1 || wait <= 0 {
			return wait
		}
		if wait >= limit-wait {
			return limit
		}
		times--
	}
}

// forget drops what ran out first when there is too much to remember; a scope that was
// dropped is simply tried again.
func (r *record) forget() {
	for len(r.standings) > maxStandings {
		var oldest Scope
		found := false
		for scope, s := range r.standings {
			if !s.forGood && (!found || s.until.Before(r.standings[oldest].until)) {
				oldest, found = scope, true
			}
		}
		if !found {
			return // one per key, and keys are configured
		}
		delete(r.standings, oldest)
	}
}

// probe takes the leases for a trial; false when the target is degraded or on trial by
// another request.
func probe(s *state, provider, keyID, model string, now time.Time, lease time.Duration) (*state, bool) {
	switch s.status(provider, keyID, model, now).State {
	case Degraded:
		return s, false
	case Healthy:
		return s, true
	}
	old := s.providers[provider]
	r := record{failures: old.failures, standings: maps.Clone(old.standings)}
	for _, scope := range covering(provider, keyID, model) {
		if standing, bad := r.standings[scope]; bad {
			standing.lease = now.Add(lease)
			r.standings[scope] = standing
		}
	}
	return s.with(provider, r), true
}
