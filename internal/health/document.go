package health

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

const (
	// maxShared bounds the standings of one provider in the shared document, which every
	// instance reads: those that end first are left out, and tried again.
	maxShared = 128
	// forgetAfter is how long a degradation that has run out is remembered without a trial.
	forgetAfter = 24 * time.Hour
	// documentLife is how long a document lives that nobody changes.
	documentLife = 48 * time.Hour
)

// Keys tells the keys of all providers apart by their prints: provider identity -> key id ->
// print. Ids are positions and mean another key after a deployment; what is shared names
// keys by print, so that a degradation follows its key and ends when the key's text changes.
type Keys map[string]map[string]string

// document is the state as all instances share it.
type document struct {
	Writer    string                      `json:"writer"` // makes each write its writer's own
	Providers map[string]providerDocument `json:"providers"`
}

type providerDocument struct {
	Failures  int                `json:"failures,omitempty"`
	Standings []standingDocument `json:"standings,omitempty"`
}

type standingDocument struct {
	KeyPrint string `json:"key_print,omitempty"`
	Model    string `json:"model,omitempty"`
	Class    Class  `json:"class"`
	Until    int64  `json:"until,omitempty"` // epoch milliseconds
	Lease    int64  `json:"lease,omitempty"`
	Times    int    `json:"times,omitempty"`
	ForGood  bool   `json:"for_good,omitempty"`
}

// encode writes the state down, signed by writer. A key without a print is known to this process alone.
func encode(s *state, writer string, keys Keys, now time.Time) ([]byte, error) {
	d := document{Writer: writer, Providers: map[string]providerDocument{}}
	for identity, r := range s.providers {
		p := providerDocument{Failures: r.failures}
		for scope, one := range r.standings {
			keyPrint := keys[identity][scope.KeyID]
			if scope.KeyID != "" && keyPrint == "" || !one.forGood && now.Sub(one.until) > forgetAfter {
				continue
			}
			p.Standings = append(p.Standings, standingDocument{
				KeyPrint: keyPrint, Model: scope.Model, Class: one.class, Until: millis(one.until),
				Lease: millis(one.lease), Times: one.times, ForGood: one.forGood,
			})
		}
		slices.SortFunc(p.Standings, longestFirst)
		p.Standings = p.Standings[:min(len(p.Standings), maxShared)]
		if p.Failures > 0 || len(p.Standings) > 0 {
			d.Providers[identity] = p
		}
	}
	return json.Marshal(d)
}

func longestFirst(a, b standingDocument) int {
	if a.ForGood != b.ForGood {
		if a.ForGood {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.Until, a.Until), cmp.Compare(a.KeyPrint, b.KeyPrint), cmp.Compare(a.Model, b.Model))
}

// decode reads what encode wrote. What names a key that is no longer configured is left out.
func decode(data []byte, keys Keys) (*state, error) {
	if len(data) == 0 {
		return &state{}, nil
	}
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, err
	}
	s := &state{providers: make(map[string]record, len(d.Providers))}
	for identity, p := range d.Providers {
		r := record{failures: max(0, p.Failures), standings: map[Scope]standing{}}
		ids := idsByPrint(keys[identity])
		for _, one := range p.Standings {
			id, configured := "", true
			if one.KeyPrint != "" {
				id, configured = ids[one.KeyPrint]
			}
			if !configured {
				continue
			}
			r.standings[Scope{Provider: identity, KeyID: id, Model: one.Model}] = standing{
				class: one.Class, until: instant(one.Until), lease: instant(one.Lease),
				times: max(1, one.Times), forGood: one.ForGood,
			}
		}
		if r.failures > 0 || len(r.standings) > 0 {
			s.providers[identity] = r
			s.standings += len(r.standings)
		}
	}
	return s, nil
}

func idsByPrint(prints map[string]string) map[string]string {
	ids := make(map[string]string, len(prints))
	for _, id := range slices.Sorted(maps.Keys(prints)) {
		if _, twice := ids[prints[id]]; !twice {
			ids[prints[id]] = id
		}
	}
	return ids
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
