package config

import (
	"slices"
	"strings"

	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

func surfaces() []string {
	return []string{string(wire.Chat), string(wire.Responses), string(wire.Messages), string(wire.Embeddings)}
}

func vendorTypes() []string {
	var types []string
	for _, v := range provider.Vendors() {
		types = append(types, v.Type)
	}
	return types
}

func (l *loader) providers(v value) {
	l.providersGiven = true
	list, ok := l.entries(v)
	if !ok {
		return
	}
	if len(list) == 0 {
		l.fail(v.at, "no provider; add one, or leave the key out to take them from OPENAI_API_KEY and the like")
	}
	for _, e := range list {
		l.provider(e.key, e.value)
	}
}

func (l *loader) provider(identity string, v value) {
	switch err := checkName(identity); {
	case err != nil:
		l.fail(v.at, "the provider identity %v; write for example openai-main", err)
	case strings.Contains(identity, "/"):
		l.fail(v.at, "the provider identity has a / in it, which separates provider and model; write for example openai-main")
	}
	p := &provider.Provider{Identity: identity, StickyKeys: true, Billing: provider.PayAsYouGo}
	var keys, models *value
	var own preset
	billing := string(p.Billing)
	ok := l.secretive(v, slices.Concat([]field{
		{name: "type", missing: oneOf(vendorTypes()), read: l.enum(&p.Type, vendorTypes()...)},
		{name: "base_url", read: l.baseURL(p)},
		{name: "surfaces", read: l.surfaces(&p.Surfaces)},
		{name: "api_keys", read: func(v value) { keys = &v }},
		{name: "session_sticky_keys", read: l.boolean(&p.StickyKeys)},
		{name: "billing_model", read: l.enum(&billing,
			string(provider.Subscription), string(provider.PayAsYouGo), string(provider.Free))},
	}, l.presetFields(&own), []field{
		{name: "translation", read: l.ownTranslation(p)},
		{name: "models", read: func(v value) { models = &v }},
	})...)
	p.Billing = provider.Billing(billing)
	vendor, known := provider.VendorOf(p.Type)
	if known {
		l.apply(p, vendor, own, v.at.key)
	}
	if p.Surfaces == nil {
		p.Surfaces = vendor.Surfaces
	}
	if keys != nil {
		l.apiKeys(p, *keys)
	} else if known {
		l.vendorKeys(p, vendor, v.at.key("api_keys"))
	}
	if models != nil {
		l.models(p, vendor, *models)
	} else if known {
		l.presetModels(p, vendor, v.at.key("models"))
	}
	if !ok || !known {
		return
	}
	l.cfg.Providers = append(l.cfg.Providers, p)
}

func (l *loader) baseURL(p *provider.Provider) func(value) {
	return func(v value) {
		s, ok := l.text(v)
		if !ok {
			return
		}
		base, err := parseBaseURL(s)
		if err != nil {
			l.fail(l.valueAt(v), "%v", err) // not shown: it may hold a password
			return
		}
		p.BaseURL = base
		l.baseAt[p.Identity] = l.valueAt(v)
	}
}

func (l *loader) surfaces(into *[]wire.Surface) func(value) {
	return func(v value) {
		*into = []wire.Surface{}
		seen := map[string]bool{}
		ok := l.list(v, func(_ int, item value) {
			var s string
			if l.enum(&s, surfaces()...)(item); s == "" {
				return
			}
			if seen[s] {
				l.fail(item.at, "%s is listed twice", s)
				return
			}
			seen[s] = true
			*into = append(*into, wire.Surface(s))
		})
		if ok && len(seen) == 0 && !l.problems.under(v.at.path) {
			l.fail(l.valueAt(v), "empty; list at least one of %s", strings.Join(surfaces(), ", "))
		}
	}
}

// environmentProviders are the providers when no file names any.
func (l *loader) environmentProviders() {
	for _, vendor := range provider.Vendors() {
		if p := l.environmentPreset(vendor); p != nil {
			l.cfg.Providers = append(l.cfg.Providers, p)
		}
	}
	if len(l.cfg.Providers) == 0 && len(l.problems) == 0 {
		l.fail(place{path: "providers"}, "no provider; set OPENAI_API_KEY, ANTHROPIC_API_KEY or the key of another type, write a %s, or try it with --demo", defaultPath)
	}
}

// environmentBaseURL follows the vendors' own programs: Anthropic's add the version segment
// to ANTHROPIC_BASE_URL, as the clients of local servers do, OpenAI's do not.
func (l *loader) environmentBaseURL(vendor provider.Vendor, s string) string {
	base, err := parseBaseURL(s)
	if err != nil {
		l.fail(variable(vendor.Env+"_BASE_URL"), "%v", err)
		return vendor.BaseURL
	}
	if vendor.Version != "" && !strings.HasSuffix(base, vendor.Version) {
		base += vendor.Version
	}
	return base
}

// finishProviders refuses an upstream that is switchboard itself, as when OPENAI_BASE_URL
// is set for the clients and seen by the server as well: a request would never end.
func (l *loader) finishProviders() {
	for _, p := range l.cfg.Providers {
		if at, given := l.baseAt[p.Identity]; given && !l.lambda && reaches(p.BaseURL, l.cfg.Listen) {
			l.fail(at, "this is where switchboard itself listens; write the provider's own address")
		}
	}
}
