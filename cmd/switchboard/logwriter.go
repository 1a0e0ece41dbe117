package main

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// logDelay is how long a line may wait for others, as long as a routing event does.
	logDelay = 20 * time.Millisecond
	// logBatch is how much is written at once.
	logBatch = 64 << 10
)

// logWriter writes log lines in groups, so that a request does not pay for a system call
// of its own. Its owner calls close, which writes what is left.
type logWriter struct {
	to io.Writer

	mu     sync.Mutex
	buffer []byte
	timer  *time.Timer // runs while lines wait
}

func newLogWriter(to io.Writer) *logWriter {
	w := &logWriter{to: to}
	w.timer = time.AfterFunc(logDelay, w.flush)
	return w
}

// Write takes one line.
func (w *logWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.buffer) == 0 {
		w.timer.Reset(logDelay)
	}
	if w.buffer = append(w.buffer, line...); len(w.buffer) >= logBatch {
		w.flushLocked()
	}
	return len(line), nil
}

func (w *logWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushLocked()
}

func (w *logWriter) flushLocked() {
	if len(w.buffer) > 0 {
		w.to.Write(w.buffer) //nolint:errcheck // there is nowhere else to say it
		w.buffer = w.buffer[:0]
	}
}

func (w *logWriter) close() {
	w.timer.Stop()
	w.flush()
}

// promptHandler writes what is worse than INFO at once, with all that came before it.
type promptHandler struct {
	slog.Handler
	writer *logWriter
}

// Handle writes a record.
func (h promptHandler) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if r.Level > slog.LevelInfo {
		h.writer.flush()
	}
	return err
}
