package route

import (
	"cmp"
	"slices"
)

// cost takes the cheapest member first, those without a price last. Of those that cost the
// same it takes the ones that speak the surface first, else as they are written.
type cost struct{}

func (cost) order(dst []int, b *branch, w *walk) []int {
	prices := w.pricesOf(b)
	slices.SortStableFunc(prices, func(x, y price) int {
		return cmp.Or(x.compare(y), b.members[x.position].lastIfTranslated()-b.members[y.position].lastIfTranslated())
	})
	return positions(dst, prices)
}
