package ui

import (
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"switchboard/internal/audit"
)

// Unknown stands where a figure is not known, which is not 0.
const Unknown = "---"

func formats() template.FuncMap {
	return template.FuncMap{
		"count": Count, "countOf": CountOf, "compact": Compact, "usd": USD, "usdOf": USDOf, "exact": exact,
		"percent": Percent, "millis": Millis, "millisOf": millisOf, "when": When, "stamp": Stamp, "iso": iso, "clip": Clip,
		"dict": dict, "isDay": isDay, "tone": tone, "stateTone": stateTone, "tokens": tokens, "cachedShare": cachedShare,
		"shareOf": shareOf, "hasCount": hasCount, "sum": func(a, b int64) int64 { return a + b },
	}
}

// Count writes 12345 as 12,345.
func Count(n int64) string {
	text := strconv.FormatInt(n, 10)
	sign, digits := "", text
	if n < 0 {
		sign, digits = "-", text[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// CountOf is Count of a figure that may be unknown.
func CountOf(n *int64) string {
	if n == nil {
		return Unknown
	}
	return Count(*n)
}

// Compact writes 1234567 as 1.23M.
func Compact(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e4, "k"}} {
		if n >= unit.size {
			size := unit.size
			if unit.name == "k" {
				size = 1e3
			}
			return strconv.FormatFloat(float64(n)/float64(size), 'g', 3, 64) + unit.name
		}
	}
	return Count(n)
}

// USD writes nano-USD for people: cents from a dollar on, four significant digits below.
func USD(nano int64) string {
	if nano == 0 {
		return "$0"
	}
	sign, dollars := "", math.Abs(float64(nano))/1e9
	if nano < 0 {
		sign = "-"
	}
	if dollars >= 0.9999995 {
		whole, cents, _ := strings.Cut(strconv.FormatFloat(dollars, 'f', 2, 64), ".")
		n, _ := strconv.ParseInt(whole, 10, 64) //nolint:errcheck // int64 nano-USD are ten digits of dollars
		return sign + "$" + Count(n) + "." + cents
	}
	decimals := min(9, 3-int(math.Floor(math.Log10(dollars))))
	return sign + "$" + strings.TrimRight(strconv.FormatFloat(dollars, 'f', decimals, 64), "0")
}

// USDOf is USD of a sum that may be unknown.
func USDOf(nano *int64) string {
	if nano == nil {
		return Unknown
	}
	return USD(*nano)
}

// exact is all there is to a sum, for those who want to see it.
func exact(nano *int64) string {
	if nano == nil {
		return "unknown"
	}
	return "$" + audit.USD(*nano)
}

// Percent is part of whole; unknown when there is no whole.
func Percent(part, whole int64) string {
	if whole <= 0 {
		return Unknown
	}
	share := 100 * float64(part) / float64(whole)
	if share > 0 && share < 10 || share > 99 && share < 100 {
		return strconv.FormatFloat(math.Floor(share*10)/10, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(math.Floor(share+.5), 'f', 0, 64) + " %"
}

// Millis writes a duration.
func Millis(ms int64) string {
	switch {
	case ms < 1000:
		return strconv.FormatInt(ms, 10) + " ms"
	case ms < 60_000:
		return strconv.FormatFloat(float64(ms)/1000, 'f', 1, 64) + " s"
	}
	return strconv.FormatInt(ms/60_000, 10) + " min " + strconv.FormatInt(ms/1000%60, 10) + " s"
}

func millisOf(ms *int64) string {
	if ms == nil {
		return Unknown
	}
	return Millis(*ms)
}

// When writes epoch milliseconds in UTC, which every page says is its zone.
func When(ms int64) string { return Stamp(time.UnixMilli(ms)) }

// Stamp is When of a time.
func Stamp(at time.Time) string {
	return at.UTC().Format("2006-01-02 15:04:05")
}

func iso(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// Clip shortens a text for a narrow place; the whole of it stands beside.
func Clip(most int, s string) string {
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most-1]) + "…"
}
