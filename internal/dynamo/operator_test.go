package dynamo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"switchboard/internal/affinity"
	"switchboard/internal/affinity/affinitytest"
)

func TestOperatorKeepsTheContract(t *testing.T) {
	affinitytest.RunOperator(t, func(t *testing.T) (affinitytest.Stores, affinity.Operator) {
		deviates(t)
		r := newRig(t)
		return affinitytest.Stores{Store: r.store, Aliases: r.store, Peer: r.another()}, r.store
	})
}

// A known session is one Query of its partition; only without one the table is scanned.
func TestPinsCalls(t *testing.T) {
	r := newRig(t)
	r.serve("s1", "A")
	for _, tt := range []struct {
		q    affinity.PinQuery
		want string
	}{
		{affinity.PinQuery{SessionKey: "s1", Limit: 10}, "[Query]"},
		{affinity.PinQuery{SessionKey: "s1", Model: "m", UserPath: "/team", ClientSessionID: "s1", Limit: 10}, "[Query]"},
		{affinity.PinQuery{ClientSessionID: "s1", Limit: 10}, "[Scan]"},
		{affinity.PinQuery{Limit: 10}, "[Scan]"},
	} {
		r.wire.reset()
		page, err := r.store.Pins(r.Context(), tt.q, r.now)
		if got := fmt.Sprint(r.wire.calls()); err != nil || len(page.Pins) != 1 || got != tt.want {
			t.Errorf("Pins(%+v) = %d pins, %v, by %s, want one by %s", tt.q, len(page.Pins), err, got, tt.want)
		}
	}
}

// One call makes a bounded number of requests, whatever fits, and the next goes on.
func TestPinsAreBounded(t *testing.T) {
	r := newRig(t)
	const rows = 2600
	for i := range rows {
		id, path := fmt.Sprintf("s%04d", i), "/common"
		if i == rows-1 {
			path = "/rare"
		}
		r.write(r.sessions, item{
			"session_id": &types.AttributeValueMemberS{Value: id}, "model_name": &types.AttributeValueMemberS{Value: "m"},
			"provider_identity": &types.AttributeValueMemberS{Value: "A"}, "user_path": &types.AttributeValueMemberS{Value: path},
			"expires_at": &types.AttributeValueMemberN{Value: fmt.Sprint(r.now.Unix() + 60)},
		})
	}
	q, pages, found := affinity.PinQuery{UserPath: "/rare", Limit: 10}, 0, 0
	for {
		r.wire.reset()
		page, err := r.store.Pins(r.Context(), q, r.now)
		if err != nil {
			t.Fatal(err)
		}
		if calls := len(r.wire.calls()); calls > 4 {
			t.Errorf("%d requests for one page", calls)
		}
		pages, found = pages+1, found+len(page.Pins)
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	if found != 1 || pages < 2 {
		t.Errorf("%d pins on %d pages, want one, on several", found, pages)
	}
}

// Ids that are too long for a key, or look hashed, are listed by their names and can be cleared.
func TestPinsOfHashedNames(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{strings.Repeat("x", 300), "sha256:abc", "s1"} {
		r.serve(id, "A")
	}
	page, err := r.store.Pins(r.Context(), affinity.PinQuery{Limit: 10}, r.now)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, pin := range page.Pins {
		got = append(got, pin.SessionKey)
		if err := r.store.Clear(r.Context(), pin); err != nil {
			t.Errorf("Clear(%.20q): %v", pin.SessionKey, err)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"s1", "sha256:abc", strings.Repeat("x", 300)}, got); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
}

// A row that was written by hand, with what matters alone, is listed and cleared.
func TestClearOfASparseRow(t *testing.T) {
	r := newRig(t)
	r.write(r.sessions, item{
		"session_id": &types.AttributeValueMemberS{Value: "s1"}, "model_name": &types.AttributeValueMemberS{Value: "m"},
		"provider_identity": &types.AttributeValueMemberS{Value: "A"},
		"expires_at":        &types.AttributeValueMemberN{Value: fmt.Sprint(r.now.Unix() + 60)},
	})
	page, err := r.store.Pins(r.Context(), affinity.PinQuery{Limit: 10}, r.now)
	if err != nil || len(page.Pins) != 1 {
		t.Fatalf("Pins = %+v, %v, want one", page, err)
	}
	if err := r.store.Clear(r.Context(), page.Pins[0]); err != nil {
		t.Errorf("Clear: %v", err)
	}
}
