package route

import (
	"cmp"
	"slices"

	"switchboard/internal/health"
	"switchboard/internal/wire"
)

// Entry is one name that clients can ask for, for /v1/models.
type Entry struct {
	ID string
	// OwnedBy is a provider's identity: of a plain name the one that lists it, of a virtual
	// model that of its first target that can serve now. "switchboard" for a plain name of
	// several providers.
	OwnedBy  string
	Surfaces []wire.Surface
	Virtual  bool
}

// Entries lists plain and virtual names, sorted. A nil view finds everybody healthy.
func (c *Catalog) Entries(view health.View) []Entry {
	list := make([]Entry, 0, len(c.plain)+len(c.virtual))
	for id, n := range c.virtual {
		if n.isFor(c.userPath) {
			list = append(list, n.entry(id, view))
		}
	}
	for id, n := range c.plain {
		if hiding := c.virtual[id]; hiding == nil || !hiding.isFor(c.userPath) {
			list = append(list, n.entry(id, view))
		}
	}
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Entry is the entry of one name, also of provider/model; false when there is none.
func (c *Catalog) Entry(id string, view health.View) (Entry, bool) {
	n := c.find(id)
	if n == nil {
		return Entry{}, false
	}
	return n.entry(id, view), true
}

func (n *name) entry(id string, view health.View) Entry {
	e := Entry{ID: id, OwnedBy: "switchboard", Virtual: n.virtual}
	if n.virtual || len(n.group.members) == 1 {
		e.OwnedBy = n.group.first(view).account.provider.Identity
	}
	for _, s := range surfaces() {
		if n.offer(s, false).served {
			e.Surfaces = append(e.Surfaces, s)
		}
	}
	return e
}

// first is the first target, as they are written, with a usable key that is not degraded;
// else the first of all.
func (g *group) first(view health.View) *target {
	all := g.targets(nil, map[*group]bool{})
	for _, t := range all {
		s := seat{target: t}
		for key := range t.account.keys {
			if s.status(view, key).State != health.Degraded {
				return t
			}
		}
	}
	return all[0]
}

// targets appends what the group leads to, in the order in which it is written.
func (g *group) targets(list []*target, seen map[*group]bool) []*target {
	if seen[g] {
		return list
	}
	seen[g] = true
	for _, m := range g.members {
		if m.group != nil {
			list = m.group.targets(list, seen)
		} else {
			list = append(list, m.target)
		}
	}
	return list
}

// HasReal tells whether there is a plain name or provider/model of that name, which a
// virtual model of the same name hides.
func (c *Catalog) HasReal(name string) bool { return c.findReal(name) != nil }

// HasVirtual tells whether there is a virtual model of that name, for whomever. One that is
// disabled, or all of whose targets are, is not there.
func (c *Catalog) HasVirtual(source string) bool { return c.virtual[source] != nil }
