package virtual

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"switchboard/internal/route"
)

// document is what the cell holds.
type document struct {
	Edit   string            `json:"edit"` // makes each write its writer's own
	Models []json.RawMessage `json:"models"`
}

// entry is one stored virtual model. What is not touched is written back as it was, also
// what cannot be read here: a newer switchboard may know it.
type entry struct {
	raw     json.RawMessage
	model   Model // at least its name, if that can be read
	used    bool  // routing knows it, if only as disabled
	problem string
}

// build works a document out. It never fails: what cannot be used has its problem said.
func (m *Models) build(data []byte, version int64) *state {
	s := &state{data: data, version: version}
	var d document
	if len(data) > 0 {
		if err := json.Unmarshal(data, &d); err != nil {
			s.problem = "the stored document cannot be read: " + err.Error()
		}
	}
	seen := map[string]bool{}
	for _, raw := range d.Models {
		e := entry{raw: raw}
		switch source := e.read(); {
		case e.problem != "":
		case m.names[source]:
			e.problem = "the configuration declares a virtual model of this name, which comes before it"
		case seen[source]:
			e.problem = "there are two of this name"
		case len(seen) == maxModels:
			e.problem = fmt.Sprintf("there are more than %d", maxModels)
		default:
			e.used = true
			seen[source] = true
		}
		s.entries = append(s.entries, e)
	}
	s.catalog = m.link(s.entries)
	for i := range s.entries {
		if e := &s.entries[i]; e.used && e.model.Enabled && !s.catalog.HasVirtual(e.model.Source) {
			e.problem = "all of its targets are disabled"
		}
	}
	return s
}

// read decodes the entry and returns its name.
func (e *entry) read() (source string) {
	var w written
	if err := json.Unmarshal(e.raw, &w); err != nil {
		var named struct {
			Source string `json:"source"`
		}
		json.Unmarshal(e.raw, &named) //nolint:errcheck // then it has no name
		e.model, e.problem = Model{Source: named.Source}, "cannot be read: "+jsonError(err).Error()
		return named.Source
	}
	model, err := w.model()
	if err != nil {
		e.problem = err.Error()
	}
	e.model = model
	return model.Source
}

// link makes the catalog of the declared virtual models and of as many saved ones as go
// together. Those in a circle are all left out, as each is as wrong as the others.
func (m *Models) link(entries []entry) *route.Catalog {
	for {
		catalog, err := m.real.With(m.virtuals(entries))
		if err == nil {
			return catalog
		}
		var fault *route.VirtualError
		if !errors.As(err, &fault) || !blame(entries, fault) {
			// Not by what is declared alone, which New has checked: leave all out.
			for i := range entries {
				if e := &entries[i]; e.used {
					e.used, e.problem = false, err.Error()
				}
			}
		}
	}
}

// blame leaves out the entries that a fault is about; false when there is none.
func blame(entries []entry, fault *route.VirtualError) (found bool) {
	named := fault.Chain
	circle := len(named) > 1 && named[0] == named[len(named)-1]
	if len(named) == 0 {
		named = []string{fault.Source}
	}
	for _, source := range named {
		i := slices.IndexFunc(entries, func(e entry) bool { return e.used && e.model.Source == source })
		if i < 0 {
			continue
		}
		entries[i].used, entries[i].problem = false, fault.Text
		found = true
		if !circle {
			break
		}
	}
	return found
}

// virtuals is what routing is to know: the declared ones, and those entries that are used.
func (m *Models) virtuals(entries []entry) []route.Virtual {
	list := slices.Clone(m.declared)
	for i := range entries {
		if e := &entries[i]; e.used {
			list = append(list, e.model.virtual())
		}
	}
	return list
}
