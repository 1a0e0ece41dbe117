package s3log

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"switchboard/internal/audit"
	"switchboard/internal/record"
)

// eventLines writes n events as a recorder does, in sessions of about ten.
func eventLines(n int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	number := func(most int64) *int64 {
		v := random.Int64N(most)
		return &v
	}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	for i := range n {
		session := (i + random.IntN(3000)) / 10 // some hundreds go on at the same time
		e := record.Event{
			EventID: fmt.Sprintf("01KA%022d", i), CreatedAt: 1772323200000 + int64(i)*10, RequestID: fmt.Sprintf("req_%016x%016x", random.Uint64(), random.Uint64()),
			SessionID: fmt.Sprintf("%08x-0000-4000-8000-%012x", session, session), SessionKey: fmt.Sprintf("scoped-%032x", session), SessionSource: "header:x-session-id",
			UserPath: fmt.Sprintf("/team/app%d", session%7), APISurface: "openai-chat-completions", RequestedModel: "smart", ModelName: "m-big",
			Provider: "openai-main", KeyID: "1", BillingModel: "pay_as_you_go", DecisionReason: "affinity", SwitchCount: number(2),
			Attempts: []record.Attempt{{Provider: "openai-main", KeyID: "1", Model: "m-big", Status: 200, LatencyMillis: *number(1000)}},
			Stream:   true, InputTokens: number(100000), CachedInputTokens: number(10000), CacheWriteTokens: number(10), OutputTokens: number(1000), ReasoningTokens: number(10),
			UsageQuality: record.UsageExact, InputCostNanoUSD: number(1e6), OutputCostNanoUSD: number(1e6), CostNanoUSD: number(1e7),
			ResponseStatus: 200, Outcome: record.OutcomeOK, TTFTMillis: number(1000), LatencyMillis: *number(10000), Affinity: "pinned",
		}
		if err := encoder.Encode(&e); err != nil {
			panic(err)
		}
	}
	return lines.Bytes()
}

func zipped(data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(data)
	w.Close()
	return out.Bytes()
}

// BenchmarkRecords reads events out of one object: with gunzip, without the database.
func BenchmarkRecords(b *testing.B) {
	const n = 20_000
	object := zipped(eventLines(n))
	b.ReportAllocs()
	events := newBatch()
	for b.Loop() {
		r, err := gzip.NewReader(bytes.NewReader(object))
		if err != nil {
			b.Fatal(err)
		}
		s := newRecords(r, nil)
		read := 0
		for {
			more, err := s.next(events)
			if err != nil {
				b.Fatal(err)
			}
			if !more {
				break
			}
			read++
			if events.full() {
				events.seal()
				events.reset()
			}
		}
		if read != n {
			b.Fatalf("read %d events of %d", read, n)
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// benchShelf has n events in objects of a minute's events each, from 00:00 on.
func benchShelf(n, objects int) *shelf {
	s := newShelf()
	all := bytes.SplitAfter(eventLines(n), []byte("\n"))
	all = all[:n]
	per := n / objects
	for i := range objects {
		key := fmt.Sprintf("events/dt=2026-03-01/hour=%02d/stream-1-%06d.gz", i*24/objects, i)
		s.put(key, string(zipped(bytes.Join(all[i*per:(i+1)*per], nil))))
	}
	return s
}

// BenchmarkLoad loads a day of events into a new file: everything from LIST to COMMIT.
//
// It measures the processor time of the whole process, so that "per core" is what it says.
// Compare with benchstat over -count 6.
func BenchmarkLoad(b *testing.B) {
	for _, tt := range []struct {
		name       string
		n, objects int
	}{{"100k_in_100", 100_000, 100}, {"100k_in_1440", 100_800, 1440}, {"1M_in_1000", 1_000_000, 1000}} {
		b.Run(tt.name, func(b *testing.B) {
			s := benchShelf(tt.n, tt.objects)
			b.ReportAllocs()
			var busy time.Duration
			for b.Loop() {
				b.StopTimer()
				r := open(b, Options{Bucket: s, Now: newClock("2026-03-01 23:59:50").Now, Patience: time.Minute})
				b.StartTimer()
				before := processorTime(b)
				answer, err := r.Summary(b.Context(), audit.Filter{})
				if err != nil || answer.Requests != int64(tt.n) || !answer.Complete {
					b.Fatalf("Summary = %+v, %v", answer, err)
				}
				busy += processorTime(b) - before
			}
			total := float64(tt.n) * float64(b.N)
			b.ReportMetric(total/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(total/busy.Seconds(), "events/s/core")
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkColdPage is a cold start over 10,000 events: from no file to the first page.
func BenchmarkColdPage(b *testing.B) {
	s := benchShelf(10_080, 1440)
	for b.Loop() {
		r, err := Open(b.Context(), Options{Bucket: s, Dir: b.TempDir(), Now: newClock("2026-03-01 23:59:50").Now})
		if err != nil {
			b.Fatal(err)
		}
		answer, err := r.Threads(b.Context(), audit.Filter{}, audit.Page{Limit: 50})
		if err != nil || len(answer.Sessions) != 50 || !answer.Complete {
			b.Fatalf("Threads = %d, %+v, %v", len(answer.Sessions), answer.Coverage, err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWarm is what the cache adds to a question that it has the events of.
func BenchmarkWarm(b *testing.B) {
	s := benchShelf(10_080, 1440)
	r := open(b, Options{Bucket: s, Now: newClock("2026-03-01 23:59:50").Now})
	for name, ask := range map[string]func() error{
		"threads": func() error { _, err := r.Threads(b.Context(), audit.Filter{}, audit.Page{Limit: 50}); return err },
		"daily":   func() error { _, err := r.Daily(b.Context(), audit.Filter{}); return err },
	} {
		if err := ask(); err != nil {
			b.Fatal(err)
		}
		s.calls()
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := ask(); err != nil {
					b.Fatal(err)
				}
			}
		})
		if lists, gets := s.calls(); len(lists)+len(gets) > 0 {
			b.Errorf("warm questions listed %v and read %v", lists, gets)
		}
	}
}
