package route

import (
	"switchboard/internal/affinity"
	"switchboard/internal/health"
)

// Plan decides. It is pure: no I/O, no clock, no randomness but Draw.
//
// A viable pin comes first, whatever the strategy and the prices; the rest is in More. It
// draws nothing, unless the keys of its provider take turns. Otherwise the strategy orders the targets, and each target's keys follow
// one another. A pin that is not viable leaves the order to the strategy: ReasonFallback.
func (c *Catalog) Plan(in Input) Decision {
	n := c.find(in.Model)
	if n == nil {
		return Decision{Reason: ReasonUnavailable}
	}
	o := n.offer(in.Surface, in.Native)
	d := Decision{Reason: o.reason, Known: true, Served: o.served}
	if in.Home != nil {
		o.goHome(&d, &in)
		return d
	}
	d.Excluded = o.exclusions(in.Health)
	if in.Pin != nil {
		if d.Attempts = o.pinned(&in); len(d.Attempts) > 0 {
			d.Reason = ReasonAffinity
			if o.slots > len(d.Attempts) {
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

// pinned is the attempt at the pin's target, if that is a candidate and not degraded. Of a
// provider whose keys take turns it is one for each of them.
func (o *offer) pinned(in *Input) []Attempt {
	s := o.seatOf(&in.Pin.Target)
	if s == nil {
		return nil
	}
	if s.account.loose() {
		return newWalk(o, *in).pinned(s)
	}
	key := s.account.key(&in.Pin.Target)
	if key < 0 {
		return nil
	}
	a := s.attempt(key)
	a.Pinned = true
	state := s.status(in.Health, key).State
	a.Trial = state == health.Trial
	if state == health.Degraded {
		return nil
	}
	return []Attempt{a}
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

// pinTo is where the pin of a request that this key serves points.
func (s *seat) pinTo(key int) affinity.Target {
	to := affinity.Target{Provider: s.account.provider.Identity, Model: s.model.Upstream}
	if !s.account.loose() {
		to.KeyID, to.KeyPrint = s.account.keys[key].ID, s.account.keys[key].Print
	}
	return to
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
