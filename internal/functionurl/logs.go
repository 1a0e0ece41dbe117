package functionurl

import (
	"bytes"
	"io"
	"strconv"
	"sync"
)

// maxLine is the longest part of a line that is held back while its end has not come.
const maxLine = 64 << 10

// logs writes whole lines of all environments to one writer, each behind its number.
type logs struct {
	mu sync.Mutex
	to io.Writer // nil: nowhere
}

func (l *logs) line(environment int, text string) {
	l.write(environment, append([]byte(text), '\n'))
}

func (l *logs) write(environment int, line []byte) {
	if l.to == nil {
		return
	}
	out := make([]byte, 0, len(line)+8)
	out = append(out, '[')
	out = strconv.AppendInt(out, int64(environment), 10)
	out = append(out, "] "...)
	out = append(out, line...)
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.to.Write(out)
}

func (l *logs) writer(environment int) *lineWriter {
	return &lineWriter{logs: l, environment: environment}
}

// lineWriter cuts what one process prints into lines. It never fails: a process must not
// block or die because nobody reads its log.
type lineWriter struct {
	logs        *logs
	environment int
	rest        []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			break
		}
		w.rest = append(w.rest, p[:end+1]...)
		p = p[end+1:]
		w.logs.write(w.environment, w.rest)
		w.rest = w.rest[:0]
	}
	if w.rest = append(w.rest, p...); len(w.rest) >= maxLine {
		w.flush()
	}
	return n, nil
}

// flush writes a line that has no end.
func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.logs.write(w.environment, append(w.rest, '\n'))
		w.rest = w.rest[:0]
	}
}
