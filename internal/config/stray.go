package config

import (
	"context"
	"io"
	"log/slog"
	"strings"
)

// Stray is where a main sends what the standard library writes to its own logger as plain
// text (log.SetFlags(0), log.SetOutput): each line becomes a line of JSON on w. What a line
// quotes is left out, because net/http quotes what an upstream has sent, which may be our key.
func Stray(w io.Writer) io.Writer {
	return stray{slog.New(slog.NewJSONHandler(w, nil))}
}

type stray struct{ logger *slog.Logger }

func (s stray) Write(line []byte) (int, error) {
	text, _, _ := strings.Cut(string(line), `"`)
	s.logger.WarnContext(context.Background(), "said by the standard library", slog.String("cause", strings.TrimSpace(text)))
	return len(line), nil
}
