package signal

import (
	"fmt"
	"log/slog"
	"testing"

	"switchboard/internal/mem"
)

// Compare with benchstat: go test -bench . -count 10 ./internal/signal > new.txt; benchstat old.txt new.txt

func tables() map[string]*Table {
	return map[string]*Table{"alone": NewTable(), "shared": NewShared(&mem.Cell{}, slog.New(slog.DiscardHandler))}
}

// One attempt is a Begin, an Answered and an End, of which each may take 200 ns.
func BenchmarkObserve(b *testing.B) {
	for name, table := range tables() {
		b.Run(name+"/whole attempt", func(b *testing.B) {
			now := start()
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(1000)
				f := table.Begin(a, true, now)
				f.Answered(now)
				f.End(now)
			}
		})
		b.Run(name+"/answer", func(b *testing.B) {
			now := start()
			f := table.Begin(a, true, now)
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(1000)
				f.counted = false
				f.Answered(now)
			}
		})
		b.Run(name+"/answer, parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				f := table.Begin(a, true, start())
				for pb.Next() {
					f.counted = false
					f.Answered(start())
				}
			})
		})
	}
}

func BenchmarkLoadOf8(b *testing.B) {
	table := NewTable()
	var targets []Target
	for i := range 8 {
		targets = append(targets, Target{fmt.Sprint("provider-", i), "some-model"})
		answers(table, targets[i], true, 0, 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		v := table.View(after(2))
		for i := range targets {
			v.Load(targets[i], true)
		}
	}
}
