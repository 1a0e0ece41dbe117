package route

import (
	"cmp"
	"slices"
)

// strategy puts the members of a branch in the order in which they are tried.
type strategy interface {
	// order appends every position of b.members to dst once. It keeps nothing of w.
	order(dst []int, b *branch, w *walk) []int
}

// tunable is a strategy of which a virtual model can say more; false when it says nonsense.
type tunable interface {
	tune(v *Virtual) (strategy, bool)
}

// named is a strategy of virtual models; its name is also its reason.
type named struct {
	name string
	strategy
}

// strategies lists what a virtual model can have, the default first.
func strategies() []named {
	return []named{
		{ReasonRoundRobin, roundRobin{}},
		{ReasonCost, cost{}},
		{ReasonFailover, failover{}},
		{ReasonAdaptive, adaptive{}},
	}
}

func strategyNamed(name string) (s strategy, reason string, ok bool) {
	list := strategies()
	if name == "" {
		name = list[0].name
	}
	for _, n := range list {
		if n.name == name {
			return n.strategy, n.name, true
		}
	}
	return nil, "", false
}

func strategyNames() []string {
	var names []string
	for _, n := range strategies() {
		names = append(names, n.name)
	}
	return names
}

// price is what a member is estimated to cost.
type price struct {
	position int
	nano     int64
	known    bool
}

// compare puts what is known and cheap first.
func (p price) compare(other price) int {
	switch {
	case p.known != other.known && p.known:
		return -1
	case p.known != other.known:
		return 1
	}
	return cmp.Compare(p.nano, other.nano)
}

// pricesOf estimates the members of a branch, in order. Valid until the next call.
func (w *walk) pricesOf(b *branch) []price {
	prices := w.prices[:0]
	for i := range b.members {
		prices = append(prices, w.priceOf(i, &b.members[i]))
	}
	w.prices = prices[:0]
	return prices
}

// priceOf is the target's estimate, or the cheapest one below a nested branch.
func (w *walk) priceOf(position int, t *twig) price {
	if t.branch == nil {
		nano, known := w.offer.targets[t.target].model.Pricing.Estimate(w.in.EstimatedInput)
		return price{position, nano, known}
	}
	best := price{position: position}
	for _, at := range t.branch.reach {
		nano, known := w.offer.targets[at].model.Pricing.Estimate(w.in.EstimatedInput)
		if p := (price{position, nano, known}); p.compare(best) < 0 {
			best = p
		}
	}
	return best
}

// positions appends where the prices stand, in their order.
func positions(dst []int, prices []price) []int {
	dst = slices.Grow(dst, len(prices))
	for _, p := range prices {
		dst = append(dst, p.position)
	}
	return dst
}
