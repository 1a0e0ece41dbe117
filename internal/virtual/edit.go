package virtual

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"switchboard/internal/route"
	"switchboard/internal/shared"
)

// What becomes of an edit besides a *FieldError.
var (
	// ErrStale: somebody else has saved since the listing that was edited. Show the operator
	// the one that comes with the error, and let him decide again.
	ErrStale = errors.New("virtual: somebody else has saved in between")
	// ErrDeclared: the configuration has it; change it there.
	ErrDeclared = errors.New("virtual: the virtual model is declared in the configuration")
	// ErrNotFound: there is no saved virtual model of that name.
	ErrNotFound = errors.New("virtual: there is no saved virtual model of that name")
)

// swapTries bounds how often an edit of any version is made again after a lost race.
const swapTries = 5

// Listing is all there is, by name.
type Listing struct {
	Models  []Listed `json:"virtual_models"`
	Version int64    `json:"version"`           // of what is saved; 0: nothing ever was
	Problem string   `json:"problem,omitempty"` // why nothing of what is saved can be read
}

// Listed is a virtual model and what there is to say about it.
type Listed struct {
	Model
	Declared bool   `json:"declared"`    // in the configuration; it cannot be edited here
	Hides    bool   `json:"hides_model"` // a real model has the same name
	Problem  string `json:"problem,omitempty"`
}

// Find is the virtual model of that name in the listing.
func (l *Listing) Find(source string) (Listed, bool) {
	i := slices.IndexFunc(l.Models, func(m Listed) bool { return m.Source == source })
	if i < 0 {
		return Listed{}, false
	}
	return l.Models[i], true
}

// List reads what is saved.
func (m *Models) List(ctx context.Context) (Listing, error) {
	s, err := m.load(ctx)
	if err != nil {
		return Listing{}, fmt.Errorf("virtual: list: %w", err)
	}
	return m.listing(s), nil
}

func (m *Models) listing(s *state) Listing {
	l := Listing{Models: make([]Listed, 0, len(m.declared)+len(s.entries)), Version: s.version, Problem: s.problem}
	for i := range m.declared {
		d := Listed{Model: modelOf(&m.declared[i]), Declared: true}
		if d.Enabled && !s.catalog.HasVirtual(d.Source) {
			d.Problem = "all of its targets are disabled"
		}
		l.Models = append(l.Models, d)
	}
	for i := range s.entries {
		e := &s.entries[i]
		saved := Listed{Model: e.model, Problem: e.problem}
		if saved.Targets == nil {
			saved.Targets = []Target{}
		}
		if saved.UserPaths == nil {
			saved.UserPaths = []string{}
		}
		l.Models = append(l.Models, saved)
	}
	for i := range l.Models {
		l.Models[i].Hides = m.real.HasReal(l.Models[i].Source)
	}
	slices.SortStableFunc(l.Models, func(a, b Listed) int { return cmp.Compare(a.Source, b.Source) })
	return l
}

// Save makes or replaces a virtual model, or renames it: saved ones that have it as a target
// follow. The listing is the one after it, or with ErrStale the one that it was measured
// against. Other errors are *FieldError, ErrDeclared, ErrNotFound (of OldSource) or the cell's.
func (m *Models) Save(ctx context.Context, c Change) (Listing, error) {
	old := c.OldSource
	if old == "" {
		old = c.Source
	}
	return m.edit(ctx, c.Version, func(s *state) ([]entry, error) {
		switch {
		case m.names[c.Source]:
			return nil, ErrDeclared
		case c.OldSource != "" && !s.has(old):
			return nil, m.missing(old)
		case old != c.Source && s.has(c.Source):
			return nil, &FieldError{"source", fmt.Sprintf("there is a virtual model %q already", c.Source)}
		case !s.has(old) && len(s.entries) >= maxModels:
			return nil, &FieldError{"source", fmt.Sprintf("there are %d virtual models already; that is the most", maxModels)}
		}
		list, err := s.replaced(old, &c.Model)
		if err != nil {
			return nil, err
		}
		return list, m.check(list, c.Source)
	})
}

func (s *state) has(source string) bool {
	return slices.ContainsFunc(s.entries, func(e entry) bool { return e.model.Source == source })
}

// missing is why there is no saved virtual model to change.
func (m *Models) missing(source string) error {
	if m.names[source] {
		return ErrDeclared
	}
	return ErrNotFound
}

// replaced is the entries with model in the place of old, or at the end.
func (s *state) replaced(old string, model *Model) ([]entry, error) {
	made, err := entryOf(model)
	if err != nil {
		return nil, err
	}
	var list []entry
	placed := false
	for _, e := range s.entries {
		if e.model.Source == old {
			if !placed {
				list = append(list, made)
				placed = true
			}
			continue
		}
		if e.used && old != model.Source && e.model.leadsTo(old) {
			moved := e.model
			moved.Targets = slices.Clone(moved.Targets)
			for i := range moved.Targets {
				if moved.Targets[i].Model == old {
					moved.Targets[i].Model = model.Source
				}
			}
			if e, err = entryOf(&moved); err != nil {
				return nil, err
			}
		}
		list = append(list, e)
	}
	if !placed {
		list = append(list, made)
	}
	return list, nil
}

func (m *Model) leadsTo(name string) bool {
	return slices.ContainsFunc(m.Targets, func(t Target) bool { return t.Model == name })
}

func entryOf(model *Model) (entry, error) {
	raw, err := json.Marshal(model)
	return entry{raw: raw, model: *model, used: true}, err
}

// check tells whether the entries go together, of which the one called source is new.
func (m *Models) check(list []entry, source string) error {
	_, err := m.real.With(m.virtuals(list))
	var fault *route.VirtualError
	switch {
	case !errors.As(err, &fault):
		return err
	case fault.Source == source:
		return &FieldError{fault.Field, fault.Text}
	}
	return &FieldError{"targets", fault.Error()} // a circle or a chain that the new one closes
}

// Remove takes a saved virtual model away, as Save does. One that is a target of another
// stays, which the *FieldError says. An entry whose name cannot be read has the empty one.
func (m *Models) Remove(ctx context.Context, source string, version int64) (Listing, error) {
	return m.edit(ctx, version, func(s *state) ([]entry, error) {
		if !s.has(source) {
			return nil, m.missing(source)
		}
		list := slices.DeleteFunc(slices.Clone(s.entries), func(e entry) bool { return e.model.Source == source })
		var fault *route.VirtualError
		if _, err := m.real.With(m.virtuals(list)); errors.As(err, &fault) {
			return nil, &FieldError{"source", fmt.Sprintf("%q has it as a target; change that first", fault.Source)}
		}
		return list, nil
	})
}

// edit decides on what is stored now, and replaces that if it is still so.
func (m *Models) edit(ctx context.Context, version int64, decide func(*state) ([]entry, error)) (Listing, error) {
	select {
	case m.editing <- struct{}{}:
		defer func() { <-m.editing }()
	case <-ctx.Done():
		return Listing{}, ctx.Err()
	}
	for range swapTries {
		s, err := m.load(ctx)
		if err != nil {
			return Listing{}, fmt.Errorf("virtual: save: %w", err)
		}
		if version != AnyVersion && version != s.version {
			return m.listing(s), ErrStale
		}
		list, err := decide(s)
		if err != nil {
			return Listing{}, err
		}
		data, err := encode(list)
		if err != nil {
			return Listing{}, err
		}
		switch err = m.swap(ctx, data, s.version); {
		case err == nil:
			return m.listing(m.adopt(ctx, data, s.version+1)), nil
		case !errors.Is(err, shared.ErrChanged):
			return Listing{}, fmt.Errorf("virtual: save: %w", err)
		}
	}
	s, err := m.load(ctx)
	if err != nil {
		return Listing{}, fmt.Errorf("virtual: save: %w", err)
	}
	return m.listing(s), ErrStale
}

func encode(list []entry) ([]byte, error) {
	d := document{Edit: rand.Text(), Models: []json.RawMessage{}}
	for _, e := range list {
		d.Models = append(d.Models, e.raw)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d); err != nil {
		return nil, err
	}
	if text.Len() > maxDocument {
		return nil, &FieldError{"body", fmt.Sprintf("with it all virtual models take %d bytes; the most is %d", text.Len(), maxDocument)}
	}
	return text.Bytes(), nil
}
