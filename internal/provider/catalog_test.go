package provider

import (
	"math"
	"strings"
	"testing"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
	"github.com/google/go-cmp/cmp"
)

const regenerate = "run: go generate ./internal/provider"

// The extract says what charm.land/catwalk of go.mod says, for every vendor there is.
func TestCatalogIsCatwalks(t *testing.T) {
	all := embedded.GetAll()
	if len(all) < 30 {
		t.Errorf("catwalk has %d vendors, want at least 30: is it still read?", len(all))
	}
	var ids []string
	for _, theirs := range all {
		ids = append(ids, string(theirs.ID))
		want := CatalogVendor{ID: string(theirs.ID), Type: string(theirs.Type), KeyVariable: strings.TrimPrefix(theirs.APIKey, "$")}
		if !strings.HasPrefix(theirs.APIEndpoint, "$") {
			want.BaseURL = theirs.APIEndpoint
		}
		for _, m := range theirs.Models {
			want.Models = append(want.Models, CatalogModel{ID: m.ID, Context: m.ContextWindow, Pricing: pricingOf(m)})
		}
		got, found := CatalogOf(string(theirs.ID))
		if diff := cmp.Diff(want, got); !found || diff != "" {
			t.Errorf("CatalogOf(%s), %v (-catwalk +got):\n%s%s", theirs.ID, found, diff, regenerate)
		}
	}
	if diff := cmp.Diff(ids, CatalogIDs()); diff != "" {
		t.Errorf("CatalogIDs() (-catwalk +got):\n%s%s", diff, regenerate)
	}
}

// pricingOf is what catwalk's four numbers mean, not read from any text: its "in cached" is
// a write to the cache, its "out cached" a read from it, and 0 is unknown.
func pricingOf(m catwalk.Model) *Pricing {
	rate := func(usd float64) *NanoUSD {
		if usd <= 0 {
			return nil
		}
		n := NanoUSD(math.Round(usd * 1e9))
		return &n
	}
	in, out, read, write := rate(m.CostPer1MIn), rate(m.CostPer1MOut), rate(m.CostPer1MOutCached), rate(m.CostPer1MInCached)
	if in == nil || out == nil {
		return nil
	}
	p := &Pricing{Rates: Rates{Input: in, Output: out}}
	p.CachedInput, p.CacheWrite = cacheRates(*in, read, write)
	return p
}

// Every type that a configuration can name has its models, with the prices its vendor
// publishes.
func TestCatalogModelsOfEveryVendor(t *testing.T) {
	for _, v := range Vendors() {
		known, found := CatalogOf(v.Catalog)
		models := CatalogModels(v)
		if v.Catalog == "" && v.OwnModels {
			continue
		}
		if !found || len(models) == 0 || len(models) != len(known.Models) {
			t.Errorf("CatalogModels(%s) has %d models, want the %d of the catalog", v.Type, len(models), len(known.Models))
		}
		for i, m := range models {
			if m.ID == "" || m.Upstream != m.ID || m.ID != known.Models[i].ID {
				t.Errorf("CatalogModels(%s)[%d] = %+v, want %s", v.Type, i, m, known.Models[i].ID)
			}
			if m.ListPrice != (m.Pricing != nil) {
				t.Errorf("CatalogModels(%s): %s is priced by the list: %v", v.Type, m.ID, m.ListPrice)
			}
			if m.Pricing == nil {
				continue
			}
			if read := m.Pricing.CachedInput; read != nil && *read > *m.Pricing.Input {
				t.Errorf("CatalogModels(%s): a cache read of %s costs %d, more than the input, %d", v.Type, m.ID, *read, *m.Pricing.Input)
			}
		}
	}
	for _, tt := range []struct {
		vendor, model                string
		input, cached, write, output NanoUSD // 0: none
	}{
		{"anthropic", "claude-sonnet-4-5-20250929", 3e9, 3e8, 375e7, 15e9},
		{"anthropic", "claude-opus-4-1-20250805", 15e9, 15e8, 1875e7, 75e9},
		{"openai", "gpt-5.6-sol", 5e9, 5e8, 625e7, 30e9},
		{"openai", "gpt-5.5", 5e9, 5e8, 0, 30e9},                 // catwalk: the read price in the column of writes
		{"openai", "gpt-5.1", 125e7, 125e6, 0, 10e9},             // catwalk: in both
		{"opencode-zen", "claude-opus-5", 5e9, 5e8, 625e7, 25e9}, // catwalk: exchanged
	} {
		v, _ := CatalogOf(tt.vendor)
		found := false
		for _, m := range v.Models {
			if m.ID != tt.model {
				continue
			}
			found = true
			want := &Pricing{Rates: Rates{Input: &tt.input, CachedInput: orNil(tt.cached), CacheWrite: orNil(tt.write), Output: &tt.output}}
			if diff := cmp.Diff(want, m.Pricing); diff != "" {
				t.Errorf("%s/%s (-want +got):\n%s", tt.vendor, tt.model, diff)
			}
		}
		if !found {
			t.Errorf("%s/%s is not in the catalog; choose another model for this test", tt.vendor, tt.model)
		}
	}
}

func orNil(n NanoUSD) *NanoUSD {
	if n == 0 {
		return nil
	}
	return &n
}

func TestCatalogOfNobody(t *testing.T) {
	for _, id := range []string{"", "nobody", "open", "openai\t", "openai\topenai", "\t", "\n", "openai\n", "gpt-5.5", "OpenAI", "#", "ai"} {
		if got, found := CatalogOf(id); found || got.Models != nil {
			t.Errorf("CatalogOf(%q) = %+v, %v, want none", id, got, found)
		}
	}
	if got := CatalogModels(Vendor{}); got != nil {
		t.Errorf("CatalogModels of a vendor without a catalog = %v, want none", got)
	}
}

// The catalog is in every binary, and read at every start of a function: it stays small.
func TestCatalogIsSmall(t *testing.T) {
	if limit := 80 << 10; len(catalog) > limit {
		t.Errorf("the catalog has %d bytes, want at most %d", len(catalog), limit)
	}
}

func BenchmarkCatalogModels(b *testing.B) {
	v, _ := VendorOf("openai")
	b.ReportAllocs()
	for b.Loop() {
		CatalogModels(v)
	}
}
