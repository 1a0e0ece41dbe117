package route

import "switchboard/internal/health"

// walk goes through an offer once, in the order of its strategies, and collects the
// attempts that are not degraded. Its arrays are room for usual sizes, so that a plan is
// two allocations: the walk and the attempts.
type walk struct {
	offer    *offer
	in       Input
	attempts []Attempt

	states []health.State // by slot
	out    []bool         // by slot: already taken
	seen   []bool         // by target, then by branch
	order  []int          // positions, a stack of one stretch per branch under way
	prices []price        // scratch of the strategies
	keys   []keyPlace     // scratch of the keys

	room struct {
		states [16]health.State
		flags  [48]bool
		order  [16]int
		prices [8]price
		keys   [8]keyPlace
	}
}

func newWalk(o *offer, in Input) *walk {
	w := &walk{offer: o, in: in}
	w.order, w.prices, w.keys = w.room.order[:0], w.room.prices[:0], w.room.keys[:0]
	w.states = w.room.states[:]
	if o.slots > len(w.states) {
		w.states = make([]health.State, o.slots)
	}
	flags := w.room.flags[:]
	if need := o.slots + len(o.targets) + o.branches; need > len(flags) {
		flags = make([]bool, need)
	}
	w.out, w.seen = flags[:o.slots], flags[o.slots:]
	if in.Health != nil && !in.Health.Quiet() {
		for i := range o.targets {
			s := &o.targets[i]
			for key := range s.account.keys {
				w.states[s.slot+key] = s.status(in.Health, key).State
				w.out[s.slot+key] = w.states[s.slot+key] == health.Degraded
			}
		}
	}
	return w
}

// skip leaves out an attempt that is made already.
func (w *walk) skip(a *Attempt) {
	for i := range w.offer.targets {
		s := &w.offer.targets[i]
		if s.account.provider == a.Provider && s.model.Upstream == a.Model.Upstream {
			for key := range s.account.keys {
				w.out[s.slot+key] = w.out[s.slot+key] || s.account.keys[key].ID == a.Key.ID
			}
		}
	}
}

// run returns the attempts; nil when there are none.
func (w *walk) run() []Attempt {
	left := 0
	for _, out := range w.out {
		if !out {
			left++
		}
	}
	if left == 0 || w.offer.root == nil {
		return nil
	}
	w.attempts = make([]Attempt, 0, left)
	w.branch(w.offer.root)
	return w.attempts
}

// branch visits the members in the order of the strategy. What was visited already, in
// another branch, is not visited again: the first place counts.
func (w *walk) branch(b *branch) {
	if seen := &w.seen[len(w.offer.targets)+b.id]; *seen {
		return
	} else {
		*seen = true
	}
	from := len(w.order)
	w.order = b.strategy.order(w.order, b, w)
	for i := from; i < from+len(b.members); i++ {
		if t := &b.members[w.order[i]]; t.branch != nil {
			w.branch(t.branch)
		} else {
			w.target(t.target)
		}
	}
	w.order = w.order[:from]
}

func (w *walk) target(at int) {
	if w.seen[at] {
		return
	}
	w.seen[at] = true
	w.seat(&w.offer.targets[at])
}

// pinned returns the attempts at the one seat that a pin points to.
func (w *walk) pinned(s *seat) []Attempt {
	w.seat(s)
	for i := range w.attempts {
		w.attempts[i].Pinned = true
	}
	return w.attempts
}

func (w *walk) seat(s *seat) {
	for _, k := range w.keysOf(s) {
		a := s.attempt(k.key)
		a.Trial = w.states[s.slot+k.key] == health.Trial
		w.attempts = append(w.attempts, a)
	}
}

// rotation is the name of a counter.
type rotation struct {
	first string
	// spare is used where the rotation only orders what comes after the first attempt.
	// If that advanced the counter itself, requests that never get that far would take
	// turns from those that do: of two keys one could be hit always.
	spare string
}

func newRotation(name string) rotation { return rotation{name, "spare:" + name} }

// draw returns the next number of a rotation, modulo n.
func (w *walk) draw(r rotation, n int) int {
	if w.in.Draw == nil || n < 2 {
		return 0
	}
	turn := r.first
	if len(w.attempts) > 0 {
		turn = r.spare
	}
	return int(w.in.Draw(turn) % uint64(n))
}
