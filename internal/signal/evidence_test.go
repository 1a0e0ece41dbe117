package signal

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// sample is one thing that happened.
type sample struct {
	at    time.Time
	shown evidence
}

func drawSamples(t *rapid.T) []sample {
	list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sample {
		s := sample{at: after(rapid.Float64Range(0, 600).Draw(t, "at"))}
		s.shown = evidence{
			attempts: float64(rapid.IntRange(0, 3).Draw(t, "attempts")), failures: float64(rapid.IntRange(0, 1).Draw(t, "failures")),
			busy: rapid.Float64Range(0, 1).Draw(t, "busy"),
		}
		if rapid.Bool().Draw(t, "answered") {
			s.shown.mode(rapid.Bool().Draw(t, "stream")).add(rapid.Float64Range(0, 60).Draw(t, "seconds"))
		}
		return s
	}), 0, 30).Draw(t, "samples")
	slices.SortStableFunc(list, func(a, b sample) int { return a.at.Compare(b.at) })
	return list
}

// gathered is what remains at the end of samples, one after another.
func gathered(samples []sample, end time.Time) evidence {
	var e evidence
	at := start()
	for _, s := range samples {
		e.scale(remains(s.at.Sub(at)))
		e.merge(s.shown)
		at = s.at
	}
	e.scale(remains(end.Sub(at)))
	return e
}

func (e evidence) values() [9]float64 {
	return [9]float64{e.attempts, e.failures, e.busy, e.whole.answers, e.whole.sum, e.whole.peak, e.streamed.answers, e.streamed.sum, e.streamed.peak}
}

func same(a, b evidence) bool {
	x, y := a.values(), b.values()
	for i := range x {
		if !near(x[i], y[i]) {
			return false
		}
	}
	return true
}

// What several have seen adds up to what one would know that had seen all, however it is
// spread among them and in whatever order they tell.
func TestPartsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := drawSamples(t)
		end := after(700)
		parts := make([][]sample, rapid.IntRange(1, 5).Draw(t, "instances"))
		for _, s := range samples {
			i := rapid.IntRange(0, len(parts)-1).Draw(t, "seen by")
			parts[i] = append(parts[i], s)
		}
		var sum evidence
		for _, i := range rapid.Permutation(indices(len(parts))).Draw(t, "order") {
			sum.merge(gathered(parts[i], end))
		}
		if want := gathered(samples, end); !same(sum, want) {
			t.Fatalf("parts add up to %v, want %v", sum.values(), want.values())
		}
	})
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// A document says the same when it is read as it said when it was written, for all that
// matters, and what is merged into it in parts is what is merged at once.
func TestDocumentRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := after(700)
		d := document{at: now, targets: map[Target]evidence{}}
		for _, target := range []Target{{"A", "m"}, {"A", "x/y"}, {"B", ""}, {"B", "a b\"c"}} {
			if e := gathered(drawSamples(t), now); e.counts() {
				d.targets[target] = e
			}
		}
		data, err := d.encode("w")
		if err != nil {
			t.Fatal(err)
		}
		read, err := decode(data, now)
		if err != nil || len(read.targets) != len(d.targets) || !read.at.Equal(now) {
			t.Fatalf("decode(%s) = %v, %v; want %v", data, read, err, d)
		}
		for target, e := range d.targets {
			x, y := e.values(), read.targets[target].values()
			for i := range x {
				if x[i]-y[i] > 1e-4 || y[i]-x[i] > 1e-4 {
					t.Fatalf("%v reads as %v, want %v", target, y, x)
				}
			}
		}
	})
}

func TestDecodeOfNonsense(t *testing.T) {
	for text, want := range map[string]int{
		``: 0, `{}`: 0, `{"at":1,"targets":{"A/m":[1,0,0,1,2,2,0,0,0],"nobody":[1,0,0,0,0,0,0,0,0],"B/m":[-1,0,0,0,0,0,0,0,0],"C/m":[1e300,0,0,0,0,0,0,0,0]}}`: 1,
		`{"targets":{"A/m":[1]}}`: 1, `{"at":99999999999999,"targets":{"A/m":[5,9]}}`: 1,
	} {
		d, err := decode([]byte(text), start())
		if err != nil || len(d.targets) != want || d.at.After(start()) {
			t.Errorf("decode(%s) = %d targets at %v, %v; want %d and no future", text, len(d.targets), d.at, err, want)
		}
		for target, e := range d.targets {
			if l := e.load(true, 1); !(l.Failures >= 0 && l.Failures < 1 && l.TTFB >= 0) {
				t.Errorf("decode(%s): the load of %v is %+v", text, target, l)
			}
		}
	}
	for _, text := range []string{`[`, `null"`, `{"targets":[1]}`, `{"targets":{"A/m":"x"}}`} {
		if _, err := decode([]byte(text), start()); err == nil {
			t.Errorf("decode(%s) = nil error", text)
		}
	}
}

// The document keeps those that have most to tell, and drops what has faded.
func TestDocumentIsBounded(t *testing.T) {
	d := document{at: start(), targets: map[Target]evidence{{"old", "m"}: {attempts: 1}}}
	news := document{at: after(600), targets: map[Target]evidence{}}
	for i := range maxShared + 10 {
		news.targets[Target{"P", string(rune('a' + i))}] = evidence{attempts: float64(i + 1)}
	}
	next := d.with(news, after(600))
	if len(next.targets) != maxShared {
		t.Errorf("%d targets, want %d", len(next.targets), maxShared)
	}
	for target, e := range next.targets {
		if e.attempts < 11 {
			t.Errorf("%v is kept with %v attempts, want those with most", target, e.attempts)
		}
	}
}
