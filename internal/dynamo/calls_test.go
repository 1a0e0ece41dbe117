package dynamo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"switchboard/internal/affinity"
	"switchboard/internal/dynamo"
)

// An affine request makes two calls: one read before the first byte, one write after it.
func TestCallsOfARequest(t *testing.T) {
	r := newRig(t)
	ctx, ref := t.Context(), pin("s", "").Ref
	for _, tt := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"Assign", func() error { _, err := r.store.Assign(ctx, pin("s", "a"), nil, r.now, idle); return err }, []string{"PutItem"}},
		{"Assign that loses", func() error { _, err := r.store.Assign(ctx, pin("s", "b"), nil, r.now, idle); return err }, []string{"PutItem"}},
		{"Confirm", func() error { _, err := r.store.Confirm(ctx, r.lookQuietly(ref), r.now, idle); return err }, []string{"UpdateItem"}},
		{"Lookup", func() error { _, err := r.store.Lookup(ctx, ref, r.now); return err }, []string{"GetItem"}},
		{"AddUsage", func() error {
			return r.store.AddUsage(ctx, ref, affinity.Usage{InputTokens: 1}, r.now.Add(time.Second), idle)
		}, []string{"UpdateItem"}},
		{"AddUsage in the same second", func() error {
			return r.store.AddUsage(ctx, ref, affinity.Usage{InputTokens: 1}, r.now.Add(time.Second), idle)
		}, []string{"UpdateItem"}},
		{"AddUsage by a late clock", func() error {
			return r.store.AddUsage(ctx, ref, affinity.Usage{InputTokens: 1}, r.now.Add(-90*time.Second), idle)
		}, []string{"UpdateItem", "UpdateItem"}},
		{"AddUsage of nobody", func() error {
			return r.store.AddUsage(ctx, affinity.Ref{SessionKey: "nobody", Model: "m"}, affinity.Usage{}, r.now, idle)
		}, []string{"UpdateItem"}},
		{"IncrementSwitch", func() error {
			_, err := r.store.IncrementSwitch(ctx, r.lookQuietly(ref), affinity.Move{To: to("b"), RequestID: "r"}, r.now.Add(time.Minute), idle)
			return err
		}, []string{"UpdateItem"}},
		{"IncrementSwitch by a late clock", func() error {
			_, err := r.store.IncrementSwitch(ctx, r.lookQuietly(ref), affinity.Move{To: to("c"), RequestID: "r2"}, r.now.Add(-time.Minute), idle)
			return err
		}, []string{"UpdateItem"}},
		{"PutAlias", func() error {
			return r.store.PutAlias(ctx, affinity.Alias{ResponseID: "r", ExpiresAt: r.now.Add(idle)})
		}, []string{"PutItem"}},
		{"LookupAlias", func() error { _, err := r.store.LookupAlias(ctx, "r", r.now); return err }, []string{"GetItem"}},
	} {
		r.wire.reset()
		if err := tt.do(); err != nil && !errors.Is(err, affinity.ErrConflict) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := r.wire.calls(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: calls = %v, want %v", tt.name, got, tt.want)
		}
	}
}

// lookQuietly does not count.
func (r *rig) lookQuietly(ref affinity.Ref) affinity.Pin {
	r.Helper()
	pin := r.look(ref)
	r.wire.reset()
	return pin
}

// S-DB-03: no expression names an attribute in clear, so no reserved word can be one; and
// every conditional write of a row asks for the row that fails it.
func TestSDB03NamesArePlaceholders(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	claim := r.claim("s", "a")
	r.store.Assign(ctx, pin("s", "b"), &claim, r.now, idle)
	r.store.Confirm(ctx, r.look(claim.Ref), r.now.Add(time.Second), idle)
	r.store.IncrementSwitch(ctx, r.look(claim.Ref), affinity.Move{To: to("c"), RequestID: "r"}, r.now, idle)
	r.store.AddUsage(ctx, claim.Ref, affinity.Usage{InputTokens: 1}, r.now.Add(time.Minute), idle)
	r.store.Reassign(ctx, r.claim("s2", "a"), to("b"), r.now, idle)
	r.store.Withdraw(ctx, r.claim("s3", "a"))
	d := r.store.Document("health")
	d.Swap(ctx, []byte("x"), 0, r.now.Add(idle))
	d.Swap(ctx, []byte("y"), 1, r.now.Add(idle))

	words := regexp.MustCompile(`[#:]?[A-Za-z_][A-Za-z0-9_]*`)
	grammar := strings.Fields("SET ADD REMOVE AND OR NOT IN attribute_not_exists attribute_exists attribute_type")
	seen := map[string]bool{}
	for i, body := range r.wire.sent {
		var in struct {
			UpdateExpression, ConditionExpression, ProjectionExpression string
			ExpressionAttributeNames                                    map[string]string
			ReturnValuesOnConditionCheckFailure                         string
		}
		if err := json.Unmarshal(body, &in); err != nil {
			t.Fatal(err)
		}
		expression := in.UpdateExpression + " " + in.ConditionExpression + " " + in.ProjectionExpression
		for _, word := range words.FindAllString(expression, -1) {
			if word[0] != '#' && word[0] != ':' && !slices.Contains(grammar, word) {
				t.Errorf("%s: %q in %s", r.wire.ops[i], word, expression)
			}
		}
		op := r.wire.ops[i]
		if in.ConditionExpression != "" && op != "DeleteItem" && in.ReturnValuesOnConditionCheckFailure != "ALL_OLD" {
			t.Errorf("%s does not ask for the row that fails it: %s", op, body)
		}
		seen[op] = seen[op] || in.ConditionExpression != ""
	}
	for _, op := range []string{"PutItem", "UpdateItem", "DeleteItem"} {
		if !seen[op] {
			t.Errorf("no conditional %s seen", op)
		}
	}
}

// S-DB-04b: names that DynamoDB would refuse as keys, or change, are told apart all the same.
func TestSDB04KeysOfAnyLength(t *testing.T) {
	r := newRig(t)
	threeBytes := strings.Repeat("日", 700) // 2100 bytes
	long := strings.Repeat("m", 3000)
	names := []string{
		threeBytes, threeBytes + "x", "x" + threeBytes, long, long + "x", strings.Repeat("é", 128), strings.Repeat("é", 128) + "x",
		strings.Repeat("m", 256), strings.Repeat("m", 257), strings.Repeat("m", 100_000),
		"", "\xff", "\xfe", "\ufffd", "\xff\xff", "a\x00", "\x00", "sha256:", "sha256:x",
		// What the hashes of others look like.
		"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"sha256:a8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89",
	}
	want := map[affinity.Ref]affinity.Pin{}
	for i, name := range names {
		for _, ref := range []affinity.Ref{{SessionKey: name, Model: "m"}, {SessionKey: "s", Model: name}} {
			p := pin("", fmt.Sprint("provider-", i))
			p.Ref = ref
			got, err := r.store.Assign(t.Context(), p, nil, r.now, idle)
			if err != nil {
				t.Fatalf("Assign of %.20q, %.20q: %v", ref.SessionKey, ref.Model, err)
			}
			if err := r.store.AddUsage(t.Context(), ref, affinity.Usage{}, r.now, idle); err != nil {
				t.Errorf("AddUsage: %v", err)
			}
			got.Requests = 1
			want[ref] = got
		}
		a := affinity.Alias{ResponseID: name, SessionKey: "s", Target: to(fmt.Sprint("provider-", i)), ExpiresAt: r.now.Add(idle)}
		if err := r.store.PutAlias(t.Context(), a); err != nil {
			t.Errorf("PutAlias(%.20q): %v", name, err)
		}
		if data := fmt.Sprint(i); r.store.Document(name).Swap(t.Context(), []byte(data), 0, r.now.Add(idle)) != nil {
			t.Errorf("Swap of %.20q failed", name)
		}
	}
	for ref, p := range want {
		if got := r.look(ref); got != p {
			t.Errorf("Lookup(%.20q, %.20q) = %+v, want %+v", ref.SessionKey, ref.Model, got, p)
		}
	}
	for i, name := range names {
		if got, err := r.store.LookupAlias(t.Context(), name, r.now); err != nil || got.Provider != fmt.Sprint("provider-", i) {
			t.Errorf("LookupAlias(%.20q) = %+v, %v", name, got, err)
		}
		r.loads(r.another().Document(name), fmt.Sprint(i), 1)
	}
}

// What a person needs to find a row whose name was hashed.
func TestHashedModelKeepsItsStart(t *testing.T) {
	r := newRig(t)
	p := pin("s", "a")
	p.Ref.Model = strings.Repeat("日", 700)
	if _, err := r.store.Assign(t.Context(), p, nil, r.now, idle); err != nil {
		t.Fatal(err)
	}
	var in struct{ Item map[string]map[string]any }
	if err := json.Unmarshal(r.wire.sent[0], &in); err != nil {
		t.Fatal(err)
	}
	if got := in.Item["model_name_start"]["S"]; got != strings.Repeat("日", 85) {
		t.Errorf("model_name_start = %v", got)
	}
}

// size is what DynamoDB counts for an item: names and values in bytes, numbers by digits.
func size(row item) int {
	n := 0
	for name, value := range row {
		n += len(name)
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			n += len(v.Value)
		case *types.AttributeValueMemberN:
			n += (len(strings.Trim(v.Value, "-"))+1)/2 + 2
		case *types.AttributeValueMemberB:
			n += len(v.Value)
		default:
			n++
		}
	}
	return n
}

// An item stays under 1 KB, one write unit, for what people have: also with the longest id that
// a client may give, with and without a user path, and with sums of years.
func TestItemIsUnderOneKilobyte(t *testing.T) {
	for _, tt := range []struct{ name, session, userPath, client string }{
		{"agent", "scoped-0123456789abcdef0123456789abcdef", "/team/alpha/app", "0198c0de-0000-7000-8000-000000000000"},
		{"automatic", "auto-0123456789abcdef0123456789abcdef", "", "auto-0123456789abcdef0123456789abcdef"},
		{"longest id, scoped", "scoped-0123456789abcdef0123456789abcdef", "/organisation/department/team/application", strings.Repeat("i", 200)},
		{"longest id", strings.Repeat("i", 200), "", strings.Repeat("i", 200)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			p := affinity.Pin{
				Ref: affinity.Ref{SessionKey: tt.session, Model: "claude-sonnet-4-5-20250929"},
				Target: affinity.Target{
					Provider: "anthropic-main", KeyID: "second", KeyPrint: "0123456789abcdef",
					Model: "claude-sonnet-4-5-20250929", Surface: "openai-chat-completions",
				},
				UserPath: tt.userPath, ClientSessionID: tt.client, LastSwitchRequestID: "01KB3Z6H9QXW5J8N2R4T6V8Y0A",
			}
			got, err := r.store.Assign(t.Context(), p, nil, r.now, idle)
			if err != nil {
				t.Fatal(err)
			}
			got, err = r.store.Confirm(t.Context(), got, r.now, idle)
			if err != nil {
				t.Fatal(err)
			}
			huge := affinity.Usage{InputTokens: 9_123_456_789, OutputTokens: 912_345_678, CachedTokens: 8_123_456_789, CostNanoUSD: 91_234_567_891_234}
			if err := r.store.AddUsage(t.Context(), got.Ref, huge, r.now, idle); err != nil {
				t.Fatal(err)
			}
			row := r.raw(r.sessions, item{"session_id": str(tt.session), "model_name": str(p.Ref.Model)})
			if n := size(row); n > 1024 || len(row) < 24 {
				t.Errorf("item of %d attributes has %d bytes, want at most 1024", len(row), n)
			} else {
				t.Logf("%d attributes, %d bytes", len(row), n)
			}
		})
	}
}

// S-DB-02, S-DB-03: eight instances and 200 contenders. One claim, one switch, no usage lost.
func TestSDB03ManyInstances(t *testing.T) {
	r := newRig(t)
	stores := make([]*dynamo.Store, 8)
	for i := range stores {
		stores[i] = r.another()
	}
	all := func(do func(store *dynamo.Store, n int) error) (won int) {
		var group sync.WaitGroup
		errs := make([]error, 200)
		for n := range errs {
			group.Go(func() { errs[n] = do(stores[n%len(stores)], n) })
		}
		group.Wait()
		for n, err := range errs {
			switch {
			case err == nil:
				won++
			case !errors.Is(err, affinity.ErrConflict):
				t.Errorf("contender %d: %v", n, err)
			}
		}
		return won
	}
	if won := all(func(store *dynamo.Store, n int) error {
		p := pin("s", fmt.Sprint("p", n%3))
		p.LastSwitchRequestID = fmt.Sprint("r", n)
		_, err := store.Assign(t.Context(), p, nil, r.now, idle)
		return err
	}); won != 1 {
		t.Errorf("%d claims, want 1", won)
	}
	read, err := r.store.Confirm(t.Context(), r.look(pin("s", "").Ref), r.now, idle)
	if err != nil {
		t.Fatal(err)
	}
	if won := all(func(store *dynamo.Store, n int) error {
		if n%2 == 1 { // usage of other requests goes on meanwhile, by clocks that differ
			now := r.now.Add(time.Duration(n-100) * time.Second)
			if err := store.AddUsage(t.Context(), read.Ref, affinity.Usage{InputTokens: 10, OutputTokens: 1}, now, idle); err != nil {
				t.Errorf("AddUsage: %v", err)
			}
			return affinity.ErrConflict
		}
		_, err := store.IncrementSwitch(t.Context(), read, affinity.Move{To: to(fmt.Sprint("q", n%5)), RequestID: fmt.Sprint("r", n), CostNanoUSD: 3}, r.now, idle)
		return err
	}); won != 1 {
		t.Errorf("%d switches, want 1", won)
	}
	got := r.look(read.Ref)
	if got.SwitchCount != 1 || got.SwitchCostNanoUSD != 3 || got.Epoch != 2 || got.Requests != 100 || got.InputTokens != 1000 || got.OutputTokens != 100 {
		t.Errorf("after all: %+v, want one switch and 100 requests", got)
	}
	if want := r.now.Add(99 * time.Second); !got.LastUsedAt.Equal(want) || !got.ExpiresAt.Equal(want.Add(idle)) {
		t.Errorf("last used %v, expires %v, want the latest, %v and %v", got.LastUsedAt, got.ExpiresAt, want, want.Add(idle))
	}
}
