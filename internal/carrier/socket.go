//go:build !lambdaonly

package carrier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

const (
	// stopGrace is how long running answers may take to finish after the first signal.
	stopGrace = 10 * time.Minute
	// breakBudget is how long handlers that were broken off may take to leave their events.
	breakBudget = 30 * time.Second
)

func serveSocket(ctx context.Context, handler http.Handler, o Options) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", o.Listen, err)
	}
	o.Logger.InfoContext(ctx, "listening", slog.String("address", listener.Addr().String()))
	return ServeListener(ctx, listener, handler, o.Logger)
}

// ServeListener serves until ctx ends. Running answers then get stopGrace to finish; a
// signal after that, or the end of the grace, breaks them off, each with its event. It
// closes listener.
func ServeListener(ctx context.Context, listener net.Listener, handler http.Handler, logger *slog.Logger) error {
	base, breakOff := context.WithCancel(context.WithoutCancel(ctx))
	defer breakOff()
	running := &counted{handler: handler}
	server := &http.Server{
		Handler: running, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	logger.InfoContext(ctx, "stopping: running answers are finished first; a second signal breaks them off")
	again, stop := signal.NotifyContext(base, os.Interrupt, syscall.SIGTERM)
	defer stop()
	grace, cancel := context.WithTimeout(again, stopGrace)
	defer cancel()
	err := server.Shutdown(grace)
	if grace.Err() != nil {
		logger.WarnContext(ctx, "breaking off running answers", slog.Any("cause", grace.Err()))
		breakOff()                // ends the upstream calls
		err = server.Close()      // and the connections of clients that do not read
		running.wait(breakBudget) // each handler leaves its event
	}
	if ended := <-failed; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// counted knows when no request is running any more, which a closed http.Server does not.
type counted struct {
	handler http.Handler
	running sync.WaitGroup
}

func (c *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.running.Add(1)
	defer c.running.Done()
	c.handler.ServeHTTP(w, r)
}

// wait returns when no request is running, or after limit.
func (c *counted) wait(limit time.Duration) {
	none := make(chan struct{})
	go func() {
		c.running.Wait()
		close(none)
	}()
	select {
	case <-none:
	case <-time.After(limit):
	}
}
