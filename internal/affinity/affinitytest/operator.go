package affinitytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"switchboard/internal/affinity"
)

// RunOperator tests a backend as operators see it; open as for Run.
func RunOperator(t *testing.T, open func(t *testing.T) (Stores, affinity.Operator)) {
	tests := []struct {
		name string
		test func(o *operator)
	}{
		{"EmptyStoreListsNothing", listsNothing},
		{"ListHasWhatLookupSees", listsWhatLookupSees},
		{"QueriesChoose", queriesChoose},
		{"ExpiredPinsAreNotListed", expiredNotListed},
		{"PagesHaveEveryPinOnce", pagesHaveAll},
		{"PagesOfOneSession", pagesOfOneSession},
		{"PagesSurviveWrites", pagesSurviveWrites},
		{"PagesSurviveClears", pagesSurviveClears},
		{"CursorsOfStrangers", cursors},
		{"IdsAreAnyText", operatorIds},
		{"ClearDeletesAsRead", clears},
		{"ClearOfAnExpiredPin", clearsExpired},
		{"ParallelClearsHaveOneWinner", parallelClears},
		{"ClearedPinStaysCleared", clearedStays},
		{"EndedContext", operatorEnded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stores, op := open(t)
			tt.test(&operator{sitDown(t, stores), op})
		})
	}
}

// operator is a keyboard with an operator's verbs.
type operator struct {
	*keyboard
	Operator affinity.Operator
}

// lists goes through all pages, which must end.
func (o *operator) lists(q affinity.PinQuery) []affinity.Pin {
	o.Helper()
	var all []affinity.Pin
	q.Limit = max(q.Limit, 1)
	for range 10_000 {
		page, err := o.Operator.Pins(o.Context(), q, o.now)
		o.ok("Pins", err)
		if len(page.Pins) > q.Limit {
			o.Fatalf("Pins(%+v) = %d pins, want at most %d", q, len(page.Pins), q.Limit)
		}
		all = append(all, page.Pins...)
		if page.Next == "" {
			return all
		}
		q.Cursor = page.Next
	}
	o.Fatal("the pages never end")
	return nil
}

func (o *operator) wants(q affinity.PinQuery, want ...affinity.Pin) {
	o.Helper()
	got := o.lists(q)
	byKey := cmpopts.SortSlices(func(a, b affinity.Pin) bool {
		return a.SessionKey+"\x00\x00"+a.Ref.Model < b.SessionKey+"\x00\x00"+b.Ref.Model
	})
	if diff := cmp.Diff(want, got, byKey, cmpopts.EquateEmpty()); diff != "" {
		o.Fatalf("Pins(%+v) differ (-want +got):\n%s", q, diff)
	}
}

// claimsAs claims a session of a tenant.
func (o *operator) claimsAs(key, model, userPath, clientID string) affinity.Pin {
	o.Helper()
	return o.assigns(affinity.Pin{
		Ref: affinity.Ref{SessionKey: key, Model: model}, Target: a(), UserPath: userPath, ClientSessionID: clientID, LastSwitchRequestID: "r",
	}, nil)
}

func listsNothing(o *operator) {
	o.wants(affinity.PinQuery{Limit: 10})
	o.wants(affinity.PinQuery{Limit: 10, SessionKey: "s1"})
	if err := o.Operator.Clear(o.Context(), o.fresh("s1", a())); !errors.Is(err, affinity.ErrNotFound) {
		o.Fatalf("Clear = %v, want ErrNotFound", err)
	}
}

func listsWhatLookupSees(o *operator) {
	o.claims("s1", a())
	o.switches(o.serves("s2", a()), b(), "r1", 7)
	o.uses("s2", affinity.Usage{InputTokens: 10, OutputTokens: 2, CachedTokens: 3, CostNanoUSD: 4})
	o.settles()
	o.wants(affinity.PinQuery{Limit: 10}, o.look("s1"), o.look("s2"))
	o.wants(affinity.PinQuery{Limit: 10, SessionKey: "s2"}, o.look("s2"))
}

func queriesChoose(o *operator) {
	var all []affinity.Pin
	for i, path := range []string{"", "/team", "/team/alpha", "/team/alphabet", "/team/alpha/x", "/Team", "/te%m", "/te_m"} {
		for _, id := range []string{"s1", "s2"} {
			for _, model := range []string{"m", "n"} {
				all = append(all, o.claimsAs(fmt.Sprint("key", i, id), model, path, id))
			}
		}
	}
	for _, q := range []affinity.PinQuery{
		{},
		{SessionKey: "key0s1"},
		{SessionKey: "key0s1", Model: "n"},
		{SessionKey: "key0s1", Model: "o"},
		{SessionKey: "key0s1", ClientSessionID: "s2"},
		{SessionKey: "key2s1", UserPath: "/team"},
		{SessionKey: "key0s1", UserPath: "/team"},
		{SessionKey: "key"},
		{ClientSessionID: "s1"},
		{ClientSessionID: "s"},
		{ClientSessionID: "s1", Model: "m"},
		{Model: "m"},
		{Model: "M"},
		{UserPath: "/team"},
		{UserPath: "/team/alpha"},
		{UserPath: "/team/alpha/"},
		{UserPath: "/te%m"},
		{UserPath: "/te_m"},
		{UserPath: "/"},
		{UserPath: "/team", ClientSessionID: "s2", Model: "n"},
		{UserPath: "/nobody"},
	} {
		for _, q.Limit = range []int{1, 3, 200} {
			var want []affinity.Pin
			for _, pin := range all {
				if q.Chooses(&pin) {
					want = append(want, pin)
				}
			}
			o.wants(q, want...)
		}
	}
}

func expiredNotListed(o *operator) {
	o.claims("old", a())
	o.passes(o.idle - time.Second)
	young := o.claims("young", a())
	o.wants(affinity.PinQuery{Limit: 5}, o.look("old"), young)
	o.passes(time.Second)
	o.wants(affinity.PinQuery{Limit: 5}, young)
	o.wants(affinity.PinQuery{Limit: 1}, young)
	o.wants(affinity.PinQuery{Limit: 5, SessionKey: "old"})
}

func pagesHaveAll(o *operator) {
	var all []affinity.Pin
	for i := range 60 {
		all = append(all, o.claimsAs(fmt.Sprintf("%d-%s", i%7, strings.Repeat("k", i)), "m", "", fmt.Sprint(i)))
	}
	for _, limit := range []int{1, 7, 59, 60, 61} {
		o.wants(affinity.PinQuery{Limit: limit}, all...)
	}
}

func pagesOfOneSession(o *operator) {
	var all []affinity.Pin
	for i := range 9 {
		all = append(all, o.claimsAs("s1", fmt.Sprint("m", i), "", "s1"))
		o.claimsAs("s0", fmt.Sprint("m", i), "", "s0")
		o.claimsAs("s2", fmt.Sprint("m", i), "", "s2")
	}
	for _, limit := range []int{1, 2, 9, 10} {
		o.wants(affinity.PinQuery{Limit: limit, SessionKey: "s1"}, all...)
	}
}

// pagesSurviveWrites: between two pages everything that has been listed moves, and others
// come; what was there all the time is seen once.
func pagesSurviveWrites(o *operator) {
	want := map[string]bool{}
	for i := range 20 {
		o.claims(fmt.Sprintf("s%02d", i), a())
		want[fmt.Sprintf("s%02d", i)] = true
	}
	seen := map[string]int{}
	q := affinity.PinQuery{Limit: 3}
	for page := range 100 {
		got, err := o.Operator.Pins(o.Context(), q, o.now)
		o.ok("Pins", err)
		for _, pin := range got.Pins {
			seen[pin.SessionKey]++
			o.passes(time.Second)
			o.reassigns(pin, b())
		}
		o.claims(fmt.Sprintf("r%02d", page), a())
		o.claims(fmt.Sprintf("s%02d-", page), a())
		if q.Cursor = got.Next; q.Cursor == "" {
			break
		}
	}
	for id := range want {
		if seen[id] != 1 {
			o.Errorf("%s was on %d pages, want 1", id, seen[id])
		}
	}
}

// pagesSurviveClears: the pin that a cursor stands on may be gone.
func pagesSurviveClears(o *operator) {
	const count = 12
	for i := range count {
		o.claims(fmt.Sprintf("s%02d", i), a())
	}
	seen := 0
	q := affinity.PinQuery{Limit: 1}
	for {
		got, err := o.Operator.Pins(o.Context(), q, o.now)
		o.ok("Pins", err)
		for _, pin := range got.Pins {
			seen++
			o.ok("Clear", o.Operator.Clear(o.Context(), pin))
		}
		if q.Cursor = got.Next; q.Cursor == "" {
			break
		}
	}
	if seen != count {
		o.Errorf("%d pins were listed while they were cleared, want %d", seen, count)
	}
}

// cursors from elsewhere are refused, or begin somewhere; they are never a fault.
func cursors(o *operator) {
	o.claims("s1", a())
	for _, cursor := range []string{"!", "AA", "AA==", "' OR 1=1 --", strings.Repeat("A", 5000), "eyJhIjoxfQ"} {
		for _, key := range []string{"", "s1"} {
			page, err := o.Operator.Pins(o.Context(), affinity.PinQuery{Limit: 5, SessionKey: key, Cursor: cursor}, o.now)
			if !errors.Is(err, affinity.ErrCursor) && (err != nil || len(page.Pins) > 1) {
				o.Errorf("Pins with cursor %q and key %q = %+v, %v, want ErrCursor", cursor, key, page, err)
			}
		}
	}
	elsewhere := affinity.Cursor(affinity.Ref{SessionKey: "other", Model: "m-big"})
	page, err := o.Operator.Pins(o.Context(), affinity.PinQuery{Limit: 5, SessionKey: "s1", Cursor: elsewhere}, o.now)
	if !errors.Is(err, affinity.ErrCursor) && err != nil {
		o.Errorf("Pins with another session's cursor = %+v, %v, want ErrCursor", page, err)
	}
}

func operatorIds(o *operator) {
	var all []affinity.Pin
	for _, id := range o.ids() {
		all = append(all, o.claimsAs(id, "m", "/"+id, id), o.claimsAs("sess", id, "", "sess"))
	}
	o.wants(affinity.PinQuery{Limit: 7}, all...)
	for _, id := range o.ids() {
		mine := slices.IndexFunc(all, func(p affinity.Pin) bool { return p.SessionKey == id })
		o.wants(affinity.PinQuery{Limit: 7, SessionKey: id}, all[mine])
		o.wants(affinity.PinQuery{Limit: 7, ClientSessionID: id, UserPath: "/" + id}, all[mine])
		o.wants(affinity.PinQuery{Limit: 7, SessionKey: "sess", Model: id}, all[mine+1])
	}
	for _, pin := range all {
		o.ok("Clear", o.Operator.Clear(o.Context(), pin))
	}
	o.wants(affinity.PinQuery{Limit: 7})
}

func clears(o *operator) {
	claim, served := o.claims("s1", a()), o.serves("s2", a())
	other := o.claimsAs("s2", "another model", "", "s2")
	for name, read := range map[string]affinity.Pin{
		"another provider": with(served, func(p *affinity.Pin) { p.Provider = "provider-b" }),
		"another key":      with(served, func(p *affinity.Pin) { p.KeyID = "k2" }),
		"another print":    with(served, func(p *affinity.Pin) { p.KeyPrint = "print of another" }),
		"another epoch":    with(served, func(p *affinity.Pin) { p.Epoch++ }),
	} {
		if err := o.Operator.Clear(o.Context(), read); !errors.Is(err, affinity.ErrConflict) {
			o.Errorf("Clear as read with %s = %v, want ErrConflict", name, err)
		}
	}
	moved := o.switches(served, b(), "r1", 1)
	if err := o.Operator.Clear(o.Context(), served); !errors.Is(err, affinity.ErrConflict) {
		o.Errorf("Clear after a move = %v, want ErrConflict", err)
	}
	o.uses("s2", affinity.Usage{InputTokens: 5}) // use is no change
	o.settles()
	o.ok("Clear", o.Operator.Clear(o.Context(), moved))
	o.ok("Clear of a claim", o.Operator.Clear(o.Context(), claim))
	o.seesNone("s1")
	o.seesNone("s2")
	if err := o.Operator.Clear(o.Context(), moved); !errors.Is(err, affinity.ErrNotFound) {
		o.Errorf("Clear again = %v, want ErrNotFound", err)
	}
	o.wants(affinity.PinQuery{Limit: 5}, other)
	o.same("Assign after Clear", o.claims("s2", c()), o.fresh("s2", c()))
}

func clearsExpired(o *operator) {
	served := o.serves("s1", a())
	o.passes(o.idle + time.Second)
	if err := o.Operator.Clear(o.Context(), served); err != nil && !errors.Is(err, affinity.ErrNotFound) {
		o.Errorf("Clear of an expired pin = %v, want success, or ErrNotFound when it was swept", err)
	}
	o.seesNone("s1")
}

func parallelClears(o *operator) {
	served := o.serves("s1", a())
	const racers = 16
	errs := make([]error, racers)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = o.Operator.Clear(o.Context(), served) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, affinity.ErrNotFound):
			o.Errorf("Clear = %v, want success or ErrNotFound", err)
		}
	}
	if won != 1 {
		o.Errorf("%d Clears won, want 1", won)
	}
}

// clearedStays: what was on its way when the row went does not bring it back.
func clearedStays(o *operator) {
	served := o.serves("s1", a())
	o.ok("Clear", o.Operator.Clear(o.Context(), served))
	o.uses("s1", affinity.Usage{InputTokens: 5})
	o.settles()
	got, err := o.Store.Confirm(o.Context(), served, o.now, o.idle)
	o.notFound("Confirm after Clear", got, err)
	got, err = o.increment(served, b(), "r1", 1)
	o.notFound("IncrementSwitch after Clear", got, err)
	o.seesNone("s1")
	o.wants(affinity.PinQuery{Limit: 5})
	if o.Peer != nil {
		_, err := o.Peer.Lookup(o.Context(), o.ref("s1"), o.now)
		o.notFound("Lookup by the peer", affinity.Pin{}, err)
	}
}

func operatorEnded(o *operator) {
	served := o.serves("s1", a())
	if _, err := o.Operator.Pins(o.ended(), affinity.PinQuery{Limit: 5}, o.now); err == nil {
		o.Error("Pins with an ended context succeeded")
	}
	if err := o.Operator.Clear(o.ended(), served); err == nil {
		o.Error("Clear with an ended context succeeded")
	}
}
