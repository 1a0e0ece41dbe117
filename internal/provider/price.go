package provider

import (
	"math"
	"math/bits"
)

// perMTok is what rates are per.
const perMTok = 1_000_000

// Price is the cost of a usage. ok is false when a rate that is needed is unknown, the
// service tier has no price, or the usage's quality is unknown.
func (p *Pricing) Price(u Usage) (cost Cost, ok bool) {
	if p == nil || u.Quality == usageUnknown || u.Quality == "" {
		return Cost{}, false
	}
	tier, ok := p.tier(u.ServiceTier)
	if !ok {
		return Cost{}, false
	}
	r := resolve(p.ratesFor(u.Input), tier)
	in, out := sum{den: tier.Denominator}, sum{den: tier.Denominator}

	write5m := u.CacheWrite - u.CacheWrite1h
	plain := u.Input - u.CachedInput - u.CacheWrite - u.AudioInput
	in.add(max(plain, 0), r.input)
	in.add(u.CachedInput, r.cachedInput)
	in.add(max(write5m, 0), r.cacheWrite)
	in.add(u.CacheWrite1h, r.cacheWrite1h)
	in.add(u.AudioInput, r.audioInput)
	out.add(max(u.Output-u.AudioOutput, 0), r.output)
	out.add(u.AudioOutput, r.audioOutput)

	cost.Input, ok = in.nano()
	if !ok {
		return Cost{}, false
	}
	if cost.Output, ok = out.nano(); !ok {
		return Cost{}, false
	}
	return cost, true
}

// SwitchCost is what resending tokens to a cold cache costs: tokens x (input rate - cached
// rate); ok is false when the price is unknown.
func (p *Pricing) SwitchCost(tokens int64) (NanoUSD, bool) {
	if p == nil || tokens < 0 {
		return 0, false
	}
	r := resolve(p.ratesFor(tokens), standard())
	if !r.input.known || !r.cachedInput.known {
		return 0, false
	}
	saved := rate{nano: max(r.input.nano-r.cachedInput.nano, 0), times: 1, known: true}
	s := sum{den: 1}
	s.add(tokens, saved)
	return s.nano()
}

// typicalOutput is how many tokens an answer is taken to have before it is there: some
// hundred in a chat, a few thousand when an agent writes a file.
const typicalOutput = 1000

// Estimate is the price used for ranking (DESIGN 5): the input tokens at the input price
// and a typical answer at the output price.
func (p *Pricing) Estimate(inputTokens int64) (NanoUSD, bool) {
	if p == nil || inputTokens < 0 {
		return 0, false
	}
	r := resolve(p.ratesFor(inputTokens), standard())
	s := sum{den: 1}
	s.add(inputTokens, r.input)
	if !r.input.known {
		return 0, false
	}
	if r.output.known { // embeddings have none
		s.add(typicalOutput, r.output)
	}
	return s.nano()
}

// tier finds how a service tier is priced.
func (p *Pricing) tier(name string) (Tier, bool) {
	t, ok := p.ServiceTiers[name]
	if !ok {
		return standard(), standardTier(name)
	}
	if t.Denominator <= 0 { // only rates of its own
		t.Numerator, t.Denominator = 1, 1
	}
	return t, true
}

func standard() Tier { return Tier{Numerator: 1, Denominator: 1} }

// ratesFor returns the rates for a prompt of that many tokens, all parts together.
func (p *Pricing) ratesFor(prompt int64) Rates {
	r := p.Rates
	highest := int64(-1)
	var above *Rates
	for i := range p.Above {
		if a := &p.Above[i]; prompt > a.Tokens && a.Tokens > highest {
			highest, above = a.Tokens, &a.Rates
		}
	}
	if above == nil {
		return r
	}
	pick := func(to **NanoUSD, from *NanoUSD) {
		if from != nil {
			*to = from
		}
	}
	pick(&r.Input, above.Input)
	pick(&r.CachedInput, above.CachedInput)
	pick(&r.CacheWrite, above.CacheWrite)
	pick(&r.CacheWrite1h, above.CacheWrite1h)
	pick(&r.Output, above.Output)
	pick(&r.AudioInput, above.AudioInput)
	pick(&r.AudioOutput, above.AudioOutput)
	return r
}

// rate is a price per million tokens, times a numerator.
type rate struct {
	nano, times int64
	known       bool
}

// resolved are rates with every fallback taken.
type resolved struct {
	input, cachedInput, cacheWrite, cacheWrite1h, output, audioInput, audioOutput rate
}

// resolve takes a tier's own rate where it has one, else the base rate times its factor,
// else the fallback that Rates documents.
func resolve(base Rates, t Tier) resolved {
	one := func(own, base *NanoUSD, fallback rate) rate {
		switch {
		case own != nil:
			return rate{*own, t.Denominator, true}
		case base != nil:
			return rate{*base, t.Numerator, true}
		}
		return fallback
	}
	var r resolved
	r.input = one(t.Rates.Input, base.Input, rate{})
	r.cachedInput = one(t.Rates.CachedInput, base.CachedInput, r.input)
	r.cacheWrite = one(t.Rates.CacheWrite, base.CacheWrite, r.input)
	r.cacheWrite1h = one(t.Rates.CacheWrite1h, base.CacheWrite1h, r.cacheWrite)
	r.audioInput = one(t.Rates.AudioInput, base.AudioInput, r.input)
	r.output = one(t.Rates.Output, base.Output, rate{})
	r.audioOutput = one(t.Rates.AudioOutput, base.AudioOutput, r.output)
	return r
}

// sum is an exact sum of tokens x rate, in nano-USD per million x den, in 128 bits. It is
// rounded once, at its end.
type sum struct {
	hi, lo uint64
	den    int64
	bad    bool // a rate is unknown, or the sum is larger than any bill
}

func (s *sum) add(tokens int64, r rate) {
	if tokens == 0 {
		return
	}
	if tokens < 0 || !r.known || r.nano < 0 || r.times < 0 {
		s.bad = true
		return
	}
	hi, lo := bits.Mul64(uint64(tokens), uint64(r.nano))
	over, low := bits.Mul64(lo, uint64(r.times))
	tooHigh, high := bits.Mul64(hi, uint64(r.times))
	var c1, c2, c3 uint64
	high, c1 = bits.Add64(high, over, 0)
	s.lo, c2 = bits.Add64(s.lo, low, 0)
	s.hi, c3 = bits.Add64(s.hi, high, c2)
	s.bad = s.bad || tooHigh|c1|c3 != 0
}

// nano returns the sum rounded half up to a nano-USD.
func (s *sum) nano() (NanoUSD, bool) {
	hi, by := bits.Mul64(uint64(s.den), perMTok)
	if s.bad || s.den <= 0 || hi != 0 {
		return 0, false
	}
	if s.hi >= by {
		return 0, false // the quotient has more than 64 bits
	}
	q, rem := bits.Div64(s.hi, s.lo, by)
	if q >= math.MaxInt64 {
		return 0, false
	}
	if rem >= by-rem {
		q++
	}
	return NanoUSD(q), true
}
