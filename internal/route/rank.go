package route

import (
	"cmp"
	"slices"

	"switchboard/internal/provider"
)

// rank orders the providers of a plain model name: those that speak the surface first, then by billing model, what costs nothing
// more first, then by cost, then by identity (DESIGN 5). Its members are targets.
type rank struct{}

func (rank) order(dst []int, b *branch, w *walk) []int {
	prices := w.pricesOf(b)
	providerOf := func(p price) *provider.Provider {
		return w.offer.targets[b.members[p.position].target].account.provider
	}
	slices.SortStableFunc(prices, func(x, y price) int {
		p, q := providerOf(x), providerOf(y)
		return cmp.Or(
			b.members[x.position].lastIfTranslated()-b.members[y.position].lastIfTranslated(),
			cmp.Compare(billingRank(p.Billing), billingRank(q.Billing)),
			x.compare(y),
			cmp.Compare(p.Identity, q.Identity),
		)
	})
	return positions(dst, prices)
}

func billingRank(b provider.Billing) int {
	switch b {
	case provider.Subscription:
		return 0
	case provider.Free:
		return 2
	}
	return 1
}
