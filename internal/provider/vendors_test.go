package provider

import (
	"net/http"
	"strings"
	"testing"

	"switchboard/internal/wire"

	"github.com/google/go-cmp/cmp"
)

func TestVendors(t *testing.T) {
	types := map[string]bool{}
	for _, v := range Vendors() {
		if types[v.Type] {
			t.Errorf("type %q is listed twice", v.Type)
		}
		types[v.Type] = true
		if got, ok := VendorOf(v.Type); !ok || got.Type != v.Type {
			t.Errorf("VendorOf(%q) = %q, %v", v.Type, got.Type, ok)
		}
		if !strings.HasPrefix(v.BaseURL, "https://") || strings.HasSuffix(v.BaseURL, "/") {
			t.Errorf("%s: BaseURL = %q, want https without a slash at its end", v.Type, v.BaseURL)
		}
		if v.Env == "" || v.Env != strings.ToUpper(v.Env) || len(v.Surfaces) == 0 {
			t.Errorf("%s: Env = %q, Surfaces = %v", v.Type, v.Env, v.Surfaces)
		}
		h := http.Header{}
		v.Authorize(h, "K")
		if len(h) != 1 {
			t.Errorf("%s: Authorize set %v, want exactly one header", v.Type, h)
		}
		models := CatalogModels(v)
		if len(models) == 0 {
			t.Errorf("%s: no models in the catalog", v.Type)
		}
	}
	if _, ok := VendorOf("nobody"); ok {
		t.Error("VendorOf(nobody) found one")
	}
}

func TestMainVendors(t *testing.T) {
	tests := []struct {
		kind, url, header, value string
		surfaces                 []wire.Surface
	}{
		{"openai", "https://api.openai.com/v1", "Authorization", "Bearer K", []wire.Surface{wire.Chat, wire.Responses, wire.Embeddings}},
		{"anthropic", "https://api.anthropic.com/v1", "X-Api-Key", "K", []wire.Surface{wire.Messages}},
	}
	for _, tt := range tests {
		v, _ := VendorOf(tt.kind)
		h := http.Header{}
		v.Authorize(h, "K")
		if v.BaseURL != tt.url || h.Get(tt.header) != tt.value {
			t.Errorf("%s: %s with %v, want %s with %s: %s", tt.kind, v.BaseURL, h, tt.url, tt.header, tt.value)
		}
		if diff := cmp.Diff(tt.surfaces, v.Surfaces); diff != "" {
			t.Errorf("%s: surfaces (-want +got):\n%s", tt.kind, diff)
		}
	}
}

// The catalog calls the price of a cache write "in cached" and that of a read "out cached".
func TestCatalogPrices(t *testing.T) {
	v, _ := VendorOf("anthropic")
	found := false
	for _, m := range CatalogModels(v) {
		if m.Upstream != m.ID {
			t.Errorf("%s: Upstream = %q", m.ID, m.Upstream)
		}
		if m.Pricing == nil || m.Pricing.CachedInput == nil || m.Pricing.CacheWrite == nil {
			continue
		}
		found = true
		if p := m.Pricing; *p.CachedInput >= *p.Input || *p.CacheWrite <= *p.Input || *p.Input >= *p.Output {
			t.Errorf("%s: read %d < in %d < write %d, out %d", m.ID, *p.CachedInput, *p.Input, *p.CacheWrite, *p.Output)
		}
	}
	if !found {
		t.Error("no model with cache prices")
	}
	for usd, want := range map[string]NanoUSD{"0.1": 100_000_000, "3.75": 3_750_000_000, "0.003625": 3_625_000} {
		if got := catalogRate(usd); got == nil || *got != want {
			t.Errorf("catalogRate(%s) = %v, want %d", usd, got, want)
		}
	}
	if got := catalogRate(""); got != nil {
		t.Errorf("catalogRate of nothing = %d, want unknown", *got)
	}
	if got := CatalogModels(Vendor{}); got != nil {
		t.Errorf("CatalogModels without catalog = %v", got)
	}
}
