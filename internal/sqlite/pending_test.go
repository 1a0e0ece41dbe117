package sqlite

import (
	"testing"
	"time"

	"switchboard/internal/affinity"
)

// The turn after the last one, however soon, knows what a switch would resend.
func TestLookupKnowsTheLastInputBeforeItIsWritten(t *testing.T) {
	db, err := Open(t.Context(), t.TempDir()+"/sessions.db", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close(t.Context()) }) //nolint:errcheck // closed for its goroutine
	ref := affinity.Ref{SessionKey: "s", Model: "m"}
	now := time.Now()
	if _, err := db.Assign(t.Context(), affinity.Pin{Ref: ref, Served: true}, nil, now, time.Hour); err != nil {
		t.Fatal(err)
	}
	for turn := int64(1); turn <= 50; turn++ {
		if err := db.AddUsage(t.Context(), ref, affinity.Usage{InputTokens: turn}, now, time.Hour); err != nil {
			t.Fatal(err)
		}
		if pin, err := db.Lookup(t.Context(), ref, now); err != nil || pin.LastInputTokens != turn {
			t.Fatalf("Lookup() = %d last input tokens, %v, want %d", pin.LastInputTokens, err, turn)
		}
	}
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pin, err := db.Lookup(t.Context(), ref, now); err != nil || pin.LastInputTokens != 50 || len(db.usage.byKey) != 0 {
		t.Errorf("Lookup() = %d, %v with %d pending, want 50 and none", pin.LastInputTokens, err, len(db.usage.byKey))
	}
}
