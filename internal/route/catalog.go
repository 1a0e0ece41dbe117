package route

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/provider"
)

// Catalog is what can be asked for: providers, their models and virtual models. Immutable,
// safe for concurrent use.
type Catalog struct {
	*base
	virtual  map[string]*name // a virtual model hides a plain name
	limited  bool             // some virtual model is not for everybody
	watched  watched          // whose signals somebody needs
	userPath string           // whose it is
}

// base is what the configuration alone decides.
type base struct {
	accounts []*account // by identity
	byName   map[string]*account
	plain    map[string]*name
}

// account is a provider with what routing needs of it.
type account struct {
	provider *provider.Provider
	keys     []provider.Key // usable ones; one zero key when the provider needs none
	turn     rotation       // of its keys
	explicit map[string]*name
}

// name is what one requested model means.
type name struct {
	reason  string // why the first candidate is first
	pins    bool
	virtual bool
	users   []string // user paths that may ask for it; none: everybody
	group   *group
	offers  offers
}

// NewCatalog checks and indexes: targets exist, chains are acyclic (the error spells the
// cycle out) and at most 8 deep, names are unique. Providers' order does not matter.
//
// A model name means, in this order: the virtual model, the plain name as providers list
// it, provider/model split at the first slash. Asked for in that last way, a provider that
// lists no models takes any, at an unknown price. The target of a virtual model that is
// spelled like the virtual model itself means the plain name it hides.
//
// An error about a virtual model is a *VirtualError.
func NewCatalog(providers []*provider.Provider, virtuals []Virtual) (*Catalog, error) {
	b := &base{byName: make(map[string]*account, len(providers)), plain: map[string]*name{}}
	for _, p := range providers {
		if err := b.add(p); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(b.accounts, func(a, b *account) int { return cmp.Compare(a.provider.Identity, b.provider.Identity) })
	for _, a := range b.accounts {
		for _, m := range a.provider.Models {
			t := &target{a, m}
			a.explicit[m.ID] = explicitName(t)
			plain := b.plain[m.ID]
			if plain == nil {
				plain = &name{reason: ReasonRank, pins: true, group: &group{strategy: rank{}}}
				b.plain[m.ID] = plain
			}
			plain.group.members = append(plain.group.members, member{target: t, weight: 1})
		}
	}
	return (&Catalog{base: b}).With(virtuals)
}

// With is the catalog over the same providers with these virtual models and no others.
func (c *Catalog) With(virtuals []Virtual) (*Catalog, error) {
	linked, err := link(c.base, virtuals)
	if err != nil {
		return nil, err
	}
	made := &Catalog{base: c.base, virtual: linked}
	for _, n := range linked {
		made.limited = made.limited || len(n.users) > 0
	}
	made.watched = watch(linked)
	return made, nil
}

// For is the catalog as a caller with that user path sees it: the virtual models that are
// not for it do not exist.
func (c *Catalog) For(userPath string) *Catalog {
	if !c.limited || userPath == c.userPath {
		return c
	}
	own := *c
	own.userPath = userPath
	return &own
}

// Refresh does nothing: what is immutable has no news.
func (c *Catalog) Refresh(context.Context, time.Time) {}

func (b *base) add(p *provider.Provider) error {
	switch _, twice := b.byName[p.Identity]; {
	case p.Identity == "" || strings.Contains(p.Identity, "/"):
		return fmt.Errorf("provider %q: an identity is a name without a slash", p.Identity)
	case twice:
		return fmt.Errorf("provider %q: there are two of that name", p.Identity)
	}
	a := &account{
		provider: p, turn: newRotation("key:" + p.Identity),
		explicit: make(map[string]*name, len(p.Models)),
	}
	for _, m := range p.Models {
		if _, twice := a.explicit[m.ID]; twice {
			return fmt.Errorf("provider %q: the model %q is listed twice", p.Identity, m.ID)
		}
		a.explicit[m.ID] = nil
	}
	if p.NoAuth {
		a.keys = []provider.Key{{}}
	} else {
		for _, k := range p.Keys {
			if k.Text != "" {
				a.keys = append(a.keys, k)
			}
		}
	}
	b.byName[p.Identity] = a
	b.accounts = append(b.accounts, a)
	return nil
}

func explicitName(t *target) *name {
	return &name{reason: ReasonExplicit, pins: true, group: &group{
		strategy: failover{}, members: []member{{target: t, weight: 1}},
	}}
}

// find resolves a requested model; nil when there is none.
func (c *Catalog) find(model string) *name {
	if n := c.virtual[model]; n != nil && n.isFor(c.userPath) {
		return n
	}
	return c.findReal(model)
}

// findReal resolves a name past the virtual models.
func (b *base) findReal(model string) *name {
	if n := b.plain[model]; n != nil {
		return n
	}
	identity, id, ok := strings.Cut(model, "/")
	a := b.byName[identity]
	if !ok || a == nil || id == "" {
		return nil
	}
	if len(a.explicit) == 0 {
		return explicitName(&target{a, provider.Model{ID: id, Upstream: id}})
	}
	return a.explicit[id]
}

// isFor tells whether a caller with that user path may ask for the name.
func (n *name) isFor(userPath string) bool {
	for _, root := range n.users {
		if root == "/" || strings.HasPrefix(userPath, root) && (len(userPath) == len(root) || userPath[len(root)] == '/') {
			return true
		}
	}
	return len(n.users) == 0
}

// Providers returns the providers sorted by identity.
func (c *Catalog) Providers() []*provider.Provider {
	list := make([]*provider.Provider, len(c.accounts))
	for i, a := range c.accounts {
		list[i] = a.provider
	}
	return list
}

// Configured tells whether the provider and key that a pin names exist and are usable. Of a
// provider whose keys take turns any usable key will do.
func (c *Catalog) Configured(to affinity.Target) bool {
	a := c.byName[to.Provider]
	switch {
	case a == nil:
		return false
	case a.loose():
		return len(a.keys) > 0
	}
	return a.key(&to) >= 0
}

// loose tells whether the provider's keys take turns within a session: its pins name no key.
func (a *account) loose() bool { return !a.provider.StickyKeys }

// key is the position of the usable key that a pin or a home names, or -1.
func (a *account) key(to *affinity.Target) int {
	for i := range a.keys {
		if to.HasKey(a.keys[i].ID, a.keys[i].Print) {
			return i
		}
	}
	return -1
}

// Pins tells whether requests for the model may be pinned. ok is false for an unknown model.
// No pins: session_affinity false, or strategy failover. Of nested virtual models the
// outermost decides.
func (c *Catalog) Pins(model string) (pins, ok bool) {
	n := c.find(model)
	if n == nil {
		return false, false
	}
	return n.pins, true
}
