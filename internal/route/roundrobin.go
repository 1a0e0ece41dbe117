package route

import "slices"

// roundRobin lets the members take turns by weight; after the one whose turn it is come
// the others in order, from the beginning again after the last. Members that need a
// translation take no turns while others do not: they come last.
type roundRobin struct{}

func (roundRobin) order(dst []int, b *branch, w *walk) []int {
	first := int(b.sequence[w.draw(b.turn, len(b.sequence))])
	for i := range b.rotating {
		dst = append(dst, (first+i)%b.rotating)
	}
	for i := b.rotating; i < len(b.members); i++ {
		dst = append(dst, i)
	}
	return dst
}

// speakersFirst moves the members that need a translation to the end and returns how many
// take turns.
func speakersFirst(members []twig) int {
	slices.SortStableFunc(members, func(a, b twig) int { return a.lastIfTranslated() - b.lastIfTranslated() })
	speak := 0
	for speak < len(members) && !members[speak].translated {
		speak++
	}
	if speak == 0 {
		return len(members)
	}
	return speak
}

func (t *twig) lastIfTranslated() int {
	if t.translated {
		return 1
	}
	return 0
}

// maxSequence bounds the turns of one round, so that weights like 1000000 and 999999 do
// not make a list of millions.
const maxSequence = 1000

// sequence lays out one round in which every member has as many turns as its weight says,
// spread out: 3 to 1 is a a b a, not a a a b.
func sequence(members []twig) []uint16 {
	weights := make([]int, len(members))
	divisor, total := 0, 0.0
	for _, m := range members {
		divisor = gcd(divisor, m.weight)
		total += float64(m.weight)
	}
	scale := 1 / float64(divisor)
	if total*scale > maxSequence {
		scale = maxSequence / total
	}
	round := 0
	for i, m := range members {
		weights[i] = max(1, int(float64(m.weight)*scale+0.5))
		round += weights[i]
	}
	turns := make([]uint16, 0, round)
	credit := make([]int, len(members))
	for range round {
		best := 0
		for i := range members {
			credit[i] += weights[i]
			if credit[i] > credit[best] {
				best = i
			}
		}
		credit[best] -= round
		turns = append(turns, uint16(best))
	}
	return turns
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
