package health_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/health"
	"switchboard/internal/mem"
)

// S-DB-04c: a cell that is slow for one report keeps no other request longer than its own time,
// not for a trial and not for what it has to tell.
func TestSDB04SlowCellKeepsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := false
		cell := &mem.Cell{Fault: func(op string) (bool, error) {
			if slow && op == mem.OpSwap {
				time.Sleep(time.Minute) // of the bubble
			}
			return true, nil
		}}
		one := newInstance(cell, prints())
		one.reports(outcome(health.RateLimited), time.Now())
		time.Sleep(2 * time.Minute) // now it is on trial
		slow = true
		other := health.Outcome{Provider: "B", KeyID: "k1", Model: "m1", Class: health.NoCredit}
		one.Report(other, time.Now())
		go one.Share(context.Background(), time.Now())
		synctest.Wait()

		within := func(do func(ctx context.Context)) time.Duration {
			ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
			defer cancel()
			began := time.Now()
			do(ctx)
			return time.Since(began)
		}
		won := false
		probe := func(ctx context.Context) { won = one.Probe(ctx, "A", "k1", "m1", time.Now(), lease) }
		if took := within(probe); took > 250*time.Millisecond || !won {
			t.Errorf("Probe() = %t after %v, want a lease of its own after 250ms", won, took)
		}
		if probe(t.Context()); won {
			t.Error("Probe() gave the lease twice")
		}
		if took := within(func(ctx context.Context) { one.Share(ctx, time.Now()) }); took > 250*time.Millisecond {
			t.Errorf("Share() took %v, want 250ms", took)
		}
		if !one.Pending() {
			t.Error("Pending() = false, want what is not shared yet kept")
		}
		time.Sleep(2 * time.Minute)
		if got := newInstance(cell, prints()).sees(other, time.Now()).Class; got != health.NoCredit {
			t.Errorf("the others see %q, want no_credit", got)
		}
	})
}

// S-DB-04a: a document that cannot be read is logged whole, once, though it is read every second.
func TestSDB04MalformedDocumentIsLoggedOnce(t *testing.T) {
	cell, now := &mem.Cell{}, start()
	var log bytes.Buffer
	board := health.NewShared(health.Defaults(), cell, prints(), slog.New(slog.NewJSONHandler(&log, nil)))
	for version, text := range []string{`{"first`, `{"second`} {
		if err := cell.Swap(t.Context(), []byte(text), int64(version), now); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			now = now.Add(time.Second)
			board.Refresh(t.Context(), now)
		}
		if got := bytes.Count(log.Bytes(), []byte("\n")); got != version+1 {
			t.Errorf("after %s: %d lines, want %d:\n%s", text, got, version+1, log.String())
		}
	}
}
