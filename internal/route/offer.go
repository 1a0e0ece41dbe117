package route

import (
	"sync/atomic"

	"switchboard/internal/affinity"
	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// target is a provider and a model it can serve.
type target struct {
	account *account
	model   provider.Model
}

// group is the members of a name, with the strategy that orders them.
type group struct {
	strategy strategy
	turn     rotation
	members  []member
}

// member is a target or a nested group.
type member struct {
	target *target
	group  *group
	weight int
}

// offer is what a name offers on one surface: its group without what cannot serve there,
// whatever the health. Immutable.
type offer struct {
	reason   string
	root     *branch // nil when nobody can serve
	targets  []seat
	branches int
	slots    int         // targets x keys
	excluded []Exclusion // for good: surface, no_key
	served   bool        // somebody speaks the surface
}

// seat is a target of an offer, at most one for a provider and model.
type seat struct {
	*target
	as    wire.Surface // in which it is called
	mixed bool         // others are called in another
	slot  int          // of its first key; a slot is a (target, key)
}

// branch is a group of an offer.
type branch struct {
	strategy strategy
	turn     rotation
	id       int
	members  []twig
	// rotating is how many members, from the first on, take turns: those that speak the
	// surface, if there are any, else all. The others come behind them.
	rotating int
	sequence []uint16 // of a weighted rotation: positions in members
	reach    []int    // all targets below, each once
}

// twig is a member of a branch.
type twig struct {
	target int     // in offer.targets, when branch is nil
	branch *branch // nested
	weight int
	// translated: nobody there speaks the surface
	translated bool
}

const surfaceCount = 4

// surfaces lists what offers are kept for.
func surfaces() [surfaceCount]wire.Surface {
	return [...]wire.Surface{wire.Messages, wire.Chat, wire.Embeddings, wire.Responses}
}

// offers keeps a name's offer per surface, with those who need a translation and without. They are made when they are first asked for: a
// vendor's catalog has hundreds of models, of which a process meets a few.
type offers [2 * surfaceCount]atomic.Pointer[offer]

func (n *name) offer(s wire.Surface, native bool) *offer {
	for i, known := range surfaces() {
		if known != s {
			continue
		}
		if native {
			i += surfaceCount
		}
		if o := n.offers[i].Load(); o != nil {
			return o
		}
		o := newOffer(n, s, native)
		n.offers[i].Store(o) // another goroutine may have stored an equal one
		return o
	}
	return newOffer(n, s, native)
}

func newOffer(n *name, s wire.Surface, native bool) *offer {
	b := builder{
		offer: &offer{reason: n.reason}, surface: s, native: native,
		seats: map[place]int{}, branches: map[*group]*branch{}, out: map[place]bool{},
	}
	b.offer.root = b.branch(n.group)
	b.offer.branches = len(b.branches)
	mixed := false
	for i := range b.offer.targets {
		mixed = mixed || b.offer.targets[i].as != b.offer.targets[0].as
	}
	for i := range b.offer.targets {
		b.offer.targets[i].mixed = mixed
	}
	return b.offer
}

// place is what makes targets the same: the provider and the model as it knows it.
type place struct{ identity, model string }

type builder struct {
	offer    *offer
	surface  wire.Surface
	native   bool
	seats    map[place]int
	branches map[*group]*branch
	out      map[place]bool
}

// branch returns nil for a group in which nobody can serve.
func (b *builder) branch(g *group) *branch {
	if known, ok := b.branches[g]; ok {
		return known
	}
	made := &branch{strategy: g.strategy, turn: g.turn}
	seen := map[int]bool{}
	reach := func(targets ...int) {
		for _, t := range targets {
			if !seen[t] {
				seen[t] = true
				made.reach = append(made.reach, t)
			}
		}
	}
	for _, m := range g.members {
		t := twig{weight: m.weight}
		if m.group != nil {
			if t.branch = b.branch(m.group); t.branch == nil {
				continue
			}
			reach(t.branch.reach...)
			t.translated = !b.speaks(t.branch.reach)
		} else {
			at, ok := b.seat(m.target)
			if !ok {
				continue
			}
			t.target = at
			reach(at)
			t.translated = !b.speaks([]int{at})
		}
		made.members = append(made.members, t)
	}
	if len(made.members) == 0 {
		made = nil
	} else {
		made.rotating = len(made.members)
		if _, turns := made.strategy.(roundRobin); turns {
			made.rotating = speakersFirst(made.members)
		}
		made.sequence = sequence(made.members[:made.rotating])
		made.id = len(b.branches)
	}
	b.branches[g] = made
	return made
}

// seat finds or makes the place of a target; false when it cannot serve.
func (b *builder) seat(t *target) (at int, ok bool) {
	p := t.account.provider
	key := place{p.Identity, t.model.Upstream}
	if at, ok = b.seats[key]; ok || b.out[key] {
		return at, ok
	}
	reason := ""
	as, serves := p.As(b.surface)
	switch {
	case !serves, b.native && as != b.surface:
		reason = OutSurface
	case len(t.account.keys) == 0:
		b.offer.served = true
		reason = OutNoKey
	}
	if reason != "" {
		b.out[key] = true
		b.offer.excluded = append(b.offer.excluded, Exclusion{Provider: key.identity, Model: key.model, Reason: reason})
		return 0, false
	}
	o := b.offer
	o.served = true
	at = len(o.targets)
	b.seats[key] = at
	o.targets = append(o.targets, seat{target: t, as: as, slot: o.slots})
	o.slots += len(t.account.keys)
	return at, true
}

// speaks tells whether one of the targets needs no translation.
func (b *builder) speaks(targets []int) bool {
	for _, at := range targets {
		if b.offer.targets[at].as == b.surface {
			return true
		}
	}
	return false
}

// seatOf finds where a pin points, whatever the key; nil when that is no candidate.
func (o *offer) seatOf(to *affinity.Target) *seat {
	for i := range o.targets {
		s := &o.targets[i]
		if s.model.Upstream == to.Model && s.account.provider.Identity == to.Provider {
			return s
		}
	}
	return nil
}

func (s *seat) attempt(key int) Attempt {
	return Attempt{Provider: s.account.provider, Key: s.account.keys[key], Model: s.model, As: s.as, Mixed: s.mixed}
}
