package signal

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	// maxShared bounds the document, which every instance reads: those with the least to tell
	// are left out.
	maxShared = 64
	// documentLife is how long a document lives that nobody changes: by then nothing of it counts.
	documentLife = time.Hour
)

// document is what all instances know together, as of one instant. Immutable.
type document struct {
	at      time.Time
	targets map[Target]evidence
}

// of is what is left at now of a target's evidence.
func (d document) of(target Target, now time.Time) evidence {
	e := d.targets[target]
	if age := now.Sub(d.at); age > 0 {
		e.scale(remains(age))
	}
	return e
}

// with is the document with more evidence, as of now.
func (d document) with(news document, now time.Time) document {
	next := document{at: now, targets: make(map[Target]evidence, len(d.targets)+len(news.targets))}
	for target := range d.targets {
		if e := d.of(target, now); e.counts() {
			next.targets[target] = e
		}
	}
	for target := range news.targets {
		e := next.targets[target]
		e.merge(news.of(target, now))
		next.targets[target] = e
	}
	for len(next.targets) > maxShared {
		delete(next.targets, next.least())
	}
	return next
}

// least is the target of which the least has been seen.
func (d document) least() (least Target) {
	attempts := math.Inf(1)
	for target, e := range d.targets {
		if e.attempts < attempts {
			least, attempts = target, e.attempts
		}
	}
	return least
}

// stored is the document as it is written.
type stored struct {
	Writer  string                `json:"writer"` // makes each write its writer's own
	At      int64                 `json:"at"`     // epoch milliseconds
	Targets map[string][9]float64 `json:"targets"`
}

// encode writes the document down. A target is named provider/model: a provider's identity
// has no slash.
func (d document) encode(writer string) ([]byte, error) {
	s := stored{Writer: writer, At: d.at.UnixMilli(), Targets: make(map[string][9]float64, len(d.targets))}
	for target, e := range d.targets {
		values := [9]float64{
			e.attempts, e.failures, e.busy,
			e.whole.answers, e.whole.sum, e.whole.peak, e.streamed.answers, e.streamed.sum, e.streamed.peak,
		}
		for i, v := range values {
			values[i] = math.Round(v*1e4) / 1e4
		}
		s.Targets[target.Provider+"/"+target.Model] = values
	}
	return json.Marshal(s)
}

// decode reads what encode wrote. Values that no evidence can have are nothing.
func decode(data []byte, now time.Time) (document, error) {
	if len(data) == 0 {
		return document{}, nil
	}
	var s stored
	if err := json.Unmarshal(data, &s); err != nil {
		return document{}, err
	}
	d := document{at: time.UnixMilli(s.At), targets: make(map[Target]evidence, len(s.Targets))}
	if d.at.After(now) { // another clock
		d.at = now
	}
	for name, v := range s.Targets {
		provider, model, ok := strings.Cut(name, "/")
		if !ok || slices.ContainsFunc(v[:], func(f float64) bool { return !(f >= 0 && f < absurd) }) {
			continue
		}
		d.targets[Target{provider, model}] = evidence{
			attempts: v[0], failures: v[1], busy: v[2],
			whole: latency{v[3], v[4], v[5]}, streamed: latency{v[6], v[7], v[8]},
		}
	}
	return d, nil
}

// absurd is more than any fleet can show in a minute.
const absurd = 1e9
