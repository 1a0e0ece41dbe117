package dynamo_test

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"switchboard/internal/dynamo"
	"switchboard/internal/shared"
)

func (r *rig) loads(d *dynamo.Document, want string, version int64) {
	r.Helper()
	data, got, err := d.Load(r.Context())
	if err != nil || string(data) != want || got != version || want == "" && data != nil {
		r.Fatalf("Load = %q, %d, %v, want %q, %d", data, got, err, want, version)
	}
}

func (r *rig) swaps(d *dynamo.Document, data string, version int64) {
	r.Helper()
	if err := d.Swap(r.Context(), []byte(data), version, time.Now().Add(time.Hour)); err != nil {
		r.Fatalf("Swap(%q, %d): %v", data, version, err)
	}
}

func (r *rig) losesSwap(d *dynamo.Document, data string, version int64) {
	r.Helper()
	if err := d.Swap(r.Context(), []byte(data), version, time.Now().Add(time.Hour)); !errors.Is(err, shared.ErrChanged) {
		r.Fatalf("Swap(%q, %d): %v, want ErrChanged", data, version, err)
	}
}

func (r *rig) wantCalls(want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.wire.calls()); diff != "" {
		r.Errorf("calls (-want +got):\n%s", diff)
	}
	r.wire.reset()
}

func TestDocument(t *testing.T) {
	r := newRig(t)
	mine, theirs, other := r.store.Document("health"), r.another().Document("health"), r.store.Document("other")
	r.loads(mine, "", 0)
	r.losesSwap(mine, "x", 7)
	r.swaps(mine, "one", 0)
	r.loads(mine, "one", 1)
	r.loads(theirs, "one", 1)
	r.loads(other, "", 0)
	r.losesSwap(theirs, "x", 0)
	r.losesSwap(theirs, "x", 2)
	r.swaps(theirs, "two", 1)
	r.losesSwap(mine, "x", 1)
	r.loads(mine, "two", 2)
	r.swaps(mine, "", 2)
	data, version, err := theirs.Load(t.Context())
	if err != nil || len(data) != 0 || version != 3 {
		t.Errorf("Load of an empty document = %q, %d, %v, want version 3", data, version, err)
	}
}

// A lost Swap brings what it was measured against: the Load after it costs nothing. The one
// after that asks again.
func TestLostSwapAnswersTheNextLoad(t *testing.T) {
	r := newRig(t)
	mine, theirs := r.store.Document("health"), r.another().Document("health")
	r.swaps(theirs, "one", 0)
	r.wire.reset()
	r.losesSwap(mine, "x", 0)
	r.loads(mine, "one", 1)
	r.wantCalls("PutItem")
	r.swaps(theirs, "two", 1)
	r.loads(mine, "two", 2)
	r.wantCalls("PutItem", "GetItem")
}

// A document that has expired is none, whether or not it is still there, and its versions
// start anew: somebody who holds one of its former life may not take it for that.
func TestDocumentExpires(t *testing.T) {
	r := newRig(t)
	old, mine := r.another().Document("health"), r.store.Document("health")
	past := time.Now().Add(-time.Second)
	if err := old.Swap(t.Context(), []byte("one"), 0, past); err != nil {
		t.Fatal(err)
	}
	r.loads(mine, "", 0)
	r.swaps(mine, "another one", 0)
	r.loads(mine, "another one", 1)
	r.losesSwap(old, "x", 1)
	r.loads(old, "another one", 1)
}

// A read that is behind what is known is made again, consistently.
func TestLoadIsNeverBehindOurselves(t *testing.T) {
	r := newRig(t)
	d := r.store.Document("health")
	r.swaps(d, "one", 0)
	row := r.raw(r.state, item{"id": str("document:health")})
	r.swaps(d, "two", 1)
	now := r.raw(r.state, item{"id": str("document:health")})
	r.write(r.state, row) // as a replica that is behind shows it
	r.wire.breaks(func(_ string, n int) broken {
		if n == 2 {
			r.write(r.state, now)
		}
		return broken{}
	})
	r.loads(d, "two", 2)
}

func TestMalformedDocument(t *testing.T) {
	good := item{"id": str("document:health"), "data": &types.AttributeValueMemberB{Value: []byte("x")}, "version": num("3"), "expires_at": num("4000000000"), "writer": str("w")}
	for _, tt := range []struct {
		column  string
		value   types.AttributeValue
		version int64 // what Load says, and Swap needs
	}{
		{"version", str("3"), 0},
		{"version", num("-1"), 0},
		{"version", num("1.5"), 0},
		{"version", nil, 0},
		{"expires_at", str("never"), 0},
		{"expires_at", nil, 0},
		{"writer", num("1"), 0},
		{"data", str("x"), 3},
		{"data", nil, 3},
	} {
		t.Run(fmt.Sprint(tt.column, tt.value), func(t *testing.T) {
			r := newRig(t)
			row := item{}
			for column, value := range good {
				row[column] = value
			}
			if row[tt.column] = tt.value; tt.value == nil {
				delete(row, tt.column)
			}
			r.write(r.state, row)
			d := r.store.Document("health")
			r.loads(d, "", tt.version)
			r.loads(d, "", tt.version)
			if lines := r.log.lines(); len(lines) != 1 {
				t.Errorf("logged %d times, want once: %v", len(lines), lines)
			}
			r.swaps(d, "new", tt.version)
			r.loads(r.another().Document("health"), "new", tt.version+1)
		})
	}
}

// Of racing Swaps of one version exactly one succeeds, also when they write the same.
func TestSwapHasOneWinner(t *testing.T) {
	for name, data := range map[string]func(n int) string{
		"equal":     func(int) string { return "lease" },
		"different": func(n int) string { return fmt.Sprint("lease of ", n) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			documents := make([]*dynamo.Document, 8)
			for i := range documents {
				documents[i] = r.another().Document("health")
			}
			var group sync.WaitGroup
			errs := make([]error, 200)
			for n := range errs {
				group.Go(func() {
					errs[n] = documents[n%len(documents)].Swap(t.Context(), []byte(data(n)), 0, time.Now().Add(time.Hour))
				})
			}
			group.Wait()
			won := -1
			for n, err := range errs {
				switch {
				case err == nil && won >= 0:
					t.Errorf("contenders %d and %d both won", won, n)
				case err == nil:
					won = n
				case !errors.Is(err, shared.ErrChanged):
					t.Errorf("contender %d: %v", n, err)
				}
			}
			if won < 0 {
				t.Fatal("nobody won")
			}
			r.loads(r.store.Document("health"), data(won), 1)
		})
	}
}

// A Swap of which no answer came is recognised when the same Document repeats it, and only
// then: another's equal Swap is another's.
func TestRepeatedSwapIsOurs(t *testing.T) {
	r := newRig(t)
	mine, theirs := r.store.Document("health"), r.another().Document("health")
	r.wire.breaks(always(broken{after: syscall.ECONNRESET}))
	if err := mine.Swap(t.Context(), []byte("lease"), 0, time.Now().Add(time.Hour)); !errors.Is(err, dynamo.ErrUnavailable) {
		t.Fatalf("Swap = %v, want ErrUnavailable", err)
	}
	r.wire.reset()
	r.losesSwap(theirs, "lease", 0)
	r.swaps(mine, "lease", 0)
	r.loads(mine, "lease", 1)
}
