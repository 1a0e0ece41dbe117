package audit

import "strconv"

const nanoPerUSD = 1_000_000_000

// USD writes nano-USD as US dollars: exact, at most nine decimals, no trailing zeros.
func USD(nano int64) string {
	sign := ""
	magnitude := uint64(nano)
	if nano < 0 {
		sign, magnitude = "-", -magnitude
	}
	text := sign + strconv.FormatUint(magnitude/nanoPerUSD, 10)
	rest := magnitude % nanoPerUSD
	if rest == 0 {
		return text
	}
	decimals := strconv.FormatUint(rest+nanoPerUSD, 10)[1:]
	for decimals[len(decimals)-1] == '0' {
		decimals = decimals[:len(decimals)-1]
	}
	return text + "." + decimals
}
