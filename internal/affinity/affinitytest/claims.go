package affinitytest

import (
	"time"

	"switchboard/internal/affinity"
)

func emptyStore(k *keyboard) {
	k.seesNone("s1")
	nobody := k.fresh("s1", a())
	got, err := k.Store.Confirm(k.Context(), nobody, k.now, k.idle)
	k.notFound("Confirm", got, err)
	got, err = k.Store.Reassign(k.Context(), nobody, b(), k.now, k.idle)
	k.notFound("Reassign", got, err)
	got, err = k.increment(nobody, b(), "r1", 1)
	k.notFound("IncrementSwitch", got, err)
	k.withdraws(nobody)
	k.seesNone("s1")
}

func claimIsTentative(k *keyboard) {
	got := k.claims("s1", a())
	k.same("Assign", got, k.fresh("s1", a()))
	k.sees("s1", k.fresh("s1", a()))
	k.seesNone("s2")
}

func claimLoses(k *keyboard) {
	first := k.claims("s1", a())
	k.passes(time.Second)
	got, err := k.Store.Assign(k.Context(), k.pin("s1", b()), nil, k.now, k.idle)
	k.conflict("Assign", got, err, first)
	got, err = k.Store.Assign(k.Context(), k.pin("s1", a2()), nil, k.now, k.idle)
	k.conflict("Assign of another key", got, err, first)
	served := k.pin("s1", b())
	served.Served = true
	got, err = k.Store.Assign(k.Context(), served, nil, k.now, k.idle)
	k.conflict("Assign of a served pin", got, err, first)
	k.sees("s1", first)
}

func claimServedAtOnce(k *keyboard) {
	pin := k.pin("s1", a())
	pin.Served = true
	want := k.fresh("s1", a())
	want.Served = true
	k.same("Assign", k.assigns(pin, nil), want)
	k.sees("s1", want)
}

func confirm(k *keyboard) {
	claim := k.claims("s1", a())
	k.passes(time.Minute)
	got := k.confirms(claim)
	want := claim
	want.Served, want.LastUsedAt, want.ExpiresAt = true, k.now, k.now.Add(k.idle)
	k.same("Confirm", got, want)
	k.same("Confirm again", k.confirms(claim), want)
	k.same("Confirm of a served pin", k.confirms(got), want)
	k.sees("s1", want)

	moved := k.switches(got, b(), "r1", 0)
	got, err := k.Store.Confirm(k.Context(), claim, k.now, k.idle)
	k.conflict("Confirm after a move", got, err, moved)

	other := k.claims("s2", a())
	for name, read := range map[string]affinity.Pin{
		"another provider": with(other, func(p *affinity.Pin) { p.Provider = "provider-b" }),
		"another key":      with(other, func(p *affinity.Pin) { p.KeyID = "k2" }),
		"another print":    with(other, func(p *affinity.Pin) { p.KeyPrint = "print of another" }),
		"no print":         with(other, func(p *affinity.Pin) { p.KeyPrint = "" }),
		"another epoch":    with(other, func(p *affinity.Pin) { p.Epoch++ }),
	} {
		got, err := k.Store.Confirm(k.Context(), read, k.now, k.idle)
		k.conflict("Confirm as read with "+name, got, err, other)
	}
	k.sees("s2", other)
}

func reassign(k *keyboard) {
	claim := k.claims("s1", a())
	k.passes(time.Minute)
	want := claim
	want.Target, want.Served, want.Epoch = b(), true, 2
	want.LastUsedAt, want.ExpiresAt = k.now, k.now.Add(k.idle)
	k.same("Reassign", k.reassigns(claim, b()), want)
	k.same("Reassign again", k.reassigns(claim, b()), want)
	k.sees("s1", want)

	// Another key of the same provider, and another model of the same key, are moves too.
	claim = k.claims("s2", a())
	if got := k.reassigns(claim, a2()); got.KeyID != "k2" || got.Epoch != 2 || got.SwitchCount != 0 {
		k.Fatalf("Reassign to another key = %+v", got)
	}
	claim = k.claims("s3", a())
	model := a()
	model.Model = "m-other"
	if got := k.reassigns(claim, model); got.Target.Model != "m-other" || !got.Served || got.SwitchCount != 0 {
		k.Fatalf("Reassign to another model = %+v", got)
	}
}

func reassignAsRead(k *keyboard) {
	claim := k.claims("s1", a())
	moved := k.reassigns(claim, b())
	got, err := k.Store.Reassign(k.Context(), claim, c(), k.now, k.idle)
	k.conflict("Reassign after another's move", got, err, moved)
	got, err = k.Store.Reassign(k.Context(), moved, c(), k.now, k.idle)
	k.conflict("Reassign of a served pin", got, err, moved)
	k.sees("s1", moved)

	claim = k.claims("s2", a())
	served := k.confirms(claim)
	got, err = k.Store.Reassign(k.Context(), claim, b(), k.now, k.idle)
	k.conflict("Reassign after another's confirm", got, err, served)

	claim = k.claims("s3", a())
	old := with(claim, func(p *affinity.Pin) { p.Epoch = 7 })
	got, err = k.Store.Reassign(k.Context(), old, b(), k.now, k.idle)
	k.conflict("Reassign as read with another epoch", got, err, claim)
}

func withdraw(k *keyboard) {
	claim := k.claims("s1", a())
	k.withdraws(with(claim, func(p *affinity.Pin) { p.KeyID = "k2" }))
	k.withdraws(with(claim, func(p *affinity.Pin) { p.KeyPrint = "print of another" }))
	k.withdraws(with(claim, func(p *affinity.Pin) { p.Provider = "provider-b" }))
	k.withdraws(with(claim, func(p *affinity.Pin) { p.Epoch = 2 }))
	k.sees("s1", claim)
	k.withdraws(claim)
	k.seesNone("s1")
	k.withdraws(claim)

	k.same("Assign after Withdraw", k.claims("s1", b()), k.fresh("s1", b()))

	served := k.serves("s2", a())
	k.withdraws(served)
	k.sees("s2", served)
	k.withdraws(with(served, func(p *affinity.Pin) { p.Served = false }))
	k.sees("s2", served)
}

func stale(k *keyboard) {
	old := k.serves("s1", a())
	old = k.switches(old, b(), "r1", 5)
	k.passes(time.Minute)

	// Somebody else has moved it in between: theirs stands.
	for name, read := range map[string]affinity.Pin{
		"another provider": with(old, func(p *affinity.Pin) { p.Provider = "provider-z" }),
		"another key":      with(old, func(p *affinity.Pin) { p.KeyID = "k9" }),
		"another print":    with(old, func(p *affinity.Pin) { p.KeyPrint = "print of another" }),
		"another epoch":    with(old, func(p *affinity.Pin) { p.Epoch-- }),
	} {
		got, err := k.Store.Assign(k.Context(), k.pin("s1", c()), &read, k.now, k.idle)
		k.conflict("Assign with stale of "+name, got, err, old)
	}

	got := k.assigns(k.pin("s1", c()), &old)
	k.same("Assign over a stale pin", got, k.fresh("s1", c()))
	k.sees("s1", k.fresh("s1", c()))
	k.same("Assign over a stale pin, again", k.assigns(k.pin("s1", c()), &old), got)

	gone := k.fresh("s2", a())
	k.same("Assign over a stale pin that is gone", k.assigns(k.pin("s2", c()), &gone), k.fresh("s2", c()))
}

// keyPrints: another key under the same id is another target; the same key under another id
// is not.
func keyPrints(k *keyboard) {
	elsewhere, replaced := a(), a()
	elsewhere.KeyID = "k7"
	replaced.KeyPrint = "print of another"

	claim := k.claims("s1", a())
	want := claim
	want.Served = true
	k.same("Reassign to the same key under another id", k.reassigns(claim, elsewhere), want)
	k.sees("s1", want)

	claim = k.claims("s2", a())
	want = claim
	want.Target, want.Served, want.Epoch = replaced, true, 2
	k.same("Reassign to another key under the same id", k.reassigns(claim, replaced), want)
	k.sees("s2", want)

	served := k.serves("s3", a())
	got := k.switches(served, replaced, "r1", 10)
	if got.Target != replaced || got.SwitchCount != 1 {
		k.Fatalf("IncrementSwitch to another key under the same id = %+v, want it counted", got)
	}
	k.same("IncrementSwitch again", k.switches(served, replaced, "r1", 10), got)
	k.sees("s3", got)

	// A row from before prints were known: the id is all there is.
	bare := a()
	bare.KeyPrint = ""
	claim = k.claims("s4", bare)
	want = claim
	want.Served = true
	k.same("Reassign of a claim without a print", k.reassigns(claim, a()), want)
	k.sees("s4", want)
}

// claimIsOneRequests: of equal claims at one time the first is the winner's alone, whose
// repeat is told from another's by the request.
func claimIsOneRequests(k *keyboard) {
	mine, theirs := by(k.pin("s1", a()), "r1"), by(k.pin("s1", a()), "r2")
	claim := k.assigns(mine, nil)
	k.same("Assign", claim, by(k.fresh("s1", a()), "r1"))
	got, err := k.Store.Assign(k.Context(), theirs, nil, k.now, k.idle)
	k.conflict("Assign by another request", got, err, claim)
	k.passes(time.Minute)
	k.same("Assign again, later", k.assigns(mine, nil), claim)
	got, err = k.Store.Assign(k.Context(), by(k.pin("s1", b()), "r1"), nil, k.now, k.idle)
	k.conflict("Assign of another target", got, err, claim)

	// The claim is no switch: the same request's switch to where it is counts.
	served := k.confirms(claim)
	got, err = k.increment(with(served, func(p *affinity.Pin) { p.Epoch-- }), a(), "r1", 10)
	k.conflict("IncrementSwitch by the claiming request", got, err, served)
	moved := k.switches(served, b(), "r1", 10)
	k.same("IncrementSwitch again", k.switches(served, b(), "r1", 10), moved)
	if moved.SwitchCount != 1 || moved.LastSwitchRequestID != "r1" {
		k.Fatalf("IncrementSwitch by the claiming request = %+v, want it counted", moved)
	}

	nameless := by(k.pin("s2", a()), "")
	claim = k.assigns(nameless, nil)
	got, err = k.Store.Assign(k.Context(), nameless, nil, k.now, k.idle)
	k.conflict("Assign again without a request", got, err, claim)
}

// by is the pin as the claim of a request.
func by(pin affinity.Pin, requestID string) affinity.Pin {
	pin.LastSwitchRequestID = requestID
	return pin
}

func with(pin affinity.Pin, change func(p *affinity.Pin)) affinity.Pin {
	change(&pin)
	return pin
}
