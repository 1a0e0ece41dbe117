package audit

import (
	"math"
	"testing"
)

func TestUSD(t *testing.T) {
	for _, tt := range []struct {
		nano int64
		want string
	}{
		{0, "0"},
		{1, "0.000000001"},
		{10, "0.00000001"},
		{999_999_999, "0.999999999"},
		{1_000_000_000, "1"},
		{1_500_000_000, "1.5"},
		{-2_250_000_000, "-2.25"},
		{-1, "-0.000000001"},
		{123_456_789_012_345_678, "123456789.012345678"},
		{math.MaxInt64, "9223372036.854775807"},
		{math.MinInt64, "-9223372036.854775808"},
	} {
		if got := USD(tt.nano); got != tt.want {
			t.Errorf("USD(%d) = %q, want %q", tt.nano, got, tt.want)
		}
	}
}
