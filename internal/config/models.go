package config

import (
	"cmp"
	"slices"
	"strconv"

	"switchboard/internal/provider"
)

// catalog is the embedded list of a vendor's models. Decoding it costs milliseconds, so it
// is only asked for when a provider lists no models or a model has no price.
func (l *loader) catalog(vendor provider.Vendor) []provider.Model {
	models, have := l.catalogs[vendor.Type]
	if !have {
		models = provider.CatalogModels(vendor)
		l.catalogs[vendor.Type] = models
	}
	return slices.Clone(models)
}

func (l *loader) models(p *provider.Provider, vendor provider.Vendor, v value) {
	seen := map[string]bool{}
	ok := l.list(v, func(_ int, item value) {
		m, ok := l.model(item)
		if !ok {
			return
		}
		if seen[m.ID] {
			l.fail(item.at, "the model %s is listed twice", show(m.ID))
			return
		}
		seen[m.ID] = true
		if m.Pricing == nil && vendor.Type != "" {
			m.Pricing = l.catalogPrice(vendor, m)
			m.ListPrice = m.Pricing != nil
		}
		p.Models = append(p.Models, m)
	})
	if ok && len(p.Models) == 0 && !l.problems.under(v.at.path) {
		l.fail(l.valueAt(v), "empty; list at least one model, or leave the key out for the catalog's list")
	}
}

// catalogPrice finds a model by its name upstream; a deployment by the name clients use too,
// as its own says nothing.
func (l *loader) catalogPrice(vendor provider.Vendor, m provider.Model) *provider.Pricing {
	var byID *provider.Pricing
	for _, known := range l.catalog(vendor) {
		switch {
		case known.Upstream == m.Upstream:
			return known.Pricing
		case vendor.Deployments && known.ID == m.ID:
			byID = known.Pricing
		}
	}
	return byID
}

// model reads a name or an object.
func (l *loader) model(item value) (m provider.Model, ok bool) {
	name := func(into *string) func(value) {
		return func(v value) {
			s, text := l.text(v)
			if !text {
				ok = false
				return
			}
			if err := checkName(s); err != nil {
				l.fail(l.valueAt(v), "the model name %v; write for example gpt-5", err)
				ok = false
			}
			*into = s
		}
	}
	ok = true
	if kind(l.plain(item.node)) != "a mapping" {
		name(&m.ID)(item)
	} else {
		l.object(item,
			field{name: "id", missing: "the name that clients use", read: name(&m.ID)},
			field{name: "upstream_model", read: name(&m.Upstream)},
			field{name: "pricing", read: func(v value) { m.Pricing = l.pricing(v) }},
		)
	}
	m.Upstream = cmp.Or(m.Upstream, m.ID)
	return m, ok && m.ID != ""
}

func (l *loader) pricing(v value) *provider.Pricing {
	p := &provider.Pricing{}
	fields := append(l.rates(&p.Rates),
		field{name: "service_tiers", read: func(v value) { p.ServiceTiers = l.serviceTiers(v) }},
		field{name: "above_input_tokens", read: func(v value) { p.Above = l.aboveTiers(v) }},
	)
	l.object(v, fields...)
	return p
}

func (l *loader) rates(r *provider.Rates) []field {
	return []field{
		{name: "input_per_mtok", read: l.rate(&r.Input)},
		{name: "cached_input_per_mtok", read: l.rate(&r.CachedInput)},
		{name: "cache_write_per_mtok", read: l.rate(&r.CacheWrite)},
		{name: "cache_write_1h_per_mtok", read: l.rate(&r.CacheWrite1h)},
		{name: "output_per_mtok", read: l.rate(&r.Output)},
		{name: "audio_input_per_mtok", read: l.rate(&r.AudioInput)},
		{name: "audio_output_per_mtok", read: l.rate(&r.AudioOutput)},
	}
}

// rate reads USD per million tokens from the text of the number: a float would round it.
func (l *loader) rate(into **provider.NanoUSD) func(value) {
	return func(v value) {
		s, ok := l.scalar(v)
		if !ok {
			l.fail(l.valueAt(v), "found %s where a price belongs; write US dollars per million tokens, for example 2.50", kind(l.plain(v.node)))
			return
		}
		price, err := provider.ParseUSDPerMTok(s)
		if err != nil {
			l.fail(l.valueAt(v), "%v; write US dollars per million tokens, for example 2.50", err)
			return
		}
		*into = &price
	}
}

func (l *loader) serviceTiers(v value) map[string]provider.Tier {
	list, _ := l.entries(v)
	tiers := make(map[string]provider.Tier, len(list))
	for _, e := range list {
		if err := checkName(e.key); err != nil {
			l.fail(e.value.at, "the service tier %v; write the name that the provider answers with, for example flex", err)
			continue
		}
		tier := provider.Tier{Numerator: 1, Denominator: 1}
		fields := append(l.rates(&tier.Rates), field{name: "factor", read: func(v value) {
			s, _ := l.scalar(v) // none is "", which is no number
			n, d, err := provider.FactorOf(s)
			if err != nil {
				l.fail(l.valueAt(v), "%v; write what the standard price is multiplied by, for example 0.5", err)
				return
			}
			tier.Numerator, tier.Denominator = n, d
		}})
		if list, ok := l.entries(e.value); ok && len(list) == 0 {
			l.fail(e.value.at, "empty; write a factor or prices")
			continue
		}
		l.object(e.value, fields...)
		tiers[e.key] = tier
	}
	return tiers
}

func (l *loader) aboveTiers(v value) []provider.AboveTier {
	list, _ := l.entries(v)
	var tiers []provider.AboveTier
	for _, e := range list {
		tokens, err := strconv.ParseInt(e.key, 10, 64)
		if err != nil || tokens <= 0 {
			l.fail(e.value.at, "not a number of tokens above zero; write for example 200000")
			continue
		}
		tier := provider.AboveTier{Tokens: tokens}
		if list, ok := l.entries(e.value); ok && len(list) == 0 {
			l.fail(e.value.at, "empty; write the prices that differ")
			continue
		}
		l.object(e.value, l.rates(&tier.Rates)...)
		tiers = append(tiers, tier)
	}
	slices.SortFunc(tiers, func(a, b provider.AboveTier) int { return cmp.Compare(a.Tokens, b.Tokens) })
	for i := 1; i < len(tiers); i++ {
		if tiers[i].Tokens == tiers[i-1].Tokens { // 200000 and 0200000 are two keys
			l.fail(v.at, "%d tokens is given twice", tiers[i].Tokens)
		}
	}
	return tiers
}
