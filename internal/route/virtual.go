package route

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// maxDepth is how many virtual models a chain may have.
const maxDepth = 8

// VirtualError says what is wrong with a virtual model.
type VirtualError struct {
	Source string   // its name
	Field  string   // source, strategy, targets, targets[0].model, targets[0].weight
	Chain  []string // of virtual models that lead in a circle or too deep; the first begins it
	Text   string   // without the name
}

func (e *VirtualError) Error() string { return fmt.Sprintf("virtual model %q: %s", e.Source, e.Text) }

// CheckName tells whether a text can be the name of a model: it reads on after "the name".
func CheckName(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case strings.TrimSpace(s) != s:
		return errors.New("begins or ends with white space")
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }):
		return errors.New("has a control character")
	case len(s) > 200:
		return errors.New("is longer than 200 bytes")
	}
	return nil
}

// linker turns virtual models into names.
type linker struct {
	base  *base
	given map[string]*Virtual
	done  map[string]linkedName
	path  []string // virtual models that are being linked
}

type linkedName struct {
	name  *name    // nil when it does not exist: disabled, or all of its targets are
	chain []string // the deepest way down: itself, then other virtual models
}

func link(b *base, virtuals []Virtual) (map[string]*name, error) {
	l := &linker{base: b, given: make(map[string]*Virtual, len(virtuals)), done: map[string]linkedName{}}
	for i := range virtuals {
		v := &virtuals[i]
		if v.Source == "" {
			return nil, &VirtualError{Field: "source", Text: "it needs a name"}
		}
		if l.given[v.Source] != nil {
			return nil, &VirtualError{Source: v.Source, Field: "source", Text: "there are two of that name"}
		}
		l.given[v.Source] = v
	}
	names := make(map[string]*name, len(virtuals))
	for i := range virtuals {
		linked, err := l.link(&virtuals[i])
		if err != nil {
			return nil, err
		}
		if linked.name != nil {
			names[virtuals[i].Source] = linked.name
		}
	}
	return names, nil
}

func (l *linker) link(v *Virtual) (linkedName, error) {
	if linked, done := l.done[v.Source]; done {
		return linked, nil
	}
	if at := slices.Index(l.path, v.Source); at >= 0 {
		return linkedName{}, circle(l.path[at:], v.Source)
	}
	strategy, reason, ok := strategyNamed(v.Strategy)
	switch {
	case !ok:
		return linkedName{}, &VirtualError{
			Source: v.Source, Field: "strategy",
			Text: fmt.Sprintf("there is no strategy %q; known here: %s", v.Strategy, strings.Join(strategyNames(), ", ")),
		}
	case len(v.Targets) == 0:
		return linkedName{}, &VirtualError{Source: v.Source, Field: "targets", Text: "it has no targets"}
	}
	strategy, fault := tuned(strategy, reason, v)
	if fault != nil {
		return linkedName{}, fault
	}
	l.path = append(l.path, v.Source)
	g := &group{strategy: strategy, turn: newRotation(v.Source)}
	var below []string
	for i := range v.Targets {
		m, chain, err := l.member(v, i)
		if err != nil {
			return linkedName{}, err
		}
		if len(chain) > len(below) {
			below = chain
		}
		if m.target != nil || m.group != nil {
			g.members = append(g.members, m)
		}
	}
	l.path = l.path[:len(l.path)-1]
	linked := linkedName{chain: append([]string{v.Source}, below...)}
	if len(linked.chain) > maxDepth {
		return linkedName{}, &VirtualError{
			Source: v.Source, Field: "targets", Chain: linked.chain,
			Text: fmt.Sprintf("virtual models are nested more than %d deep below it: %s", maxDepth, strings.Join(linked.chain, " -> ")),
		}
	}
	if !v.Disabled && len(g.members) > 0 {
		linked.name = &name{
			reason: reason, virtual: true, users: v.UserPaths, group: g,
			pins: v.Affinity && reason != ReasonFailover,
		}
	}
	l.done[v.Source] = linked
	return linked, nil
}

// tuned is the strategy as the virtual model wants it.
func tuned(s strategy, reason string, v *Virtual) (strategy, error) {
	t, can := s.(tunable)
	if !can && v.Objective == "" {
		return s, nil
	}
	if can {
		if s, can = t.tune(v); can {
			return s, nil
		}
	}
	return nil, objectiveError(v, reason)
}

// member resolves one target; chain is nil for a real one. It is the zero member when the
// target is a virtual model that does not exist now.
func (l *linker) member(v *Virtual, at int) (m member, chain []string, err error) {
	t := v.Targets[at]
	weight := max(1, t.Weight)
	if t.Weight < 0 {
		return m, nil, &VirtualError{
			Source: v.Source, Field: fmt.Sprintf("targets[%d].weight", at),
			Text: fmt.Sprintf("target %q has the weight %d; the least is 1", t.Model, t.Weight),
		}
	}
	nested := l.given[t.Model]
	if nested != nil && t.Model != v.Source {
		linked, err := l.link(nested)
		if err != nil {
			return m, nil, err
		}
		if linked.name != nil {
			return member{group: linked.name.group, weight: weight}, linked.chain, nil
		}
		chain = linked.chain
	}
	n := l.base.findReal(t.Model)
	switch {
	case n != nil && len(n.group.members) == 1:
		return member{target: n.group.members[0].target, weight: weight}, chain, nil
	case n != nil:
		return member{group: n.group, weight: weight}, chain, nil
	case t.Model == v.Source:
		return m, nil, circle([]string{v.Source}, v.Source)
	case nested != nil:
		return m, chain, nil
	}
	return m, nil, &VirtualError{
		Source: v.Source, Field: fmt.Sprintf("targets[%d].model", at),
		Text: fmt.Sprintf("target %q is neither provider/model, nor a model that a provider lists, nor a virtual model", t.Model),
	}
}

// circle is the error of a path that leads back to source, its first.
func circle(path []string, source string) error {
	chain := append(slices.Clone(path), source)
	return &VirtualError{
		Source: source, Field: "targets", Chain: chain,
		Text: "its targets lead back to it: " + strings.Join(chain, " -> "),
	}
}
