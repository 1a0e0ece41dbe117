package route

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"switchboard/internal/signal"
)

// Objectives of the adaptive strategy, the default first.
const (
	ObjectiveBalanced = "balanced" // twice as dear must be twice as soon
	ObjectiveLatency  = "latency"  // the price does not count
	ObjectiveCost     = "cost"     // twice as dear must be eight times as soon
)

// Objectives lists them.
func Objectives() []string { return []string{ObjectiveBalanced, ObjectiveLatency, ObjectiveCost} }

// adaptive takes the better one of two that are drawn by weight, then the others as they
// score. Better of two spreads what arrives at once, where best of all would send everybody
// to one place until its signals are bad (DESIGN 8).
//
// Not here: the pin. A viable one comes first whatever the scores, as for every strategy, so
// that a target which is slow or dear keeps its sessions; only what health leaves alone
// (429s, failures in a row) gives one up.
type adaptive struct {
	dearness int // how often the price counts: once for balanced
}

func (adaptive) tune(v *Virtual) (strategy, bool) {
	switch v.Objective {
	case "", ObjectiveBalanced:
		return adaptive{1}, true
	case ObjectiveLatency:
		return adaptive{0}, true
	case ObjectiveCost:
		return adaptive{3}, true
	}
	return nil, false
}

func (a adaptive) order(dst []int, b *branch, w *walk) []int {
	from := len(dst)
	var room [8]rating
	ratings := a.rate(room[:0], b, w)
	if len(ratings) > 1 {
		sortRatings(ratings, b)
		if pool := speakers(ratings, b); len(pool) > 1 {
			first := better(pool, b, w)
			taken := pool[first]
			copy(pool[1:first+1], pool[:first])
			pool[0] = taken
		}
	}
	for i := range ratings {
		dst = append(dst, ratings[i].position)
	}
	for i := range b.members { // nobody there can serve now; whoever asks hears of all
		if !slices.Contains(dst[from:], i) {
			dst = append(dst, i)
		}
	}
	return dst
}

// sortRatings puts those that need a translation last, and otherwise the better ones first.
// They are few, and slices.SortStableFunc would make the function of Lambda larger by 8 KB.
func sortRatings(ratings []rating, b *branch) {
	last := func(r *rating) int { return b.members[r.position].lastIfTranslated() }
	for i := 1; i < len(ratings); i++ {
		for j := i; j > 0; j-- {
			x, y := &ratings[j-1], &ratings[j]
			if cmp.Or(last(x)-last(y), x.compare(y)) <= 0 {
				break
			}
			*x, *y = *y, *x
		}
	}
}

// speakers are those, of ratings in order, that need no translation, if there are any, else
// all: a translated target is only for when no other is left.
func speakers(ratings []rating, b *branch) []rating {
	n := 0
	for n < len(ratings) && !b.members[ratings[n].position].translated {
		n++
	}
	if n == 0 {
		return ratings
	}
	return ratings[:n]
}

// better draws two by weight and returns the place of the better one in ratings.
func better(ratings []rating, b *branch, w *walk) int {
	random := w.random(b.turn.first)
	total := 0
	for i := range ratings {
		total += b.members[ratings[i].position].weight
	}
	one := draw(ratings, b, uint32(random), total, -1)
	total -= b.members[ratings[one].position].weight
	other := draw(ratings, b, uint32(random>>32), total, one)
	if ratings[other].compare(&ratings[one]) < 0 {
		return other
	}
	return one
}

// draw is a place in ratings other than not, by weight.
func draw(ratings []rating, b *branch, random uint32, total, not int) int {
	left := int(uint64(random) * uint64(total) >> 32)
	last := 0
	for i := range ratings {
		if i == not {
			continue
		}
		last = i
		if left -= b.members[ratings[i].position].weight; left < 0 {
			break
		}
	}
	return last
}

// random is the chance in a decision: of a session always the same, so that its first
// requests draw the same two wherever they arrive, and so do all while the store is silent.
func (w *walk) random(name string) uint64 {
	if w.in.SessionKey == "" {
		if w.in.Random == nil {
			return 0
		}
		return w.in.Random()
	}
	const prime, basis = 1099511628211, 14695981039346656037 // FNV-1a
	h := uint64(basis)
	for _, text := range [2]string{name, w.in.SessionKey} {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * prime
		}
		h *= prime
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9 // its upper bits alone are poor
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// rating is how a member of a branch stands for one request.
type rating struct {
	position int
	target   int // in offer.targets: the member, or who would serve for it
	load     signal.Load
	price    price
	ratio    float64 // its price to the cheapest one's
	score    float64
}

func (r *rating) compare(other *rating) int { return cmp.Compare(r.score, other.score) }

const (
	// usual is how many seconds an answer takes while nobody has answered.
	usual = 1.0
	// soonest keeps ratios sane where answers take no time.
	soonest = 0.001
	// dearest is how many times dearer than the cheapest one a target can count as, also next
	// to one that costs nothing.
	dearest = 16.0
	// hopeless is the share of failures beyond which more make no difference.
	hopeless = 0.95
)

// rate scores the members that can serve now. A pool of one has nothing to compare.
func (a adaptive) rate(ratings []rating, b *branch, w *walk) []rating {
	for i := range b.members {
		if at := w.candidate(&b.members[i]); at >= 0 {
			ratings = append(ratings, rating{position: i, target: at})
		}
	}
	if len(ratings) > 1 {
		w.score(ratings, b, a.dearness)
	}
	return ratings
}

// score sets the scores: the seconds until this target answers one more request, as far as
// it is known, times what is dear about it. Lower is better.
func (w *walk) score(ratings []rating, b *branch, dearness int) {
	fastest := 0.0
	for i := range ratings {
		r := &ratings[i]
		r.load = w.load(r.target)
		r.price = w.priceOf(r.position, &b.members[r.position])
		if r.load.Confidence > 0 && (fastest == 0 || r.load.TTFB < fastest) {
			fastest = max(soonest, r.load.TTFB)
		}
	}
	if fastest == 0 {
		fastest = usual
	}
	comparePrices(ratings)
	for i := range ratings {
		r := &ratings[i]
		// Who has not been seen lately counts as fast, or would never be seen again.
		wait := fastest + max(0, r.load.TTFB-fastest)*r.load.Confidence
		r.score = wait * (r.load.InFlight + 1) / (1 - min(hopeless, r.load.Failures))
		for range dearness {
			r.score *= r.ratio
		}
	}
}

// comparePrices sets the ratios. A price that is not known is as bad as the worst known one.
func comparePrices(ratings []rating) {
	least, free := int64(0), false
	for i := range ratings {
		switch p := ratings[i].price; {
		case !p.known:
		case p.nano <= 0:
			free = true
		case least == 0 || p.nano < least:
			least = p.nano
		}
	}
	worst := 1.0
	for i := range ratings {
		r := &ratings[i]
		switch {
		case !r.price.known:
			continue
		case r.price.nano <= 0:
			r.ratio = 1
		case free:
			r.ratio = dearest
		default:
			r.ratio = min(dearest, float64(r.price.nano)/float64(least))
		}
		worst = max(worst, r.ratio)
	}
	for i := range ratings {
		if !ratings[i].price.known {
			ratings[i].ratio = worst
		}
	}
}

// candidate is the target that a member would be served by: of a nested branch the one that
// is likely to answer first. -1 when none is left.
func (w *walk) candidate(t *twig) int {
	if t.branch == nil {
		if w.left(t.target) {
			return t.target
		}
		return -1
	}
	best, least := -1, 0.0
	for _, at := range t.branch.reach {
		if !w.left(at) {
			continue
		}
		l := w.load(at)
		if wait := l.TTFB * (l.InFlight + 1); best < 0 || wait < least {
			best, least = at, wait
		}
	}
	return best
}

// left tells whether some key of a target can still be tried.
func (w *walk) left(at int) bool {
	s := &w.offer.targets[at]
	return slices.Contains(w.out[s.slot:s.slot+len(s.account.keys)], false)
}

func (w *walk) load(at int) signal.Load {
	s := &w.offer.targets[at]
	return w.in.Signals.Load(s.signalTarget(), w.in.Stream)
}

func (t *target) signalTarget() signal.Target {
	return signal.Target{Provider: t.account.provider.Identity, Model: t.model.Upstream}
}

// objectiveError is what is wrong with a virtual model's objective.
func objectiveError(v *Virtual, reason string) *VirtualError {
	text := fmt.Sprintf("there is no objective %q; known here: %s", v.Objective, strings.Join(Objectives(), ", "))
	if reason != ReasonAdaptive {
		text = fmt.Sprintf("the objective %q means nothing to the strategy %s; it is for %s", v.Objective, reason, ReasonAdaptive)
	}
	return &VirtualError{Source: v.Source, Field: "objective", Text: text}
}
