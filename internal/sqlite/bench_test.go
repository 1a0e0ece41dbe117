package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/record"
)

// Compare two versions with: go test -run=- -bench=. -count=8 ./internal/sqlite | benchstat

const benchIdle = 6 * time.Hour

var benchNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func benchDB(b *testing.B) *DB {
	b.Helper()
	db, err := Open(b.Context(), filepath.Join(b.TempDir(), "sessions.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return db
}

func benchPin(n int) affinity.Pin {
	return affinity.Pin{
		Ref:             affinity.Ref{SessionKey: fmt.Sprintf("scoped-%032x", n), Model: "m-big"},
		Target:          affinity.Target{Provider: "openai-main", KeyID: "second", KeyPrint: "0123456789abcdef", Model: "real-big-1", Surface: "openai-chat-completions"},
		UserPath:        "/team/alpha",
		ClientSessionID: "2b0e1c9e-6f3a-4b57-9d0e-0c2f6f0d7b11",
	}
}

func benchEvent(n int) *record.Event {
	tokens, cost := int64(1200), int64(4_500_000)
	return &record.Event{
		EventID: fmt.Sprintf("01J%023d", n), CreatedAt: benchNow.UnixMilli() + int64(n), RequestID: "req-1",
		SessionID: "2b0e1c9e-6f3a-4b57-9d0e-0c2f6f0d7b11", SessionKey: fmt.Sprintf("scoped-%032x", n%1000),
		SessionSource: "header:x-session-id", UserPath: "/team/alpha", APISurface: "openai-chat-completions",
		RequestedModel: "m-big", ModelName: "real-big-1", Provider: "openai-main", KeyID: "second",
		BillingModel: "pay_as_you_go", DecisionReason: "affinity", Stream: true,
		Attempts:    []record.Attempt{{Provider: "openai-main", KeyID: "second", Model: "real-big-1", Status: 200, LatencyMillis: 300}},
		InputTokens: &tokens, OutputTokens: &tokens, CostNanoUSD: &cost, UsageQuality: record.UsageExact,
		ResponseStatus: 200, Outcome: record.OutcomeOK, LatencyMillis: 1000, Affinity: "pinned",
	}
}

// BenchmarkLookup is what every request with a session pays before its upstream call.
func BenchmarkLookup(b *testing.B) {
	db := benchDB(b)
	const rows = 10_000
	refs := make([]affinity.Ref, rows)
	for n := range rows {
		pin := benchPin(n)
		refs[n] = pin.Ref
		if _, err := db.Assign(b.Context(), pin, nil, benchNow, benchIdle); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if _, err := db.Lookup(b.Context(), refs[n*7919%rows], benchNow); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAssign is what a session's first request pays: one committed transaction.
func BenchmarkAssign(b *testing.B) {
	db := benchDB(b)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if _, err := db.Assign(b.Context(), benchPin(n), nil, benchNow, benchIdle); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAddUsageRecord is a finished request's book-keeping, until it is committed.
func BenchmarkAddUsageRecord(b *testing.B) {
	db := benchDB(b)
	for n := range 1000 {
		if _, err := db.Assign(b.Context(), benchPin(n), nil, benchNow, benchIdle); err != nil {
			b.Fatal(err)
		}
	}
	refs := make([]affinity.Ref, 1000)
	for n := range refs {
		refs[n] = benchPin(n).Ref
	}
	usage := affinity.Usage{InputTokens: 1200, OutputTokens: 80, CachedTokens: 1000, CostNanoUSD: 4_500_000}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if err := db.AddUsage(b.Context(), refs[n%1000], usage, benchNow, benchIdle); err != nil {
			b.Fatal(err)
		}
		if err := db.Record(b.Context(), benchEvent(n)); err != nil {
			b.Fatal(err)
		}
		n++
	}
	if err := db.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkOpen is what the store adds to the start of the process, by the number of
// events in the file: a small file is checked as a whole.
func BenchmarkOpen(b *testing.B) {
	for _, events := range []int{0, 200, 50_000} {
		b.Run(fmt.Sprintf("events=%d", events), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "sessions.db")
			db, err := Open(b.Context(), path, nil)
			if err != nil {
				b.Fatal(err)
			}
			for n := range events {
				if err := db.Record(b.Context(), benchEvent(n)); err != nil {
					b.Fatal(err)
				}
			}
			if err := db.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				db, err := Open(b.Context(), path, nil)
				if err != nil {
					b.Fatal(err)
				}
				if err := db.Close(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
