package route

import (
	"switchboard/internal/affinity"
	"switchboard/internal/health"
)

// Plan decides. It is pure: no I/O, no clock, no randomness but Draw.
//
// A viable pin comes first, whatever the strategy and the prices, and draws nothing; the
// rest is in More. Otherwise the strategy orders the targets, and each target's keys follow
// one another. A pin that is not viable leaves the order to the strategy: ReasonFallback.
func (c *Catalog) Plan(in Input) Decision {
	n := c.find(in.Model)
	if n == nil {
		return Decision{Reason: ReasonUnavailable}
	}
	o := n.offer(in.Surface)
	d := Decision{Reason: o.reason, Known: true, Served: o.served}
	if in.Home != nil {
		o.goHome(&d, &in)
		return d
	}
	d.Excluded = o.exclusions(in.Health)
	if in.Pin != nil {
		if a, ok := o.pinned(&in); ok {
			d.Reason, d.Attempts = ReasonAffinity, []Attempt{a}
			if o.slots > 1 {
				d.offer, d.in = o, in
			}
			return d
		}
		d.Reason = ReasonFallback
	}
	d.Attempts = newWalk(o, in).run()
	if len(d.Attempts) == 0 {
		d.Reason = ReasonUnavailable
	}
	return d
}

// pinned is the attempt at the pin's target, if that is a candidate and not degraded.
func (o *offer) pinned(in *Input) (Attempt, bool) {
	s, key, ok := o.slotOf(&in.Pin.Target)
	if !ok {
		return Attempt{}, false
	}
	a := s.attempt(key)
	a.Pinned = true
	state := s.status(in.Health, key).State
	a.Trial = state == health.Trial
	return a, state != health.Degraded
}

// goHome plans a request that may only go where its previous response lives.
func (o *offer) goHome(d *Decision, in *Input) {
	d.Reason = ReasonUnavailable
	home, homeKey := o.homeSeat(in.Home)
	for i := range o.targets {
		s := &o.targets[i]
		for key := range s.account.keys {
			out := s.exclusion(key)
			switch status := s.status(in.Health, key); {
			case s != home || key != homeKey:
				out.Reason = OutHome
			case status.State == health.Degraded:
				out.Reason, out.Status = OutDegraded, status
			default:
				a := s.attempt(key)
				a.Trial = status.State == health.Trial
				a.Pinned = in.Pin != nil && in.Pin.Same(s.pinTo(key))
				d.Reason, d.Attempts = ReasonAffinity, []Attempt{a}
				continue
			}
			d.Excluded = append(d.Excluded, out)
		}
	}
	d.Excluded = append(d.Excluded, o.excluded...)
	if home == nil {
		d.Excluded = append(d.Excluded, Exclusion{
			Provider: in.Home.Provider, KeyID: in.Home.KeyID, Model: in.Home.Model, Reason: OutUnknown,
		})
	}
}

// homeSeat is the candidate at the home's provider and key: the home's own model, or what
// else the name means there, since a conversation may go on with another model.
func (o *offer) homeSeat(home *affinity.Target) (found *seat, key int) {
	for i := range o.targets {
		s := &o.targets[i]
		if s.account.provider.Identity != home.Provider {
			continue
		}
		at := s.account.key(home)
		if at < 0 {
			continue
		}
		if s.model.Upstream == home.Model {
			return s, at
		}
		if found == nil {
			found, key = s, at
		}
	}
	return found, key
}

// exclusions lists the candidates that cannot serve now. While nothing is degraded that is
// the offer's own list.
func (o *offer) exclusions(view health.View) []Exclusion {
	list := o.excluded[:len(o.excluded):len(o.excluded)]
	if view == nil || view.Quiet() {
		return list
	}
	for i := range o.targets {
		s := &o.targets[i]
		for key := range s.account.keys {
			if status := s.status(view, key); status.State == health.Degraded {
				out := s.exclusion(key)
				out.Reason, out.Status = OutDegraded, status
				list = append(list, out)
			}
		}
	}
	return list
}

// pinTo is where a pin to the seat with that key points.
func (s *seat) pinTo(key int) affinity.Target {
	k := &s.account.keys[key]
	return affinity.Target{Provider: s.account.provider.Identity, KeyID: k.ID, KeyPrint: k.Print, Model: s.model.Upstream}
}

func (s *seat) exclusion(key int) Exclusion {
	return Exclusion{Provider: s.account.provider.Identity, KeyID: s.account.keys[key].ID, Model: s.model.Upstream}
}

func (s *seat) status(view health.View, key int) health.Status {
	if view == nil || view.Quiet() {
		return health.Status{}
	}
	return view.Status(s.account.provider.Identity, s.account.keys[key].ID, s.model.Upstream)
}
