package provider

import (
	"math"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
)

// CatalogModels returns the models of a vendor with prices from the embedded catalog.
// It decodes the catalog: call it at the start only, and only when needed.
func CatalogModels(v Vendor) []Model {
	if v.Catalog == "" {
		return nil
	}
	for _, p := range embedded.GetAll() {
		if string(p.ID) != v.Catalog {
			continue
		}
		models := make([]Model, 0, len(p.Models))
		for _, m := range p.Models {
			models = append(models, Model{ID: m.ID, Upstream: m.ID, Pricing: catalogPricing(m)})
		}
		return models
	}
	return nil
}

// catalogPricing turns the catalog's prices into ours. Its "in cached" is the price of a
// cache write and its "out cached" that of a cache read, as its Anthropic entries show; 0
// is a price that it does not know. A model without both main prices has none.
func catalogPricing(m catwalk.Model) *Pricing {
	in, out := catalogRate(m.CostPer1MIn), catalogRate(m.CostPer1MOut)
	if in == nil || out == nil {
		return nil
	}
	return &Pricing{Rates: Rates{
		Input:       in,
		CachedInput: catalogRate(m.CostPer1MOutCached),
		CacheWrite:  catalogRate(m.CostPer1MInCached),
		Output:      out,
	}}
}

// catalogRate rounds away what binary fractions add (0.09999999999999999 is 0.1).
func catalogRate(usd float64) *NanoUSD {
	if !(usd > 0) || usd > 1e6 {
		return nil
	}
	n := NanoUSD(math.Round(usd * 1e9))
	return &n
}
