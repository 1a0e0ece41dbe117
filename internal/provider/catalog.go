package provider

import (
	_ "embed"
	"strconv"
	"strings"
)

//go:generate go run ./gencatalog -o catalog.txt

// catalog is what we need of charm.land/catwalk, as its first lines describe: a tenth of
// its size, and found by searching instead of decoding it all.
//
//go:embed catalog.txt
var catalog string

// CatalogVendor is a vendor of the embedded catalog.
type CatalogVendor struct {
	ID          string
	Type        string // the catalog's own word for its API: openai, openai-compat, anthropic, google, …
	KeyVariable string // OPENAI_API_KEY; empty: none known
	BaseURL     string // empty: the one that everybody knows
	Models      []CatalogModel
}

// CatalogModel is a model of the embedded catalog.
type CatalogModel struct {
	ID      string
	Context int64    // tokens; 0: not known
	Pricing *Pricing // nil: not known
}

// CatalogModels returns the models of a vendor with prices from the embedded catalog.
func CatalogModels(v Vendor) []Model {
	known, _ := CatalogOf(v.Catalog)
	var models []Model
	for _, m := range known.Models {
		models = append(models, Model{ID: m.ID, Upstream: m.ID, Pricing: m.Pricing, ListPrice: m.Pricing != nil})
	}
	return models
}

// CatalogIDs lists the vendors of the embedded catalog in its order.
func CatalogIDs() []string {
	var ids []string
	for line := range strings.Lines(catalog) {
		if vendor, ok := strings.CutPrefix(line, "\t"); ok {
			id, _, _ := strings.Cut(strings.TrimSuffix(vendor, "\n"), "\t")
			ids = append(ids, id)
		}
	}
	return ids
}

// CatalogOf reads one vendor of the embedded catalog; false when it is not there.
func CatalogOf(id string) (CatalogVendor, bool) {
	if id == "" || strings.Contains(id, "\t") {
		return CatalogVendor{}, false
	}
	_, text, found := strings.Cut(catalog, "\n\t"+id+"\t")
	if !found {
		return CatalogVendor{}, false
	}
	text, _, _ = strings.Cut(text, "\n\t") // the next vendor
	first, lines, _ := strings.Cut(text, "\n")
	at := cells(first)
	v := CatalogVendor{ID: id, Type: at(0), KeyVariable: at(1), BaseURL: at(2)}
	for line := range strings.Lines(lines) {
		at := cells(strings.TrimSuffix(line, "\n"))
		v.Models = append(v.Models, catalogModel(at))
	}
	return v, true
}

func catalogModel(at func(int) string) CatalogModel {
	m := CatalogModel{ID: at(0)}
	m.Context, _ = strconv.ParseInt(at(5), 10, 64) // empty is 0, not known
	in, out := catalogRate(at(1)), catalogRate(at(2))
	if in == nil || out == nil {
		return m // without both main prices there is no cost
	}
	m.Pricing = &Pricing{Rates: Rates{Input: in, Output: out}}
	m.Pricing.CachedInput, m.Pricing.CacheWrite = cacheRates(*in, catalogRate(at(3)), catalogRate(at(4)))
	return m
}

// cacheRates puts right what the catalog has in the wrong column: for gpt-5.5 the price of a
// cache read stands in that of a write, and for some vendors the two are exchanged. A read
// never costs more than a write, and a write that is cheaper than the input is none.
func cacheRates(in NanoUSD, read, write *NanoUSD) (*NanoUSD, *NanoUSD) {
	switch {
	case read == nil && write != nil && *write < in:
		return write, nil
	case read != nil && write != nil && *write < *read:
		return write, read
	case read != nil && write != nil && *write == *read:
		return read, nil
	}
	return read, write
}

// cells gives a line's fields; one that is left out is empty.
func cells(line string) func(int) string {
	fields := strings.Split(line, "\t")
	return func(i int) string {
		if i >= len(fields) {
			return ""
		}
		return fields[i]
	}
}

func catalogRate(usd string) *NanoUSD {
	n, err := ParseUSDPerMTok(usd)
	if err != nil {
		return nil // empty: not known
	}
	return &n
}
