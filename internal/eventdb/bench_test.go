package eventdb_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"zombiezen.com/go/sqlite/sqlitex"

	"switchboard/internal/audit"
	"switchboard/internal/eventdb"
	"switchboard/internal/record"
)

// Compare two versions with: go test -run=- -bench=. -count=8 ./internal/eventdb | benchstat

// load makes n events of about 20 a session, of 200 tenants, over 30 days, in the order of time.
type load struct {
	rand *rand.Rand
	n    int
	each int64 // milliseconds from one to the next
	open [400]record.Event
	left [400]int
	next int
}

func newLoad(n int) *load {
	return &load{rand: rand.New(rand.NewPCG(7, 7)), n: n, each: 30 * 24 * 3600 * 1000 / int64(n)}
}

func (l *load) event(i int) *record.Event {
	s := l.rand.IntN(len(l.open))
	if l.left[s] == 0 {
		l.left[s] = 1 + l.rand.IntN(39)
		tenant := l.rand.IntN(200)
		id := fmt.Sprintf("%08x-1111-4222-8333-%012x", l.rand.Uint32(), l.next)
		l.next++
		l.open[s] = record.Event{
			SessionID: id, SessionKey: fmt.Sprintf("scoped-%016x%016x", l.rand.Uint64(), l.rand.Uint64()), SessionSource: "header:x-session-id",
			UserPath: fmt.Sprintf("/team%d/app%d", tenant/4, tenant), RequestedModel: []string{"smart", "m-big", "m-small"}[l.rand.IntN(3)],
			ModelName: fmt.Sprint("real-big-", l.rand.IntN(3)), Provider: []string{"openai-main", "anthropic-main"}[l.rand.IntN(2)],
			KeyID: fmt.Sprint(l.rand.IntN(2)), DecisionReason: "rank", Affinity: "assigned",
		}
	}
	e := l.open[s]
	l.left[s]--
	l.open[s].DecisionReason, l.open[s].Affinity = "affinity", "pinned"
	e.EventID, e.CreatedAt = fmt.Sprintf("01J%013d%010d", i, l.rand.Uint32()), benchStart+int64(i)*l.each
	e.RequestID, e.APISurface, e.BillingModel, e.Stream = fmt.Sprintf("req_%020d", i), "openai-chat-completions", "pay_as_you_go", true
	e.ResponseStatus, e.Outcome, e.LatencyMillis, e.UsageQuality = 200, record.OutcomeOK, 1000, record.UsageExact
	e.Attempts = []record.Attempt{{Provider: e.Provider, KeyID: e.KeyID, Model: e.ModelName, Status: 200, LatencyMillis: 300}}
	input, output, cost := int64(1000+l.rand.IntN(100_000)), int64(l.rand.IntN(4000)), int64(l.rand.IntN(1_000_000_000))
	e.InputTokens, e.CachedInputTokens, e.CacheWriteTokens, e.OutputTokens = &input, &output, &output, &output
	e.InputCostNanoUSD, e.OutputCostNanoUSD, e.CostNanoUSD, e.TTFTMillis = &cost, &cost, &cost, &output
	if l.rand.IntN(50) == 0 {
		e.ResponseStatus, e.Outcome, e.DecisionReason = 429, record.OutcomeRefused, "unavailable"
	}
	return &e
}

var benchStart = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// fill makes a file of n events. EVENTDB_DIR keeps it for the next run.
func fill(b *testing.B, n int) string {
	b.Helper()
	dir := os.Getenv("EVENTDB_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	path := filepath.Join(dir, fmt.Sprintf("bench-%d.db", n))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	c := openConn(b, path)
	if err := sqlitex.ExecuteScript(c, eventdb.Schema(), nil); err != nil {
		b.Fatal(err)
	}
	in, err := eventdb.NewInserter(c)
	if err != nil {
		b.Fatal(err)
	}
	l := newLoad(n)
	for i := 0; i < n; {
		transact(b, c, func() {
			for end := min(i+20_000, n); i < end; i++ {
				if _, err := in.Insert(l.event(i)); err != nil {
					b.Fatal(err)
				}
			}
			if err := in.Flush(); err != nil {
				b.Fatal(err)
			}
		})
	}
	if err := sqlitex.ExecuteTransient(c, "PRAGMA wal_checkpoint(TRUNCATE)", nil); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkQuestion asks files of 100,000 and 1,000,000 events; the pages of the unfiltered
// lists must not grow with them.
func BenchmarkQuestion(b *testing.B) {
	day := func(n int) time.Time { return time.UnixMilli(benchStart).AddDate(0, 0, n) }
	page := audit.Page{Limit: 50}
	for _, n := range []int{100_000, 1_000_000} {
		path := fill(b, n)
		c := openConn(b, path)
		r := readerOf(c)
		threads, err := r.Threads(b.Context(), audit.Filter{}, audit.Page{Limit: 1, Offset: n / 40})
		if err != nil {
			b.Fatal(err)
		}
		one := audit.Filter{SessionID: threads.Sessions[0].SessionID, UserPath: threads.Sessions[0].UserPath, PathOnly: true}
		for _, filter := range []struct {
			name string
			f    audit.Filter
		}{
			{"all", audit.Filter{}},
			{"session", one},
			{"tenant", audit.Filter{UserPath: "/team7/app29"}},
			{"subtree", audit.Filter{UserPath: "/team7"}},
			{"status=429", audit.Filter{Status: 429}},
			{"status=200", audit.Filter{Status: 200}},
			{"model", audit.Filter{Model: "m-big"}},
			{"provider", audit.Filter{Provider: "openai-main"}},
			{"tenant-status", audit.Filter{UserPath: "/team7", Status: 429}},
			{"day", audit.Filter{From: day(12), To: day(13)}},
			{"week", audit.Filter{From: day(12), To: day(19)}},
			{"30days", audit.Filter{From: day(0), To: day(30)}},
			{"hours", audit.Filter{From: day(12).Add(3 * time.Hour), To: day(12).Add(5 * time.Hour)}},
			{"week-429", audit.Filter{From: day(12), To: day(19), Status: 429}},
		} {
			for _, question := range []struct {
				name string
				ask  func(f audit.Filter) error
			}{
				{"threads", func(f audit.Filter) error { _, err := r.Threads(b.Context(), f, page); return err }},
				{"log", func(f audit.Filter) error { _, err := r.Log(b.Context(), f, page); return err }},
				{"usage", func(f audit.Filter) error { _, err := r.Sessions(b.Context(), f, page); return err }},
				{"summary", func(f audit.Filter) error { _, err := r.Summary(b.Context(), f); return err }},
				{"daily", func(f audit.Filter) error { _, err := r.Daily(b.Context(), f); return err }},
			} {
				b.Run(fmt.Sprintf("%s/%s/events=%d", question.name, filter.name, n), func(b *testing.B) {
					for b.Loop() {
						if err := question.ask(filter.f); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/op")
				})
			}
		}
	}
}

// BenchmarkInsert is what an event costs with its sums, by how many share a transaction.
func BenchmarkInsert(b *testing.B) {
	for _, batch := range []int{1, 16, 256, 50_000} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			c := newConn(b)
			in, err := eventdb.NewInserter(c)
			if err != nil {
				b.Fatal(err)
			}
			l := newLoad(1_000_000)
			events := make([]record.Event, 100_000)
			for i := range events {
				events[i] = *l.event(i)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; {
				transact(b, c, func() {
					for end := min(i+batch, b.N); i < end; i++ {
						e := events[i%len(events)]
						if i >= len(events) {
							e.EventID = fmt.Sprintf("02J%023d", i)
						}
						if _, err := in.Insert(&e); err != nil {
							b.Fatal(err)
						}
					}
					if err := in.Flush(); err != nil {
						b.Fatal(err)
					}
				})
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
