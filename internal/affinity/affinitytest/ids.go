package affinitytest

import (
	"errors"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/affinity"
)

// ids are texts that have been mistaken for one another, or for syntax.
func (k *keyboard) ids() []string {
	ids := []string{
		"s", "S", "s ", " s", "s\x00", "s\x00t", "s\x00u", "\x00", "'", "''", `"`, `\`, "`", ";--", "%", "_", "*", "?",
		"' OR 1=1 --", `{"session_id":"s"}`, "a/b", "a%2Fb", "a:b", "a|b", "a#b", "../..", "null", "0", "00", "1e3", "0x10",
		"\n", "\r\n", "\t", "\x01\x1f\x7f", "\u0085", "\u00a0", "\u200b", "\ufeff", "\u2028",
		"caf\u00e9", "cafe\u0301", "ß", "ss", "İ", "i", "日本語", "🙂", "👩‍👩‍👧", "\U0010ffff", "\ufffd",
		strings.Repeat("k", 255), strings.Repeat("k", 256), strings.Repeat("日", 85), strings.Repeat("\x00", 256),
	}
	if k.InvalidUTF8 {
		ids = append(ids, "\xff", "\xfe\xff", "a\x80b", "\xc3", "\xed\xa0\x80", strings.Repeat("\xff", 256))
	}
	return ids
}

func idsAreAnyText(k *keyboard) {
	want := make(map[affinity.Ref]affinity.Pin)
	for i, id := range k.ids() {
		for _, ref := range []affinity.Ref{{SessionKey: id, Model: "m-big"}, {SessionKey: "sess", Model: id}} {
			pin := affinity.Pin{
				Ref: ref, UserPath: "/" + id, ClientSessionID: id,
				Target: affinity.Target{Provider: "p" + id, KeyID: id, KeyPrint: id, Model: id, Surface: id},
			}
			pin = k.assigns(pin, nil)
			pin = k.confirms(pin)
			move := pin.Target
			move.Provider = "q" + id
			pin = k.switches(pin, move, "request "+id, int64(i))
			usage := affinity.Usage{InputTokens: int64(i + 1)}
			k.ok("AddUsage", k.Store.AddUsage(k.Context(), ref, usage, k.now, k.idle))
			pin.InputTokens, pin.LastInputTokens, pin.Requests = usage.InputTokens, usage.InputTokens, 1
			want[ref] = pin
		}
	}
	k.settles()
	for ref, pin := range want {
		got, err := k.Store.Lookup(k.Context(), ref, k.now)
		if diff := cmp.Diff(pin, got); err != nil || diff != "" {
			k.Errorf("Lookup(%q, %q): %v (-want +got):\n%s", ref.SessionKey, ref.Model, err, diff)
		}
	}
}

// modelsApart: sub-agents share a session id, not a model.
func modelsApart(k *keyboard) {
	big, small := k.pin("s1", a()), k.pin("s1", b())
	small.Ref.Model = "m-small"
	big, small = k.confirms(k.assigns(big, nil)), k.confirms(k.assigns(small, nil))
	big = k.switches(big, c(), "r1", 1)
	k.sees("s1", big)
	got, err := k.Store.Lookup(k.Context(), small.Ref, k.now)
	k.ok("Lookup", err)
	k.same("Lookup of the other model", got, small)
}

// tenantsApart: no way of cutting key and model gives another's row.
func tenantsApart(k *keyboard) {
	refs := []affinity.Ref{
		{SessionKey: "ab", Model: "c"},
		{SessionKey: "a", Model: "bc"},
		{SessionKey: "abc", Model: "c"},
		{SessionKey: "a\x00b", Model: "c"},
		{SessionKey: "a", Model: "b\x00c"},
		{SessionKey: "scoped-0123", Model: "m"},
		{SessionKey: "scoped-0124", Model: "m"},
	}
	for i, ref := range refs {
		_, err := k.Store.Lookup(k.Context(), ref, k.now)
		k.notFound("Lookup before", affinity.Pin{Ref: ref}, err)
		pin := k.pin("", target(strings.Repeat("p", i+1), "k"))
		pin.Ref, pin.UserPath = ref, strings.Repeat("/t", i+1)
		k.assigns(pin, nil)
	}
	for i, ref := range refs {
		got, err := k.Store.Lookup(k.Context(), ref, k.now)
		if err != nil || got.UserPath != strings.Repeat("/t", i+1) || got.Provider != strings.Repeat("p", i+1) {
			k.Errorf("Lookup(%+v) = %+v, %v", ref, got, err)
		}
	}
}

func (k *keyboard) alias(id, session string, to affinity.Target) affinity.Alias {
	return affinity.Alias{
		ResponseID: id, SessionKey: session, ClientSessionID: "client " + session, SessionSource: "header:x-session-id",
		Target: to, ExpiresAt: k.now.Add(24 * time.Hour),
	}
}

func (k *keyboard) puts(a affinity.Alias) {
	k.Helper()
	k.ok("PutAlias", k.Aliases.PutAlias(k.Context(), a))
}

func (k *keyboard) seesAlias(want affinity.Alias) {
	k.Helper()
	got, err := k.Aliases.LookupAlias(k.Context(), want.ResponseID, k.now)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		k.Fatalf("LookupAlias(%q): %v (-want +got):\n%s", want.ResponseID, err, diff)
	}
}

func (k *keyboard) seesNoAlias(id string) {
	k.Helper()
	if got, err := k.Aliases.LookupAlias(k.Context(), id, k.now); !errors.Is(err, affinity.ErrNotFound) {
		k.Fatalf("LookupAlias(%q) = %+v, %v, want ErrNotFound", id, got, err)
	}
}

// aliasSeen: a fast client's next request asks before the write is through.
func aliasSeen(k *keyboard) {
	k.seesNoAlias("resp_1")
	want := k.alias("resp_1", "s1", a())
	k.puts(want)
	k.seesAlias(want)
	k.settles()
	k.seesAlias(want)
	k.seesNoAlias("resp_2")
}

func aliasReplaced(k *keyboard) {
	k.puts(k.alias("resp_1", "s1", a()))
	want := k.alias("resp_1", "s2", b())
	k.puts(want)
	k.seesAlias(want)
	k.settles()
	k.seesAlias(want)
	k.puts(want)
	k.settles()
	k.seesAlias(want)
}

func aliasExpires(k *keyboard) {
	want := k.alias("resp_1", "s1", a())
	k.puts(want)
	for range 2 { // while it is on its way, and after
		start := k.now
		k.now = want.ExpiresAt.Add(-time.Millisecond)
		k.seesAlias(want)
		k.now = want.ExpiresAt
		k.seesNoAlias("resp_1")
		k.now = start
		k.settles()
	}
	k.now = want.ExpiresAt
	again := k.alias("resp_1", "s1", b())
	k.puts(again)
	k.settles()
	k.seesAlias(again)
}

func aliasIds(k *keyboard) {
	for _, id := range k.ids() {
		k.puts(k.alias(id, id, target(id, id)))
	}
	k.settles()
	for _, id := range k.ids() {
		k.seesAlias(k.alias(id, id, target(id, id)))
	}
}
