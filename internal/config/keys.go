package config

import (
	"strconv"
	"strings"

	"switchboard/internal/provider"
)

// probedKeys bounds the search for OPENAI_API_KEY_<N>.
const probedKeys = 64

// apiKeys reads the keys of a provider. An empty list means that the upstream needs none.
func (l *loader) apiKeys(p *provider.Provider, v value) {
	owners := map[string]string{} // text -> place
	ids := map[string]bool{}
	length := 0
	ok := l.list(v, func(i int, item value) {
		length++
		key, ok := l.apiKey(p, i, item)
		if !ok {
			return
		}
		if ids[key.ID] {
			l.fail(item.at, "the key id %s is taken already; give it another id", show(key.ID))
			return
		}
		ids[key.ID] = true
		if key.Text == "" {
			return
		}
		if other, twice := owners[key.Text]; twice {
			l.fail(item.at, "the same key as %s; list each key once", other)
			return
		}
		owners[key.Text] = item.at.path
		key.Print = provider.KeyPrint(key.Text)
		p.Keys = append(p.Keys, key)
	})
	p.NoAuth = ok && length == 0
	if ok && length > 0 && len(p.Keys) == 0 && !l.problems.under(v.at.path) {
		l.warn("provider %s has no usable key and is left out", p.Identity)
	}
}

// apiKey reads one entry: a reference or text, or {id, key}. The text is empty when the
// reference leads to nothing.
func (l *loader) apiKey(p *provider.Provider, i int, item value) (provider.Key, bool) {
	key := provider.Key{ID: strconv.Itoa(i + 1)}
	ok := false
	if kind(l.plain(item.node)) != "a mapping" {
		key.Text, ok = l.secret(p, item)
		return key, ok
	}
	l.hideScalars(item)
	idOK := true
	l.secretive(item,
		field{name: "id", read: func(v value) {
			s, text := l.text(v)
			if idOK = text; !text {
				return
			}
			if err := checkName(s); err != nil {
				l.fail(l.valueAt(v), "the key id %v; write for example second", err)
				idOK = false
			}
			key.ID = s
		}},
		field{name: "key", missing: "env:NAME", read: func(v value) { key.Text, ok = l.secret(p, v) }},
	)
	return key, ok && idOK
}

// hideScalars keeps whatever stands in a key's place by mistake out of the errors.
func (l *loader) hideScalars(item value) {
	list, _ := l.entries(item)
	for _, e := range list {
		if e.key == "id" {
			continue
		}
		if s, ok := l.scalar(e.value); ok && !strings.HasPrefix(s, "env:") {
			l.keepSecret(s)
		}
	}
}

// secret resolves env:NAME, ssm:/path and secretsmanager:name#key, also where the variable
// refers to one of the others; other text is the key itself. "" with true: the variable is empty, which is only a warning.
func (l *loader) secret(p *provider.Provider, v value) (string, bool) {
	at := l.valueAt(v)
	ref, ok := l.text(v)
	if !ok {
		return "", false
	}
	name, env := strings.CutPrefix(ref, "env:")
	switch {
	case env && !variableName(name):
		l.keepSecret(name)
		l.fail(at, "env: without the name of a variable after it; write for example env:OPENAI_API_KEY")
		return "", false
	case env:
		text, ok := l.given(at, name)
		if ok && text == "" {
			l.warn("provider %s: the environment variable %s of %s is empty, so this key is left out", p.Identity, name, at.path)
		}
		return text, ok
	case reference(ref):
		return l.remote(at, ref)
	case strings.TrimSpace(ref) == "":
		l.fail(at, "an empty key; write env:NAME, or api_keys: [] when none is needed")
		return "", false
	case strings.HasPrefix(ref, "$"), strings.HasPrefix(ref, "arn:"), strings.HasPrefix(ref, "file:"):
		l.keepSecret(ref)
		l.fail(at, "neither a key nor a reference to one; write env:NAME, ssm:/path or secretsmanager:name#key")
		return "", false
	}
	l.keepSecret(ref)
	return l.clean(at, ref)
}

// clean takes the white space around a key away; one with a control character inside could
// not be sent in a header.
func (l *loader) clean(at place, text string) (string, bool) {
	text = strings.TrimSpace(text)
	l.keepSecret(text)
	if strings.ContainsFunc(text, unprintable) {
		l.fail(at, "the key has a control character in it; store it on one line")
		return "", false
	}
	return text, true
}

// vendorKeys are a provider's keys when the file says nothing about them.
func (l *loader) vendorKeys(p *provider.Provider, vendor provider.Vendor, at place) {
	if vendor.Env == "" {
		l.fail(at, "missing; list the keys, or write [] when none is needed")
		return
	}
	if p.Keys = l.environmentKeys(vendor); len(p.Keys) == 0 && vendor.NoKey {
		p.NoAuth = true
	} else if len(p.Keys) == 0 {
		l.warn("provider %s has no api_keys, %s_API_KEY is empty, and so it is left out", p.Identity, vendor.Env)
	}
}

// environmentKeys reads OPENAI_API_KEY, OPENAI_API_KEY_2, …; gaps are fine.
func (l *loader) environmentKeys(vendor provider.Vendor) []provider.Key {
	var keys []provider.Key
	owners := map[string]string{}
	for name, id := range keyVariables(vendor) {
		text, ok := l.given(variable(name), name)
		if !ok || text == "" {
			continue
		}
		if other, twice := owners[text]; twice {
			l.fail(variable(name), "the same key as %s; set each key once", other)
			continue
		}
		owners[text] = name
		keys = append(keys, provider.Key{ID: id, Text: text, Print: provider.KeyPrint(text)})
	}
	return keys
}

func variableName(s string) bool {
	if s == "" || len(s) > 128 || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}
