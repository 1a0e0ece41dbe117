package provider

import (
	"bytes"
	"math"
	"math/bits"
	"strconv"
)

// Charge is what a provider says that a request was charged.
type Charge struct {
	Known bool
	Total NanoUSD
	Parts Cost // of Total; only when Split
	Split bool
}

// Bill is what a request cost. Split is false when only the total is known.
type Bill struct {
	Total NanoUSD
	Parts Cost
	Split bool
}

// Bill prices a usage. A price of the configuration beats what the provider says it
// charged, which beats the price of the catalog: who writes a price down means it, while
// the catalog is a list that discounts and other hosts are not in. A charge without parts is
// divided as the catalog's prices would be. false: unknown.
func (m *Model) Bill(u Usage) (Bill, bool) {
	cost, priced := m.Pricing.Price(u)
	if !u.Reported.Known || m.Pricing != nil && !m.ListPrice {
		return Bill{cost.Input + cost.Output, cost, true}, priced
	}
	bill := Bill{u.Reported.Total, u.Reported.Parts, u.Reported.Split}
	if list := cost.Input + cost.Output; !bill.Split && priced && list > 0 {
		hi, lo := bits.Mul64(uint64(bill.Total), uint64(cost.Input))
		in, _ := bits.Div64(hi, lo, uint64(list)) // hi < list, as cost.Input is at most list
		bill.Parts, bill.Split = Cost{NanoUSD(in), bill.Total - NanoUSD(in)}, true
	}
	return bill, true
}

// charge is the money in a usage object as the vendor wrote it.
type charge struct {
	set                  uint8 // bit per amount
	own                  bool  // is_byok: the host was paid with a key of the account's owner
	total, host, in, out NanoUSD
}

const (
	cTotal = 1 << iota // what the account was charged
	cHost              // what the host asks; charged beside the total when own
	cIn                // the prompt's part of cHost
	cOut               // the completion's part of cHost
)

func (m *charge) take(c *cursor, bit uint8, into *NanoUSD, scale int) {
	if n, ok := decimalNano(c.raw(), scale); ok {
		*into = n
		m.set |= bit
	}
}

// details reads OpenRouter's cost_details.
func (m *charge) details(c *cursor) {
	if !c.open('{') {
		return
	}
	for {
		key, ok := c.key()
		if !ok {
			return
		}
		switch string(key) {
		case "upstream_inference_cost":
			m.take(c, cHost, &m.host, 0)
		case "upstream_inference_prompt_cost", "upstream_inference_input_cost":
			m.take(c, cIn, &m.in, 0)
		case "upstream_inference_completions_cost", "upstream_inference_output_cost":
			m.take(c, cOut, &m.out, 0)
		default:
			c.skip()
		}
	}
}

// charge is what the amounts add up to. They are split when the parts are all of the total.
func (m *charge) charge() Charge {
	if m.set&cTotal == 0 || m.own && m.set&cHost == 0 {
		return Charge{}
	}
	ch := Charge{Known: true, Total: m.total}
	if m.own {
		if ch.Total > math.MaxInt64-m.host {
			return Charge{}
		}
		ch.Total += m.host
	}
	if m.set&(cIn|cOut) == cIn|cOut && m.in <= ch.Total && m.out == ch.Total-m.in {
		ch.Split, ch.Parts = true, Cost{m.in, m.out}
	}
	return ch
}

// decimalNano reads a JSON number of US dollars times 10^scale as nano-USD, exactly, rounded
// half up where it has more decimals than that; signs and what is no number are refused.
func decimalNano(raw []byte, scale int) (NanoUSD, bool) {
	mantissa, exponent, _ := bytes.Cut(raw, []byte("e"))
	if len(mantissa) == len(raw) {
		mantissa, exponent, _ = bytes.Cut(raw, []byte("E"))
	}
	shift := 9 - scale
	if len(exponent) > 0 {
		e, err := strconv.Atoi(string(exponent))
		if err != nil || e < -400 || e > 400 {
			return 0, false
		}
		shift += e
	}
	whole, fraction, pointed := bytes.Cut(mantissa, []byte("."))
	if len(whole) == 0 || pointed && len(fraction) == 0 {
		return 0, false
	}
	var n NanoUSD
	left := shift + len(whole) // digits before the place of the nano
	up := false
	for _, digits := range [2][]byte{whole, fraction} {
		for _, d := range digits {
			if d < '0' || d > '9' {
				return 0, false
			}
			switch {
			case left > 0:
				if n > (math.MaxInt64-9)/10 {
					return 0, false
				}
				n = n*10 + NanoUSD(d-'0')
			case left == 0:
				up = d >= '5'
			}
			left--
		}
	}
	for ; left > 0; left-- {
		if n > math.MaxInt64/10 {
			return 0, false
		}
		n *= 10
	}
	if up {
		n++
	}
	return n, true
}
