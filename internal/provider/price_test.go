package provider

import (
	"math"
	"math/big"
	"testing"

	"switchboard/internal/wire"

	"pgregory.net/rapid"
)

func usd(s string) *NanoUSD {
	n, err := ParseUSDPerMTok(s)
	if err != nil {
		panic(err)
	}
	return &n
}

// testPricing are the prices of the field cases.
func testPricing() map[string]*Pricing {
	return map[string]*Pricing{
		"m-oai": {
			Rates: Rates{
				Input: usd("2.00"), CachedInput: usd("0.50"), Output: usd("8.00"),
				AudioInput: usd("32.00"), AudioOutput: usd("64.00"),
			},
			ServiceTiers: map[string]Tier{"flex": {Numerator: 1, Denominator: 2}},
		},
		"no-audio": {Rates: Rates{Input: usd("2.00"), CachedInput: usd("0.50"), Output: usd("8.00")}},
		"m-ant": {
			Rates: Rates{
				Input: usd("3.00"), CachedInput: usd("0.30"), CacheWrite: usd("3.75"),
				CacheWrite1h: usd("6.00"), Output: usd("15.00"),
			},
			Above: []AboveTier{{Tokens: 200_000, Rates: Rates{
				Input: usd("6.00"), CachedInput: usd("0.60"), CacheWrite: usd("7.50"),
				CacheWrite1h: usd("12.00"), Output: usd("22.50"),
			}}},
		},
		"m-emb": {Rates: Rates{Input: usd("0.02")}},
		"none":  nil,
		"tiers": {
			Rates: Rates{Input: usd("2"), CachedInput: usd("0.5"), Output: usd("8")},
			ServiceTiers: map[string]Tier{
				"flex":     {Numerator: 1, Denominator: 3},
				"priority": {Rates: Rates{Input: usd("4"), Output: usd("16")}},
				"mixed":    {Numerator: 3, Denominator: 2, Rates: Rates{Output: usd("10")}},
			},
			Above: []AboveTier{
				{Tokens: 100, Rates: Rates{Input: usd("3")}},
				{Tokens: 200, Rates: Rates{Output: usd("9")}},
			},
		},
	}
}

// The figures of S-USE-01 to S-USE-06, from the vendor's answer to nano-USD.
func TestUSEAnswersToMoney(t *testing.T) {
	const nano = 1_000_000_000
	tests := []struct {
		name, model string
		surface     wire.Surface
		answer      string
		want        int64 // -1: unknown
	}{
		{"S-USE-01 split", "m-ant", wire.Messages, `{"usage":{"input_tokens":12,"cache_read_input_tokens":18000,"cache_creation_input_tokens":2400,"cache_creation":{"ephemeral_5m_input_tokens":400,"ephemeral_1h_input_tokens":2000},"output_tokens":350}}`, 24_186_000},
		{"S-USE-01 no split", "m-ant", wire.Messages, `{"usage":{"input_tokens":12,"cache_read_input_tokens":18000,"cache_creation_input_tokens":2400,"output_tokens":350}}`, 19_686_000},
		{"S-USE-02 chat", "m-oai", wire.Chat, `{"usage":{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306,"prompt_tokens_details":{"cached_tokens":1920},"completion_tokens_details":{"reasoning_tokens":250}}}`, 3_532_000},
		{"S-USE-02 responses", "m-oai", wire.Responses, `{"usage":{"input_tokens":2006,"output_tokens":300,"total_tokens":2306,"input_tokens_details":{"cached_tokens":1920},"output_tokens_details":{"reasoning_tokens":250}}}`, 3_532_000},
		{"S-USE-03 audio", "m-oai", wire.Chat, `{"usage":{"prompt_tokens":150,"prompt_tokens_details":{"audio_tokens":100},"completion_tokens":80,"completion_tokens_details":{"audio_tokens":60},"total_tokens":230}}`, 7_300_000},
		{"S-USE-03 no audio price", "no-audio", wire.Chat, `{"usage":{"prompt_tokens":150,"prompt_tokens_details":{"audio_tokens":100},"completion_tokens":80,"completion_tokens_details":{"audio_tokens":60},"total_tokens":230}}`, 940_000},
		{"S-USE-04 above", "m-ant", wire.Messages, `{"usage":{"input_tokens":5000,"cache_read_input_tokens":190000,"cache_creation_input_tokens":8000,"output_tokens":1000}}`, 226_500_000},
		{"S-USE-04 exactly at", "m-ant", wire.Messages, `{"usage":{"input_tokens":200000,"output_tokens":0}}`, 600_000_000},
		{"S-USE-04 one more", "m-ant", wire.Messages, `{"usage":{"input_tokens":200001,"output_tokens":0}}`, 1_200_006_000},
		{"S-USE-05 flex", "m-oai", wire.Chat, `{"service_tier":"flex","usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}}`, 1_400_000},
		{"S-USE-05 default", "m-oai", wire.Chat, `{"service_tier":"default","usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}}`, 2_800_000},
		{"S-USE-05 no tier", "m-oai", wire.Chat, `{"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100},"service_tier":null}`, 2_800_000},
		{"S-USE-05 not priced", "m-oai", wire.Chat, `{"service_tier":"priority","usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}}`, -1},
		{"S-USE-05 anthropic standard", "m-ant", wire.Messages, `{"usage":{"input_tokens":1000000,"output_tokens":0,"service_tier":"standard"}}`, 6 * nano},
		{"S-USE-05 anthropic batch", "m-ant", wire.Messages, `{"usage":{"input_tokens":1,"output_tokens":0,"service_tier":"batch"}}`, -1},
		{"S-USE-06 no usage", "m-oai", wire.Chat, `{"choices":[]}`, -1},
		{"S-USE-06 usage null", "m-oai", wire.Chat, `{"usage":null}`, -1},
		{"S-USE-06 all zero", "m-oai", wire.Chat, `{"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`, 0},
		{"S-USE-06 no price", "none", wire.Chat, `{"usage":{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20}}`, -1},
		{"S-USE-06 embedding", "m-emb", wire.Embeddings, `{"usage":{"prompt_tokens":333,"total_tokens":333}}`, 6660},
		{"output without price", "m-emb", wire.Chat, `{"usage":{"prompt_tokens":1,"completion_tokens":1}}`, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			usage, _ := ReadAnswer(tt.surface, []byte(tt.answer), true)
			cost, ok := testPricing()[tt.model].Price(usage)
			if !ok {
				cost.Input = -1
			}
			if cost.Input+cost.Output != tt.want {
				t.Errorf("Price(%+v) = %d, %v, want %d", usage, cost.Input+cost.Output, ok, tt.want)
			}
		})
	}
}

func TestPriceTiers(t *testing.T) {
	tests := []struct {
		name    string
		usage   Usage
		in, out int64
	}{
		{"a third, rounded once", Usage{Input: 1, ServiceTier: "flex"}, 667, 0},
		{"a third of a sum", Usage{Input: 2, CachedInput: 1, ServiceTier: "flex"}, 833, 0},
		{"own rates", Usage{Input: 10, Output: 1, ServiceTier: "priority"}, 40_000, 16_000},
		{"own rates, base for the rest", Usage{Input: 10, CachedInput: 10, ServiceTier: "priority"}, 5_000, 0},
		{"factor and own", Usage{Input: 10, Output: 1, ServiceTier: "mixed"}, 30_000, 10_000},
		{"above", Usage{Input: 101, Output: 1}, 303_000, 8_000},
		{"the highest above decides alone", Usage{Input: 201, Output: 1}, 402_000, 9_000},
		{"factor on above", Usage{Input: 102, ServiceTier: "flex"}, 102_000, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.usage.Quality = usageExact
			cost, ok := testPricing()["tiers"].Price(tt.usage)
			if want := (Cost{tt.in, tt.out}); !ok || cost != want {
				t.Errorf("Price(%+v) = %+v, %v, want %+v", tt.usage, cost, ok, want)
			}
		})
	}
}

func TestPriceRefuses(t *testing.T) {
	p := testPricing()["m-oai"]
	tests := map[string]Usage{
		"unknown":  {Input: 1, Quality: usageUnknown},
		"no word":  {Input: 1},
		"negative": {Input: 1, CachedInput: -4, Quality: usageExact},
		"silly":    {Input: math.MaxInt64, Output: math.MaxInt64, Quality: usageExact},
	}
	for name, u := range tests {
		if cost, ok := p.Price(u); ok {
			t.Errorf("Price(%s) = %+v, want not ok", name, cost)
		}
	}
	// Parts that overlap or exceed the total never make a price negative.
	cost, ok := p.Price(Usage{Input: 10, CachedInput: 20, AudioInput: 5, Output: 1, AudioOutput: 3, Quality: usagePartial})
	if !ok || cost.Input != 20*500+5*32000 || cost.Output != 3*64000 {
		t.Errorf("Price(parts above total) = %+v, %v", cost, ok)
	}
}

func TestSwitchCostAndEstimate(t *testing.T) {
	ant, emb := testPricing()["m-ant"], testPricing()["m-emb"]
	check := func(name string, n NanoUSD, ok bool, want NanoUSD, wantOK bool) {
		t.Helper()
		if n != want || ok != wantOK {
			t.Errorf("%s = %d, %v, want %d, %v", name, n, ok, want, wantOK)
		}
	}
	n, ok := ant.SwitchCost(100_000)
	check("SwitchCost(100000)", n, ok, 270_000_000, true)
	n, ok = ant.SwitchCost(300_000)
	check("SwitchCost(300000)", n, ok, 1_620_000_000, true)
	n, ok = emb.SwitchCost(1000)
	check("SwitchCost without cached rate", n, ok, 0, true)
	n, ok = (*Pricing)(nil).SwitchCost(1)
	check("SwitchCost without price", n, ok, 0, false)
	n, ok = ant.Estimate(1_000_000)
	check("Estimate(1000000)", n, ok, 6_022_500_000, true)
	n, ok = emb.Estimate(1000)
	check("Estimate of embeddings", n, ok, 20_000, true)
	n, ok = (*Pricing)(nil).Estimate(1)
	check("Estimate without price", n, ok, 0, false)
	n, ok = (&Pricing{}).Estimate(0)
	check("Estimate of an empty price", n, ok, 0, false)
}

// The 128-bit sum equals arbitrary precision, rounded half up once.
func TestPropertyPriceIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.Int64Range(0, 1_000_000_000)
		money := rapid.Int64Range(0, 1_000_000_000_000)
		in, cached, out := money.Draw(t, "in"), money.Draw(t, "cached"), money.Draw(t, "out")
		num, den := rapid.Int64Range(0, 1000).Draw(t, "num"), rapid.Int64Range(1, 1000).Draw(t, "den")
		p := Pricing{
			Rates:        Rates{Input: &in, CachedInput: &cached, Output: &out},
			ServiceTiers: map[string]Tier{"t": {Numerator: num, Denominator: den}},
		}
		u := Usage{CachedInput: tokens.Draw(t, "c"), Output: tokens.Draw(t, "o"), ServiceTier: "t", Quality: usageExact}
		plain := tokens.Draw(t, "i")
		u.Input = plain + u.CachedInput
		want := func(terms ...int64) *big.Int {
			total := new(big.Int)
			for i := 0; i < len(terms); i += 2 {
				total.Add(total, new(big.Int).Mul(big.NewInt(terms[i]), big.NewInt(terms[i+1])))
			}
			total.Mul(total, big.NewInt(2*num))
			by := big.NewInt(den * perMTok)
			total.Add(total, by)
			return total.Div(total, by.Mul(by, big.NewInt(2)))
		}
		wantIn, wantOut := want(plain, in, u.CachedInput, cached), want(u.Output, out)
		cost, ok := p.Price(u)
		if fits := wantIn.IsInt64() && wantOut.IsInt64(); ok != fits {
			t.Fatalf("Price ok = %v, want %v", ok, fits)
		}
		if ok && (cost.Input != wantIn.Int64() || cost.Output != wantOut.Int64()) {
			t.Fatalf("Price = %+v, want %v %v", cost, wantIn, wantOut)
		}
	})
}

func TestParseUSDPerMTok(t *testing.T) {
	good := map[string]NanoUSD{
		"2": 2e9, "2.00": 2e9, "0.075": 75e6, "0": 0, "0.000000001": 1, "0.0000000010": 1,
		"007.5": 75e8, "1000000": 1e15,
	}
	for in, want := range good {
		if got, err := ParseUSDPerMTok(in); err != nil || got != want {
			t.Errorf("ParseUSDPerMTok(%q) = %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", ".", "1.", ".5", "-1", "+1", "1e-3", "1,5", " 1", "0x1", "NaN", "0.0000000001", "99999999999", "9223372036854775807999"} {
		if got, err := ParseUSDPerMTok(in); err == nil {
			t.Errorf("ParseUSDPerMTok(%q) = %d, want an error", in, got)
		}
	}
}

func TestFactorOf(t *testing.T) {
	tests := []struct {
		in       string
		num, den int64
	}{{"0.5", 1, 2}, {"2", 2, 1}, {"1.75", 7, 4}, {"0", 0, 1}, {"0.10", 1, 10}, {"1.000", 1, 1}}
	for _, tt := range tests {
		num, den, err := FactorOf(tt.in)
		if err != nil || num != tt.num || den != tt.den {
			t.Errorf("FactorOf(%q) = %d/%d, %v, want %d/%d", tt.in, num, den, err, tt.num, tt.den)
		}
	}
	if _, _, err := FactorOf("half"); err == nil {
		t.Error("FactorOf(half) gave no error")
	}
}
