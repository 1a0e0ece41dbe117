package route

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// keyOf is the key that a session without a pin gets.
func keyOf(c *Catalog, model, session string) string {
	return c.Plan(Input{Model: model, Surface: wire.Chat, SessionKey: session}).Attempts[0].Key.ID
}

// S-KEY-01: a dead key costs one provider's key, not the provider; the session's other keys
// follow, in an order of its own.
func TestSKEY01_OneDeadKeyAmongSeveral(t *testing.T) {
	c := mustCatalog(t, []*provider.Provider{upstream("A", "k1 k2 k3", priced("m", 1))})
	for _, dead := range []string{"k1", "k2", "k3"} {
		in := Input{Model: "m", Surface: wire.Chat, SessionKey: "s1", Pin: pin("A " + dead + " m")}
		// Before it is known, the dead key is tried once and the others come next.
		got := c.Plan(in)
		if all := show(got.all()); got.Reason != ReasonAffinity || !strings.HasPrefix(all, "A/"+dead+"/m! ") || strings.Count(all, dead) != 1 || len(got.all()) != 3 {
			t.Errorf("Plan with %s alive = %s", dead, all)
		}
		// Once it is, it is not tried again, and the session goes where it would have gone.
		next := got.all()[1].Key.ID
		in.Health = sick(failed(health.Unauthorized, "A "+dead+" m"))
		got = c.Plan(in)
		if len(got.Attempts) != 2 || strings.Contains(show(got.Attempts), dead) || got.Reason != ReasonFallback || got.Attempts[0].Key.ID != next {
			t.Errorf("Plan with %s dead = %s (%s), want %s first", dead, show(got.Attempts), got.Reason, next)
		}
		// The session has moved.
		in.Pin = pin("A " + next + " m")
		if got = c.Plan(in); show(got.Attempts) != "A/"+next+"/m!" || got.Reason != ReasonAffinity {
			t.Errorf("Plan after the move = %s (%s)", show(got.Attempts), got.Reason)
		}
	}
	in := Input{Model: "m", Surface: wire.Chat, SessionKey: "s1", Pin: pin("A k1 m"), Health: sick(
		failed(health.Unauthorized, "A k1 m"), failed(health.Unauthorized, "A k2 m"), failed(health.Unauthorized, "A k3 m"))}
	got := c.Plan(in)
	if len(got.Attempts) != 0 || len(got.Excluded) != 3 || got.Reason != ReasonUnavailable {
		t.Errorf("Plan with all dead = %s (%s), excluded %s", show(got.Attempts), got.Reason, showOut(got.Excluded))
	}
	for _, out := range got.Excluded {
		if out.Status.Class != health.Unauthorized || strings.Contains(fmt.Sprint(out), "secret") {
			t.Errorf("exclusion %v: want unauthorized and no key text", out)
		}
	}
}

// S-KEY-02: a restart moves no session; a new key takes only what it wins; the order of the
// list means nothing.
func TestSKEY02_ChoiceIsStableWhenTheKeyListChanges(t *testing.T) {
	for _, prefix := range []string{"s-", "fresh-", "scoped-00ff", "auto-", "ü-"} {
		four := mustCatalog(t, []*provider.Provider{upstream("A", "k1 k2 k3 k4", priced("m", 1))})
		again := mustCatalog(t, []*provider.Provider{upstream("A", "k1 k2 k3 k4", priced("m", 1))})
		shuffled := mustCatalog(t, []*provider.Provider{upstream("A", "k3 k1 k4 k2", priced("m", 1))})
		five := mustCatalog(t, []*provider.Provider{upstream("A", "k5 k1 k2 k3 k4", priced("m", 1))})
		three := mustCatalog(t, []*provider.Provider{upstream("A", "k1 k2 k4", priced("m", 1))})
		renamed := upstream("A", "k1 k2 k3 k4", priced("m", 1))
		for i := range renamed.Keys {
			renamed.Keys[i].ID = fmt.Sprint("name-", renamed.Keys[i].ID)
		}
		named := mustCatalog(t, []*provider.Provider{renamed})
		moved, share := 0, map[string]int{}
		for i := range 1000 {
			session := fmt.Sprint(prefix, i)
			before := keyOf(four, "m", session)
			share[before]++
			for name, c := range map[string]*Catalog{"restart": again, "reordered": shuffled} {
				if got := keyOf(c, "m", session); got != before {
					t.Fatalf("%s: %s moves from %s to %s", name, session, before, got)
				}
			}
			if got := keyOf(named, "m", session); got != "name-"+before {
				t.Fatalf("renamed: %s moves from %s to %s", session, before, got)
			}
			if got := keyOf(three, "m", session); got != before && before != "k3" {
				t.Fatalf("k3 removed: %s moves from %s to %s", session, before, got)
			}
			switch got := keyOf(five, "m", session); got {
			case before:
			case "k5":
				moved++
			default:
				t.Fatalf("k5 added: %s moves from %s to %s", session, before, got)
			}
			// What is stored does not move at all.
			stored := five.Plan(Input{Model: "m", Surface: wire.Chat, SessionKey: session, Pin: pin("A " + before + " m")})
			if got := stored.Attempts[0].Key.ID; got != before {
				t.Fatalf("k5 added: the pinned %s moves from %s to %s", session, before, got)
			}
		}
		if moved < 150 || moved > 250 {
			t.Errorf("%s: %d of 1000 move to k5, want 150 to 250", prefix, moved)
		}
		for key, n := range share {
			if n < 180 || n > 320 {
				t.Errorf("%s: %s has %d of 1000, want about 250", prefix, key, n)
			}
		}
	}
}

// The hash is HMAC-SHA256 keyed by the key's text over the session, highest first.
func TestKeyOrderIsRendezvous(t *testing.T) {
	p := upstream("A", "k1 k2 k3 k4 k5 k6 k7 k8 k9 k10", priced("m", 1))
	c := mustCatalog(t, []*provider.Provider{p})
	for i := range 20 {
		session := fmt.Sprint("s-", i)
		hash := func(k provider.Key) string {
			mac := hmac.New(sha256.New, []byte(k.Text))
			mac.Write([]byte(session))
			return string(mac.Sum(nil))
		}
		want := slices.Clone(p.Keys)
		slices.SortFunc(want, func(a, b provider.Key) int { return strings.Compare(hash(b), hash(a)) })
		var got []provider.Key
		for _, a := range c.Plan(Input{Model: "m", Surface: wire.Chat, SessionKey: session}).Attempts {
			got = append(got, a.Key)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: keys = %v, want %v", session, got, want)
		}
	}
}

// S-KEY-02: without a session keys take turns, evenly, whatever else is asked for between.
func TestSKEY02_RequestsWithoutSessionRotate(t *testing.T) {
	loose := upstream("A", "k1 k2", priced("m", 1), priced("a", 1))
	loose.StickyKeys = false
	for name, tt := range map[string]struct {
		provider *provider.Provider
		session  string
	}{
		"no session":                 {upstream("A", "k1 k2", priced("m", 1), priced("a", 1)), ""},
		"session_sticky_keys: false": {loose, "s1"},
	} {
		turns := rotations{}
		c := mustCatalog(t, []*provider.Provider{tt.provider, upstream("B", "k1 k2", priced("m", 2), priced("b", 1))},
			virtual("v", "failover", "B/m", "A/m"))
		in := Input{Surface: wire.Chat, SessionKey: tt.session, Draw: turns.draw}
		got := map[string]int{}
		for range 100 {
			in.Model = "m"
			got[c.Plan(in).Attempts[0].Key.ID]++
			in.Model = "v" // A is only its second choice and must not take turns from A's own
			c.Plan(in)
		}
		if got["k1"] != 50 || got["k2"] != 50 {
			t.Errorf("%s: first keys = %v, want 50 each", name, got)
		}
	}
}

// One key, one target or a session: nothing to take turns about.
func TestNothingIsDrawnThatDecidesNothing(t *testing.T) {
	c := mustCatalog(t, []*provider.Provider{
		upstream("A", "k1", priced("m", 1)), upstream("B", "k1 k2 k3", priced("m", 2)),
	}, virtual("one", "round_robin", "A/m"))
	turns := rotations{}
	for _, in := range []Input{
		{Model: "m", SessionKey: "s1"},
		{Model: "A/m"},
		{Model: "B/m", SessionKey: "s1"},
		{Model: "one"},
		{Model: "B/m", Health: sick(failed(health.Unauthorized, "B k1 m"), failed(health.RateLimited, "B k3 m"))},
		{Model: "B/m", Home: at("B k2 m")},
		{Model: "m", Pin: pin("B k2 m")},
		{Model: "nothing"},
	} {
		in.Surface, in.Draw = wire.Chat, turns.draw
		c.Plan(in)
	}
	if len(turns) != 0 {
		t.Errorf("draws = %v, want none", turns)
	}
}
