package signal

import (
	"math"
	"time"
)

// memory is how long what was seen counts: after it, a third is left.
const memory = time.Minute

// remains is how much of something seen is left after age.
func remains(age time.Duration) float64 { return math.Exp(-float64(age) / float64(memory)) }

// evidence is what attempts have shown, each counted by what remains of it. Evidence of one
// instant from different places adds up to what one place would have that had seen all, in
// whatever order: that is what makes it fit to be shared.
type evidence struct {
	attempts float64
	failures float64
	busy     float64 // calls under way, on average
	whole    latency
	streamed latency
}

// latency is what answers of one kind took to their first output, in seconds.
type latency struct {
	answers, sum, peak float64
}

func (e *evidence) mode(stream bool) *latency {
	if stream {
		return &e.streamed
	}
	return &e.whole
}

// scale lets all of it fade to a part.
func (e *evidence) scale(left float64) {
	e.attempts *= left
	e.failures *= left
	e.busy *= left
	e.whole.scale(left)
	e.streamed.scale(left)
}

func (l *latency) scale(left float64) {
	l.answers *= left
	l.sum *= left
	l.peak *= left
}

func (l *latency) add(seconds float64) {
	l.answers++
	l.sum += seconds
	l.peak = max(l.peak, seconds)
}

// merge adds evidence of the same instant.
func (e *evidence) merge(other evidence) {
	e.attempts += other.attempts
	e.failures += other.failures
	e.busy += other.busy
	e.whole.merge(other.whole)
	e.streamed.merge(other.streamed)
}

func (l *latency) merge(other latency) {
	l.answers += other.answers
	l.sum += other.sum
	l.peak = max(l.peak, other.peak)
}

// remove takes out what was merged before. Peaks stay: to merge them again changes nothing.
func (e *evidence) remove(other evidence) {
	e.attempts = max(0, e.attempts-other.attempts)
	e.failures = max(0, e.failures-other.failures)
	e.busy = max(0, e.busy-other.busy)
	e.whole.remove(other.whole)
	e.streamed.remove(other.streamed)
	if !e.counts() {
		*e = evidence{}
	}
}

// counts tells whether enough is left to be worth telling.
func (e *evidence) counts() bool { return e.attempts >= tiny || e.busy >= tiny }

func (l *latency) remove(other latency) {
	l.answers = max(0, l.answers-other.answers)
	l.sum = max(0, l.sum-other.sum)
}

// tiny is what is not worth remembering.
const tiny = 1e-3

// load reads the evidence with so much of it left, but for who is under way.
func (e *evidence) load(stream bool, left float64) Load {
	// One attempt more than there were: a single failure is not certainty. An attempt that
	// failed after its output counts as failed later than as an attempt.
	l := Load{Failures: e.failures * left / (max(e.attempts, e.failures)*left + 1)}
	m := e.mode(stream)
	if m.answers > 0 {
		l.TTFB = max(m.sum/m.answers, m.peak*left)
		l.Confidence = min(1, m.answers*left)
	}
	return l
}
