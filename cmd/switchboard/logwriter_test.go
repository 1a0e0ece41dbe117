package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Lines wait for others, but not long, not when something is wrong, and not at the end.
func TestLogLinesWaitForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := newLogWriter(&out)
		logger, err := newLogger(w, "info")
		if err != nil {
			t.Fatal(err)
		}
		lines := func() int { return strings.Count(out.String(), "\n") }
		check := func(when string, want int) {
			t.Helper()
			w.mu.Lock()
			defer w.mu.Unlock()
			if got := lines(); got != want {
				t.Errorf("%s: %d lines written, want %d", when, got, want)
			}
		}
		logger.InfoContext(t.Context(), "one")
		logger.InfoContext(t.Context(), "two")
		check("at once", 0)
		time.Sleep(logDelay)
		synctest.Wait()
		check("after the delay", 2)
		logger.InfoContext(t.Context(), "three")
		logger.WarnContext(t.Context(), "four")
		check("at a warning", 4)
		logger.InfoContext(t.Context(), strings.Repeat("x", logBatch))
		check("at a full buffer", 5)
		logger.InfoContext(t.Context(), "last")
		w.close()
		check("at the end", 6)
	})
}
