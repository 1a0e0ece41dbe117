package provider

import (
	"math"
	"testing"
)

func TestDecimalNano(t *testing.T) {
	tests := []struct {
		raw   string
		scale int
		want  NanoUSD
		ok    bool
	}{
		{"0", 0, 0, true},
		{"0.95", 0, 950_000_000, true},
		{"19", 0, 19_000_000_000, true},
		{"0.000000001", 0, 1, true},
		{"0.0000000005", 0, 1, true},
		{"0.00000000049999", 0, 0, true},
		{"1.0000000015", 0, 1_000_000_002, true},
		{"1e-9", 0, 1, true},
		{"1.4e-05", 0, 14_000, true},
		{"1.4E-5", 0, 14_000, true},
		{"2e2", 0, 200_000_000_000, true},
		{"5e-10", 0, 1, true},
		{"5e-11", 0, 0, true},
		{"0.1234567891234", 0, 123_456_789, true},
		{"0.00014000000000000001", 0, 140_000, true},
		{"0.30000000000000004", 0, 300_000_000, true},
		{"37756000", 10, 3_775_600, true},
		{"15", 10, 2, true},
		{"14", 10, 1, true},
		{"4", 10, 0, true},
		{"9223372036.8", 0, 9_223_372_036_800_000_000, true},
		{"9223372036.9", 0, 0, false},
		{"9223372035", 0, 9_223_372_035_000_000_000, true},
		{"1e30", 0, 0, false},
		{"1e-300", 0, 0, true},
		{"-1", 0, 0, false},
		{"+1", 0, 0, false},
		{"", 0, 0, false},
		{".5", 0, 0, false},
		{"5.", 0, 0, false},
		{"1e", 0, 1_000_000_000, true},
		{"1e99999", 0, 0, false},
		{"null", 0, 0, false},
		{`"0.5"`, 0, 0, false},
		{"{}", 0, 0, false},
		{"1_0", 0, 0, false},
		{"0x1", 0, 0, false},
		{"NaN", 0, 0, false},
	}
	for _, tt := range tests {
		if got, ok := decimalNano([]byte(tt.raw), tt.scale); got != tt.want || ok != tt.ok {
			t.Errorf("decimalNano(%s, %d) = %d, %v, want %d, %v", tt.raw, tt.scale, got, ok, tt.want, tt.ok)
		}
	}
}

// Whatever a provider writes, money is neither negative nor made up.
func FuzzDecimalNano(f *testing.F) {
	f.Add("1.4e-05", 0)
	f.Add("99999999999999999999", 10)
	f.Fuzz(func(t *testing.T, raw string, scale int) {
		if got, ok := decimalNano([]byte(raw), scale%11); got < 0 || !ok && got != 0 {
			t.Errorf("decimalNano(%q) = %d, %v", raw, got, ok)
		}
	})
}

func TestBill(t *testing.T) {
	list := &Pricing{Rates: Rates{Input: orNil(2e9), Output: orNil(8e9)}}
	u := Usage{Input: 1000, Output: 100, Quality: usageExact}
	reported := u
	reported.Reported = Charge{Known: true, Total: 5}
	split := u
	split.Reported = Charge{Known: true, Total: 5, Split: true, Parts: Cost{3, 2}}
	free, rich := u, u
	free.Reported, rich.Reported = Charge{Known: true}, Charge{Known: true, Total: math.MaxInt64}
	ours := Bill{2_800_000, Cost{2_000_000, 800_000}, true}
	tests := []struct {
		name  string
		model Model
		usage Usage
		want  Bill
		ok    bool
	}{
		{"no price", Model{}, u, Bill{Split: true}, false},
		{"catalog", Model{Pricing: list, ListPrice: true}, u, ours, true},
		{"reported beats none", Model{}, reported, Bill{Total: 5}, true},
		{"reported beats the catalog", Model{Pricing: list, ListPrice: true}, reported, Bill{5, Cost{3, 2}, true}, true},
		{"reported and its own parts", Model{Pricing: list, ListPrice: true}, split, Bill{5, Cost{3, 2}, true}, true},
		{"free, with a list price", Model{Pricing: list, ListPrice: true}, free, Bill{0, Cost{}, true}, true},
		{"all the money there is", Model{Pricing: list, ListPrice: true}, rich, Bill{math.MaxInt64, Cost{6588122883467697005, 2635249153387078802}, true}, true},
		{"the configuration beats reported", Model{Pricing: list}, reported, ours, true},
		{"in parts", Model{}, split, Bill{5, Cost{3, 2}, true}, true},
	}
	for _, tt := range tests {
		if got, ok := tt.model.Bill(tt.usage); ok != tt.ok || ok && got != tt.want {
			t.Errorf("%s: Bill = %v, %v, want %v, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
	m := charge{set: cTotal | cHost, own: true, total: math.MaxInt64, host: 1}
	if got := m.charge(); got.Known {
		t.Errorf("charge of more than there is = %v, want unknown", got)
	}
}
