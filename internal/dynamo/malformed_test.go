package dynamo_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"switchboard/internal/affinity"
)

var textColumns = []string{
	"provider_identity", "key_id", "key_print", "target_model", "api_surface", "user_path", "client_session_id", "last_switch_request_id",
}

var integerColumns = []string{
	"assigned_at", "last_used_at", "expires_at", "epoch", "total_input_tokens", "total_output_tokens",
	"total_cached_tokens", "total_cost_nano_usd", "total_requests", "switch_count", "switch_cost_nano_usd", "last_input_tokens",
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

// damages are columns of the wrong type, and the two that a row cannot do without.
func damages() map[string][]types.AttributeValue {
	blob := &types.AttributeValueMemberB{Value: []byte{0, 255}}
	yes := &types.AttributeValueMemberBOOL{Value: true}
	list := &types.AttributeValueMemberL{Value: []types.AttributeValue{str("x"), num("1")}}
	object := &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"x": num("1")}}
	set := &types.AttributeValueMemberSS{Value: []string{"x"}}
	null := &types.AttributeValueMemberNULL{Value: true}
	out := map[string][]types.AttributeValue{"is_active": {str("true"), str(""), blob, null, num("0.5")}}
	for _, column := range textColumns {
		out[column] = []types.AttributeValue{num("42"), blob, yes, null, list, object, set}
	}
	for _, column := range integerColumns {
		out[column] = []types.AttributeValue{str("x"), str(""), str("12"), num("1.5"), blob, yes, null, list}
	}
	out["provider_identity"] = append(out["provider_identity"], nil)
	out["expires_at"] = append(out["expires_at"], nil)
	// AddUsage and Confirm set these, and so mend some of it.
	out["last_used_at"] = slices.DeleteFunc(out["last_used_at"], func(v types.AttributeValue) bool { return isNumber(v, "1.5") })
	return out
}

// S-DB-04a: a row with a column of the wrong type is no row: it is logged whole, once, and
// replaced.
func TestSDB04MalformedRowsReadAsNone(t *testing.T) {
	r := newRig(t)
	for column, values := range damages() {
		for i, value := range values {
			session := "s " + column + string(rune('0'+i))
			old := r.serve(session, "a")
			neighbour := r.serve(session+" neighbour", "a")
			row := r.raw(r.sessions, r.sessionKey(session))
			if row[column] = value; value == nil {
				delete(row, column)
			}
			r.write(r.sessions, row)
			r.checkMalformed(session, old, row)
			if got := r.look(neighbour.Ref); got != neighbour {
				r.Errorf("%s: Lookup of another row = %+v, want %+v", session, got, neighbour)
			}
		}
	}
}

func (r *rig) checkMalformed(session string, old affinity.Pin, row item) {
	r.Helper()
	ctx := r.Context()
	r.log.lines()
	notFound := func(op string, err error) {
		r.Helper()
		if !errors.Is(err, affinity.ErrNotFound) {
			r.Errorf("%s: %s error = %v, want ErrNotFound", session, op, err)
		}
	}
	for range 3 {
		_, err := r.store.Lookup(ctx, old.Ref, r.now)
		notFound("Lookup", err)
	}
	if err := r.store.AddUsage(ctx, old.Ref, affinity.Usage{OutputTokens: 1, CachedTokens: 1, CostNanoUSD: 1}, r.now, idle); err != nil {
		r.Errorf("%s: AddUsage: %v", session, err)
	}
	_, err := r.store.Reassign(ctx, old, to("b"), r.now, idle)
	notFound("Reassign", err)
	_, err = r.store.IncrementSwitch(ctx, old, affinity.Move{RequestID: "r"}, r.now, idle)
	notFound("IncrementSwitch", err)
	_, err = r.store.Confirm(ctx, old, r.now, idle)
	notFound("Confirm", err)
	if err := r.store.Withdraw(ctx, old); err != nil {
		r.Errorf("%s: Withdraw: %v", session, err)
	}
	lines := r.log.lines()
	if len(lines) != 1 {
		r.Fatalf("%s: logged %d times, want once:\n%s", session, len(lines), strings.Join(lines, ""))
	}
	var line struct {
		Level string
		Row   map[string]any
	}
	if err := json.Unmarshal([]byte(lines[0]), &line); err != nil {
		r.Fatal(err)
	}
	if len(line.Row) != len(row) || line.Level != "ERROR" || !cmp.Equal(line.Row["session_id"], any(map[string]any{"S": session})) {
		r.Errorf("%s: logged %s, want the row's %d columns at error level", session, lines[0], len(row))
	}
	r.wire.reset()
	fresh := r.claim(session, "c")
	if calls := r.wire.calls(); len(calls) > 2 {
		r.Errorf("%s: Assign over it took %v", session, calls)
	}
	if got := r.look(old.Ref); got != fresh {
		r.Errorf("%s: Lookup after Assign = %+v, want %+v", session, got, fresh)
	}
	if lines := r.log.lines(); len(lines) != 0 {
		r.Errorf("%s: logged again: %v", session, lines)
	}
}

// A malformed row that somebody else replaces in between is theirs.
func TestSDB04MalformedRowReplacedInBetween(t *testing.T) {
	r := newRig(t)
	r.claim("s", "a")
	row := r.raw(r.sessions, r.sessionKey("s"))
	row["switch_count"] = str("x")
	r.write(r.sessions, row)
	other := r.another()
	var theirs affinity.Pin
	r.wire.breaks(func(_ string, n int) broken {
		if n == 2 { // our second put, over the malformed row
			var err error
			if theirs, err = other.Assign(r.Context(), pin("s", "theirs"), nil, r.now, idle); err != nil {
				r.Error(err)
			}
		}
		return broken{}
	})
	got, err := r.store.Assign(r.Context(), pin("s", "ours"), nil, r.now, idle)
	if !errors.Is(err, affinity.ErrConflict) || got != theirs {
		r.Errorf("Assign = %+v, %v, want a conflict with %+v", got, err, theirs)
	}
}

// A row that was written by hand needs only what matters, and is moved like any other.
func TestRowsByHand(t *testing.T) {
	for name, extra := range map[string]item{
		"bare":        {},
		"number flag": {"is_active": num("1")},
		"no print":    {"key_id": str("1"), "epoch": num("1")},
		"unknown":     {"note": str("by hand"), "numbers": &types.AttributeValueMemberNS{Value: []string{"1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			row := item{
				"session_id": str("s"), "model_name": str("m"), "provider_identity": str("a"),
				"switch_count": num("4"), "expires_at": num("4000000000"),
			}
			for column, value := range extra {
				row[column] = value
			}
			r.write(r.sessions, row)
			read := r.look(pin("s", "").Ref)
			if read.Provider != "a" || read.SwitchCount != 4 || !read.Served || read.Epoch != 1 {
				t.Fatalf("Lookup = %+v", read)
			}
			if err := r.store.AddUsage(t.Context(), read.Ref, affinity.Usage{InputTokens: 3}, r.now, idle); err != nil {
				t.Errorf("AddUsage: %v", err)
			}
			if got := r.look(read.Ref); got.InputTokens != 3 || got.Requests != 1 || !got.LastUsedAt.Equal(r.now) || got.ExpiresAt.Unix() != 4000000000 {
				t.Errorf("after AddUsage: %+v", got)
			}
			if _, err := r.store.Confirm(t.Context(), read, r.now, idle); err != nil {
				t.Errorf("Confirm: %v", err)
			}
			got, err := r.store.IncrementSwitch(t.Context(), read, affinity.Move{To: to("b"), RequestID: "r"}, r.now, idle)
			if err != nil || got.SwitchCount != 5 || got.Epoch != 2 || got.Provider != "b" {
				t.Errorf("IncrementSwitch = %+v, %v", got, err)
			}
			r.write(r.sessions, row)
			if got, err := r.store.Assign(t.Context(), pin("s", "c"), &read, r.now, idle); err != nil || got.Provider != "c" {
				t.Errorf("Assign over it as stale = %+v, %v", got, err)
			}
		})
	}
}

func TestSDB04MalformedAliasIsNone(t *testing.T) {
	r := newRig(t)
	a := affinity.Alias{ResponseID: "r", SessionKey: "s", Target: to("a"), ExpiresAt: r.now.Add(idle)}
	for column, value := range map[string]types.AttributeValue{
		"session_id": num("1"), "expires_at": str("never"), "provider_identity": nil, "key_id": num("1"), "api_surface": num("2"),
	} {
		if err := r.store.PutAlias(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		row := r.raw(r.state, item{"id": str("response:r")})
		if row[column] = value; value == nil {
			delete(row, column)
		}
		r.write(r.state, row)
		for range 2 {
			if got, err := r.store.LookupAlias(t.Context(), "r", r.now); !errors.Is(err, affinity.ErrNotFound) {
				t.Errorf("%s: LookupAlias = %+v, %v, want ErrNotFound", column, got, err)
			}
		}
		if lines := r.log.lines(); len(lines) != 1 {
			t.Errorf("%s: logged %d times, want once", column, len(lines))
		}
	}
	if err := r.store.PutAlias(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if got, err := r.store.LookupAlias(t.Context(), "r", r.now); err != nil || got != a {
		t.Errorf("LookupAlias = %+v, %v, want %+v", got, err, a)
	}
}

func isNumber(v types.AttributeValue, n string) bool {
	got, ok := v.(*types.AttributeValueMemberN)
	return ok && got.Value == n
}
