package provider

import (
	"errors"
	"math"
	"strings"
)

var (
	errNotDecimal = errors.New("must be a decimal number like 0.075")
	errTooFine    = errors.New("must have at most nine decimals")
	errTooLarge   = errors.New("is too large")
)

// ParseUSDPerMTok reads a price in USD per million tokens, exactly: "2.00" is 2e9. It
// takes digits with at most one point; signs, exponents and more than nine decimals are
// errors, whose text completes "<key> …".
func ParseUSDPerMTok(decimal string) (NanoUSD, error) {
	n, scale, err := parseDecimal(decimal)
	if err != nil {
		return 0, err
	}
	for ; scale < 9; scale++ {
		if n > math.MaxInt64/10 {
			return 0, errTooLarge
		}
		n *= 10
	}
	return n, nil
}

// FactorOf reads a factor like "0.5" as the reduced fraction num/den.
func FactorOf(decimal string) (num, den int64, err error) {
	num, scale, err := parseDecimal(decimal)
	if err != nil {
		return 0, 0, err
	}
	den = 1
	for range scale {
		den *= 10
	}
	a, b := num, den
	for b != 0 {
		a, b = b, a%b
	}
	return num / a, den / a, nil
}

// parseDecimal reads n / 10^scale, scale at most 9, without zeros at the end of the fraction.
func parseDecimal(s string) (n int64, scale int, err error) {
	whole, fraction, pointed := strings.Cut(s, ".")
	if whole == "" || pointed && fraction == "" {
		return 0, 0, errNotDecimal
	}
	for _, d := range []byte(whole + fraction) {
		if d < '0' || d > '9' {
			return 0, 0, errNotDecimal
		}
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > 9 {
		return 0, 0, errTooFine
	}
	for _, d := range []byte(whole + fraction) {
		if n > (math.MaxInt64-9)/10 {
			return 0, 0, errTooLarge
		}
		n = n*10 + int64(d-'0')
	}
	return n, len(fraction), nil
}
