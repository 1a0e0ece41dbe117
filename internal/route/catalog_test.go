package route

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/affinity"
	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

func TestEntriesListPlainAndVirtualNamesSorted(t *testing.T) {
	messages := upstream("N", "1", priced("m", 1), priced("own/n", 1))
	messages.Surfaces = []wire.Surface{wire.Messages}
	c := mustCatalog(t, []*provider.Provider{upstream("B", "1", priced("m", 1), priced("b", 1)), messages, upstream("any", "1")},
		virtual("smart", "", "m"), virtual("b", "", "N/m"))
	both := []wire.Surface{wire.Messages, wire.Chat, wire.Responses}
	want := []Entry{
		{"b", "N", []wire.Surface{wire.Messages}, true}, // the virtual one, once
		{"m", "switchboard", both, false},
		{"own/n", "N", []wire.Surface{wire.Messages}, false},
		{"smart", "B", both, true},
	}
	if diff := cmp.Diff(want, c.Entries(nil)); diff != "" {
		t.Errorf("Entries (-want +got):\n%s", diff)
	}
	if got := mustCatalog(t, nil).Entries(nil); len(got) != 0 {
		t.Errorf("Entries of nothing = %v", got)
	}
}

func TestProvidersAreSorted(t *testing.T) {
	var got []string
	for _, p := range mustCatalog(t, []*provider.Provider{upstream("b", "1"), upstream("c", "1"), upstream("a", "1")}).Providers() {
		got = append(got, p.Identity)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" {
		t.Errorf("Providers (-want +got):\n%s", diff)
	}
}

func TestConfigured(t *testing.T) {
	open := upstream("open", "")
	open.NoAuth = true
	blank := upstream("blank", "")
	blank.Keys = []provider.Key{{ID: "1"}}
	loose, looseBlank := upstream("loose", "k1 k2"), upstream("loose blank", "")
	loose.StickyKeys, looseBlank.StickyKeys = false, false
	c := mustCatalog(t, []*provider.Provider{upstream("A", "k1 k2"), upstream("none", ""), open, blank, loose, looseBlank})
	for place, want := range map[[2]string]bool{
		{"A", "k1"}: true, {"A", "k2"}: true, {"A", "k3"}: false, {"A", ""}: false, {"B", "k1"}: false,
		{"none", ""}: false, {"open", ""}: true, {"open", "k1"}: false, {"blank", "1"}: false,
		{"loose", ""}: true, {"loose", "k1"}: true, {"loose", "k9"}: true, {"loose blank", ""}: false,
	} {
		if got := c.Configured(affinity.Target{Provider: place[0], KeyID: place[1]}); got != want {
			t.Errorf("Configured(%q) = %v, want %v", place, got, want)
		}
	}
}
