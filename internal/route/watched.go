package route

import "switchboard/internal/signal"

// watched are the targets that adaptive virtual models lead to.
type watched map[signal.Target]bool

func watch(names map[string]*name) watched {
	w := watched{}
	seen := map[*group]bool{}
	for _, n := range names {
		if _, is := n.group.strategy.(adaptive); !is {
			continue
		}
		for _, t := range n.group.targets(nil, seen) {
			w[t.signalTarget()] = true
		}
	}
	return w
}

// Adaptive tells whether any virtual model, for whomever, is adaptive: only then does anybody
// need signals.
func (c *Catalog) Adaptive() bool { return len(c.watched) > 0 }

// Watches tells whether somebody needs the signals of an attempt's target.
func (c *Catalog) Watches(a Attempt) (signal.Target, bool) {
	if len(c.watched) == 0 {
		return signal.Target{}, false
	}
	t := signal.Target{Provider: a.Provider.Identity, Model: a.Model.Upstream}
	return t, c.watched[t]
}

// Score is how the adaptive strategy sees a target now.
type Score struct {
	signal.Target
	signal.Load
	PriceRatio float64 // its price to the cheapest one's; 0: there was nothing to compare
	Score      float64 // lower is better: seconds until it answers, times what is dear about it
}

// Scores lists what an adaptive plan of the request compares, nothing when there is no such
// plan or when only one target is left. Plan itself keeps no scores: few ask for them.
func (c *Catalog) Scores(in Input) []Score {
	n := c.find(in.Model)
	if n == nil {
		return nil
	}
	o := n.offer(in.Surface, in.Native)
	if o.root == nil || in.Home != nil {
		return nil
	}
	w := newWalk(o, in)
	var list []Score
	w.scores(o.root, &list)
	return list
}

// scores appends the scores of a branch and of those below it; each branch counts once.
func (w *walk) scores(b *branch, list *[]Score) {
	seen := &w.seen[len(w.offer.targets)+b.id]
	if *seen {
		return
	}
	*seen = true
	if a, is := b.strategy.(adaptive); is {
		for _, r := range a.rate(nil, b, w) {
			if r.score > 0 {
				s := &w.offer.targets[r.target]
				*list = append(*list, Score{s.signalTarget(), r.load, r.ratio, r.score})
			}
		}
	}
	for i := range b.members {
		if nested := b.members[i].branch; nested != nil {
			w.scores(nested, list)
		}
	}
}
