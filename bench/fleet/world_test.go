package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"switchboard/internal/upstreamtest"
)

// What can be wrong with a provider for some time.
const (
	slow    = "slow"    // everything takes five times as long, and works
	limited = "limited" // 429
	down    = "down"    // connections are refused
)

// phase is a time at which something is wrong, in minutes since the beginning.
type phase struct {
	from, to float64
	what     string
}

// vendor is a simulated provider.
type vendor struct {
	name        string
	input       float64       // US dollars per million tokens; a tenth from the cache, four times for output
	first       time.Duration // to the first output of a short prompt
	phases      []phase
	errorsPer1k float64 // 503s, at any time
}

// vendors are what the fleet is served by: all have the same model.
func vendors() []vendor {
	return []vendor{
		{name: "A", input: 1.00, first: 1200 * time.Millisecond},
		{name: "B", input: 2.00, first: 600 * time.Millisecond, phases: []phase{{20, 35, slow}}},
		{name: "C", input: 3.00, first: 350 * time.Millisecond, phases: []phase{{10, 13, limited}, {40, 42, limited}}},
		{name: "D", input: 2.00, first: 700 * time.Millisecond, phases: []phase{{25, 31, down}}, errorsPer1k: 1},
	}
}

const (
	cacheLife = 5 * time.Minute // of a prompt, since it was last used
	cacheUnit = 128             // tokens; only whole units are cached
	cacheMin  = 1024
	prefill   = 12_000  // tokens a second that are not cached
	speed     = 80      // tokens a second of output
	capacity  = 25      // answers under way at which a provider takes twice as long to begin
	retry     = "20"    // Retry-After of a 429, in seconds
	million   = 1000000 // tokens that a price is for
)

// world is what the providers know: caches and calls under way.
type world struct {
	began time.Time
	seed  uint64

	mu      sync.Mutex
	prompts map[place]prompt
	ends    map[string][]time.Time
}

type place struct {
	vendor  string
	session int
}

// prompt is what a provider has in its cache of a session.
type prompt struct {
	tokens int
	used   time.Time
}

func newWorld(began time.Time, seed uint64) *world {
	return &world{began: began, seed: seed, prompts: map[place]prompt{}, ends: map[string][]time.Time{}}
}

func (w *world) network() *upstreamtest.Network {
	n := upstreamtest.NewNetwork()
	for _, v := range vendors() {
		n.Set(v.name, func(c upstreamtest.Call) upstreamtest.Reply { return w.answer(&v, c) })
	}
	return n
}

// turn is one request of a session, as its text says.
type turn struct {
	session, turn  int
	prompt, output int // tokens
}

const turnText = "session %d turn %d prompt %d output %d"

// body is the request of a turn. Its prompt is as long as it says in the world's mind only.
func (t turn) body() string {
	return fmt.Sprintf(`{"model":"smart","stream":true,"stream_options":{"include_usage":true},"session_id":"s%04d","messages":[{"role":"user","content":"`+turnText+`"}]}`,
		t.session, t.session, t.turn, t.prompt, t.output)
}

func parse(body []byte) (t turn) {
	const before = `"content":"`
	text := string(body)
	for i := 0; i+len(before) < len(text); i++ {
		if text[i:i+len(before)] == before {
			fmt.Sscanf(text[i+len(before):], turnText, &t.session, &t.turn, &t.prompt, &t.output)
			break
		}
	}
	return t
}

// chance is the randomness of one turn at one provider: the same whatever else happens.
func (w *world) chance(v *vendor, t turn) *rand.Rand {
	return rand.New(rand.NewPCG(w.seed+uint64(v.name[0]), uint64(t.session)<<32|uint64(t.turn)))
}

// answer is what a provider says to a turn, now.
func (w *world) answer(v *vendor, c upstreamtest.Call) upstreamtest.Reply {
	t, now := parse(c.Body), time.Now()
	chance := w.chance(v, t)
	factor := 1.0
	for _, p := range v.phases {
		if minutes := now.Sub(w.began).Minutes(); minutes < p.from || minutes >= p.to {
			continue
		}
		switch p.what {
		case limited:
			return upstreamtest.JSON(http.StatusTooManyRequests, `{"error":{"message":"slow down","type":"rate_limit_error"}}`).With("Retry-After", retry)
		case down:
			return upstreamtest.Reply{Fail: upstreamtest.ErrRefused}
		case slow:
			factor = 5
		}
	}
	if chance.Float64()*1000 < v.errorsPer1k {
		return upstreamtest.JSON(http.StatusServiceUnavailable, `{"error":{"message":"try again"}}`)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	cached := w.cached(v, t, now)
	busy := float64(w.underWay(v, now)) / capacity
	jitter := math.Exp(chance.NormFloat64() * 0.25)
	first := time.Duration(float64(v.first)*jitter*factor*(1+busy*busy)) +
		time.Duration(float64(t.prompt-cached)/prefill*float64(time.Second)) + time.Duration(chance.Int64N(int64(time.Millisecond)))
	rest := time.Duration(float64(t.output)/speed*float64(time.Second)) + time.Duration(chance.Int64N(int64(time.Millisecond)))
	w.ends[v.name] = append(w.ends[v.name], now.Add(first+rest))
	w.prompts[place{v.name, t.session}] = prompt{t.prompt, now.Add(first)}
	reply := upstreamtest.Stream(`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"hello"}}]}` + "\n\n")
	reply.Wait = first
	return reply.Then(upstreamtest.Step{Wait: rest, Bytes: fmt.Appendf(nil,
		"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"+
			"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d,\"prompt_tokens_details\":{\"cached_tokens\":%d}}}\n\ndata: [DONE]\n\n",
		t.prompt, t.output, t.prompt+t.output, cached)})
}

// cached is how much of a turn's prompt the provider still has from the turns before.
func (w *world) cached(v *vendor, t turn, now time.Time) int {
	known := w.prompts[place{v.name, t.session}]
	if known.tokens < cacheMin || now.Sub(known.used) > cacheLife {
		return 0
	}
	return min(known.tokens, t.prompt) / cacheUnit * cacheUnit
}

// underWay is how many answers a provider is giving.
func (w *world) underWay(v *vendor, now time.Time) int {
	left := w.ends[v.name][:0]
	for _, end := range w.ends[v.name] {
		if end.After(now) {
			left = append(left, end)
		}
	}
	w.ends[v.name] = left
	return len(left)
}
