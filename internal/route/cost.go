package route

import "slices"

// cost takes the cheapest member first, those without a price last, and those that cost
// the same as they are written.
type cost struct{}

func (cost) order(dst []int, b *branch, w *walk) []int {
	prices := w.pricesOf(b)
	slices.SortStableFunc(prices, price.compare)
	return positions(dst, prices)
}
