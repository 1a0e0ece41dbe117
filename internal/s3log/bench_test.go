package s3log

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

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
		session := random.IntN(n/10 + 1)
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
				events.reset()
			}
		}
		if read != n {
			b.Fatalf("read %d events of %d", read, n)
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
