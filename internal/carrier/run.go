package carrier

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
)

// Run is what a function's main does: it makes the handler with start, serves it, and
// returns the exit code. listen is the socket's address where there is no Runtime API. A
// start that fails is told to Lambda and to the log, as is the end of serving.
func Run(ctx context.Context, getenv func(string) string, stderr io.Writer, start func() (handler http.Handler, listen string, err error)) int {
	logger := slog.New(slog.NewJSONHandler(stderr, nil))
	handler, listen, err := start()
	if err != nil {
		err = errors.Join(err, ReportInitError(ctx, getenv, err))
		logger.ErrorContext(ctx, "start failed", slog.Any("cause", err))
		return 1
	}
	if err := Serve(ctx, handler, Options{Getenv: getenv, Listen: listen, Logger: logger}); err != nil {
		logger.ErrorContext(ctx, "stopped", slog.Any("cause", err))
		return 1
	}
	return 0
}
