package route

import (
	"fmt"
	"slices"
	"strings"
)

// maxDepth is how many virtual models a chain may have.
const maxDepth = 8

// linker turns virtual models into names.
type linker struct {
	catalog *Catalog // with plain names only
	given   map[string]*Virtual
	done    map[string]linkedName
	path    []string // virtual models that are being linked
}

type linkedName struct {
	name  *name
	depth int // 1 when no target is another virtual model
}

func link(c *Catalog, virtuals []Virtual) (map[string]*name, error) {
	l := &linker{catalog: c, given: make(map[string]*Virtual, len(virtuals)), done: map[string]linkedName{}}
	for i := range virtuals {
		v := &virtuals[i]
		if v.Source == "" {
			return nil, fmt.Errorf("virtual model %q: it needs a name", v.Source)
		}
		if l.given[v.Source] != nil {
			return nil, fmt.Errorf("virtual model %q: there are two of that name", v.Source)
		}
		l.given[v.Source] = v
	}
	names := make(map[string]*name, len(virtuals))
	for i := range virtuals {
		linked, err := l.link(&virtuals[i])
		if err != nil {
			return nil, err
		}
		names[virtuals[i].Source] = linked.name
	}
	return names, nil
}

func (l *linker) link(v *Virtual) (linkedName, error) {
	if linked, done := l.done[v.Source]; done {
		return linked, nil
	}
	if at := slices.Index(l.path, v.Source); at >= 0 {
		return linkedName{}, fmt.Errorf("virtual model %q: its targets lead back to it: %s", v.Source, chain(l.path[at:], v.Source))
	}
	strategy, reason, ok := strategyNamed(v.Strategy)
	switch {
	case !ok:
		return linkedName{}, fmt.Errorf("virtual model %q: there is no strategy %q; known here: %s", v.Source, v.Strategy, strings.Join(strategyNames(), ", "))
	case len(v.Targets) == 0:
		return linkedName{}, fmt.Errorf("virtual model %q: it has no targets", v.Source)
	}
	l.path = append(l.path, v.Source)
	g := &group{strategy: strategy, turn: newRotation(v.Source)}
	depth := 1
	for _, t := range v.Targets {
		m, below, err := l.member(v, t)
		if err != nil {
			return linkedName{}, err
		}
		if depth = max(depth, below+1); depth > maxDepth {
			return linkedName{}, fmt.Errorf("virtual model %q: virtual models are nested more than %d deep below it", v.Source, maxDepth)
		}
		g.members = append(g.members, m)
	}
	l.path = l.path[:len(l.path)-1]
	linked := linkedName{&name{
		reason: reason, virtual: true, group: g,
		pins: v.Affinity && reason != ReasonFailover,
	}, depth}
	l.done[v.Source] = linked
	return linked, nil
}

// member resolves one target; depth is 0 for a real one.
func (l *linker) member(v *Virtual, t VirtualTarget) (m member, depth int, err error) {
	m.weight = max(1, t.Weight)
	if t.Weight < 0 {
		return m, 0, fmt.Errorf("virtual model %q: target %q has the weight %d; the least is 1", v.Source, t.Model, t.Weight)
	}
	if nested := l.given[t.Model]; nested != nil && t.Model != v.Source {
		linked, err := l.link(nested)
		if err != nil {
			return m, 0, err
		}
		m.group = linked.name.group
		return m, linked.depth, nil
	}
	n := l.catalog.find(t.Model)
	switch {
	case n != nil:
	case t.Model == v.Source:
		return m, 0, fmt.Errorf("virtual model %q: its targets lead back to it: %s", v.Source, chain([]string{v.Source}, v.Source))
	default:
		return m, 0, fmt.Errorf("virtual model %q: target %q is neither provider/model, nor a model that a provider lists, nor a virtual model", v.Source, t.Model)
	}
	if members := n.group.members; len(members) == 1 {
		m.target = members[0].target
	} else {
		m.group = n.group
	}
	return m, 0, nil
}

func chain(path []string, end string) string {
	return strings.Join(append(slices.Clone(path), end), " -> ")
}
