package config

import (
	"strings"

	"switchboard/internal/provider"
)

// preset is what a provider's type needs beside what all have, and what of it differs from
// the type's default. From a file or from the environment.
type preset struct {
	resource, apiVersion, region setting
	streamOptions, sessionHint   flag
}

// setting is a text and where it was found; the place tells where it is missing otherwise.
type setting struct {
	text  string
	at    place
	given bool
}

// flag is a boolean that may be left out.
type flag struct{ given, value bool }

func (f flag) or(otherwise bool) bool {
	if f.given {
		return f.value
	}
	return otherwise
}

func (l *loader) flag(into *flag) func(value) {
	return func(v value) {
		into.given = true
		l.boolean(&into.value)(v)
	}
}

func (l *loader) setting(into *setting) func(value) {
	return func(v value) {
		if s, ok := l.text(v); ok {
			*into = setting{s, l.valueAt(v), true}
		}
	}
}

// presetFields are the keys of a preset.
func (l *loader) presetFields(s *preset) []field {
	return []field{
		{name: "stream_options", read: l.flag(&s.streamOptions)},
		{name: "session_hint", read: l.flag(&s.sessionHint)},
		{name: "resource", read: l.setting(&s.resource)},
		{name: "api_version", read: l.setting(&s.apiVersion)},
		{name: "region", read: l.setting(&s.region)},
	}
}

// apply gives a provider what its type has, and says exactly what is missing for its address.
// p.BaseURL is what was configured, or empty; at is where keys that are missing belong.
func (l *loader) apply(p *provider.Provider, vendor provider.Vendor, s preset, at func(key string) place) {
	p.StreamOptions = s.streamOptions.or(!vendor.NoStreamOptions)
	p.SessionHint = s.sessionHint.or(vendor.HintByDefault)
	if s.sessionHint.given && s.sessionHint.value && len(vendor.Hints) == 0 {
		l.fail(at("session_hint"), "type %s takes no hint of the session; leave it out", vendor.Type)
	}
	switch {
	case vendor.Deployments:
		l.locateDeployments(p, s, at)
	case s.resource.given:
		l.fail(s.resource.at, "only type azure has resources; leave it out")
	case s.apiVersion.given:
		l.fail(s.apiVersion.at, "only type azure has an api-version; leave it out")
	}
	regional := strings.Contains(vendor.BaseURL, "{region}")
	switch {
	case !regional && s.region.given:
		l.fail(s.region.at, "only type bedrock has regions; leave it out")
	case regional && p.BaseURL == "":
		l.locateRegion(p, vendor, s, at)
	case p.BaseURL == "":
		p.BaseURL = vendor.BaseURL
	}
}

// locateRegion fills the region in: the provider's own, else that of this process.
func (l *loader) locateRegion(p *provider.Provider, vendor provider.Vendor, s preset, at func(key string) place) {
	region := s.region
	for _, name := range []string{vendor.Env + "_REGION", "AWS_REGION", "AWS_DEFAULT_REGION"} {
		if text := strings.TrimSpace(l.getenv(name)); !region.given && text != "" {
			region = setting{text, variable(name), true}
		}
	}
	switch {
	case !region.given:
		l.fail(at("region"), "missing; write for example us-east-1, or set %s_REGION or AWS_REGION", vendor.Env)
	case !label(region.text):
		l.fail(region.at, "%s is not a region; write for example us-east-1", show(region.text))
	default:
		p.BaseURL = strings.ReplaceAll(vendor.BaseURL, "{region}", region.text)
	}
}

// unversioned is how an api_version says that there is none: Azure's v1 API.
const unversioned = "v1"

// locateDeployments makes Azure's address of a resource's name or of its endpoint.
func (l *loader) locateDeployments(p *provider.Provider, s preset, at func(key string) place) {
	base := p.BaseURL
	switch {
	case base != "" && s.resource.given:
		l.fail(s.resource.at, "there is a base_url too, which has the resource in it; write one of them")
		return
	case s.resource.given && !label(s.resource.text):
		l.fail(s.resource.at, "%s is not the name of a resource; write my-resource for https://my-resource.openai.azure.com", show(s.resource.text))
		return
	case s.resource.given:
		base = "https://" + s.resource.text + ".openai.azure.com"
	case base == "":
		l.fail(at("resource"), "missing; write my-resource for https://my-resource.openai.azure.com, or the whole address as base_url")
	}
	_, path, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(base, "https://"), "http://"), "/")
	isV1 := strings.HasSuffix(path, "/v1") || path == "v1"
	version := strings.TrimSpace(s.apiVersion.text)
	switch {
	case version == "" && !isV1:
		l.fail(at("api_version"), "missing; write that of your deployments, for example 2024-10-21, or v1 for the API without versions")
		return
	case version != "" && version != unversioned && !label(strings.ReplaceAll(version, ".", "-")):
		l.fail(s.apiVersion.at, "%s is not an api-version; write for example 2024-10-21, or v1", show(version))
		return
	case isV1 && version != "" && version != unversioned:
		l.fail(s.apiVersion.at, "the base_url ends in /v1, which has no versions; leave one of the two out")
		return
	}
	if path == "" {
		base += "/openai"
	}
	if version == unversioned && !isV1 {
		base += "/v1"
	}
	if version != unversioned {
		p.APIVersion = version
	}
	p.BaseURL = base
}

// label tells whether s can be a part of a host's name.
func label(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// presetModels are the models of a provider that lists none.
func (l *loader) presetModels(p *provider.Provider, vendor provider.Vendor, at place) {
	switch {
	case vendor.Deployments:
		l.fail(at, "missing; list your deployments, for example [gpt-5, {id: gpt-4o, upstream_model: my-deployment}]")
	case vendor.OwnModels: // any, as provider/model
	default:
		if p.Models = l.catalog(vendor); len(p.Models) == 0 {
			l.fail(at, "missing; the catalog has no models for type %s, so list them", vendor.Type)
		}
	}
}

// environmentPreset is the provider that a vendor's variables describe; nil: they do not.
// A key is what turns it on, of a vendor that needs none its address.
func (l *loader) environmentPreset(vendor provider.Vendor) *provider.Provider {
	keys := l.environmentKeys(vendor)
	base := strings.TrimSpace(l.getenv(vendor.Env + "_BASE_URL"))
	if len(keys) == 0 && (!vendor.NoKey || base == "") {
		return nil
	}
	p := &provider.Provider{
		Identity: vendor.Type, Type: vendor.Type, Surfaces: vendor.Surfaces, Keys: keys, NoAuth: len(keys) == 0,
		StickyKeys: true, Billing: provider.PayAsYouGo,
	}
	if base != "" {
		p.BaseURL = l.environmentBaseURL(vendor, base)
		l.baseAt[p.Identity] = variable(vendor.Env + "_BASE_URL")
	}
	named := func(key string) string { return vendor.Env + "_" + strings.ToUpper(key) }
	var s preset
	if vendor.Deployments {
		for key, into := range map[string]*setting{"resource": &s.resource, "api_version": &s.apiVersion} {
			if text := strings.TrimSpace(l.getenv(named(key))); text != "" {
				*into = setting{text, variable(named(key)), true}
			}
		}
	}
	l.apply(p, vendor, s, func(key string) place { return variable(named(key)) })
	if vendor.Deployments {
		p.Models = l.environmentDeployments(vendor, named("deployments"))
	} else {
		l.presetModels(p, vendor, variable(named("api_key")))
	}
	return p
}

// environmentDeployments reads AZURE_DEPLOYMENTS: gpt-5,gpt-4o=my-deployment.
func (l *loader) environmentDeployments(vendor provider.Vendor, name string) []provider.Model {
	var models []provider.Model
	seen := map[string]bool{}
	for item := range strings.SplitSeq(l.getenv(name), ",") {
		id, upstream, mapped := strings.Cut(strings.TrimSpace(item), "=")
		if id == "" && !mapped {
			continue
		}
		if !mapped {
			upstream = id
		}
		if err := checkName(id); err != nil || checkName(upstream) != nil {
			l.fail(variable(name), "%s is not a deployment; write model, or model=deployment", show(item))
			continue
		}
		if seen[id] {
			l.fail(variable(name), "the model %s is listed twice", show(id))
			continue
		}
		seen[id] = true
		m := provider.Model{ID: id, Upstream: upstream}
		m.Pricing = l.catalogPrice(vendor, m)
		m.ListPrice = m.Pricing != nil
		models = append(models, m)
	}
	if strings.Trim(l.getenv(name), " ,") == "" {
		l.fail(variable(name), "missing; list your deployments, for example gpt-5,gpt-4o=my-deployment")
	}
	return models
}
