// Command route is the data plane as a Lambda function behind a Function URL: the gateway
// over DynamoDB and Firehose.
package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"switchboard/internal/awsclient"
	"switchboard/internal/carrier"
	"switchboard/internal/config"
	"switchboard/internal/dynamo"
	"switchboard/internal/firehose"
	"switchboard/internal/gateway"
	"switchboard/internal/health"
	signals "switchboard/internal/signal"
	"switchboard/internal/virtual"
)

// warmBudget is how long the first look at the shared state may keep the start waiting: it
// opens the connection that the first request uses.
const warmBudget = time.Second

func main() {
	log.SetFlags(0)
	log.SetOutput(config.Stray(os.Stderr))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := carrier.Run(ctx, os.Getenv, os.Stderr, func() (http.Handler, string, error) { return start(ctx, os.Getenv, os.Stderr) })
	stop()
	os.Exit(code)
}

// start makes everything that outlives a request: clients, roots and connections.
func start(ctx context.Context, getenv func(string) string, stderr io.Writer) (handler http.Handler, listen string, err error) {
	env, err := awsclient.FromEnv(getenv)
	if err != nil {
		return nil, "", err
	}
	cfg, err := config.Load(config.Source{
		Getenv: getenv, Environ: os.Environ, Function: config.Route,
		Secrets: func(ref string) (string, error) { return env.Secret(ctx, ref) },
	})
	if err != nil {
		return nil, "", err
	}
	roots := func() (*x509.CertPool, error) { return nil, nil }
	if cfg.UsesTLS() {
		roots = load(env.Roots)
	}
	logger, err := cfg.Logger(stderr)
	if err != nil {
		return nil, "", err
	}
	for _, warning := range cfg.Warnings {
		logger.WarnContext(ctx, "configuration", slog.String("warning", warning))
	}
	store := dynamo.New(dynamo.NewClient(env.Config("dynamodb")), cfg.AWS.SessionTable, cfg.AWS.StateTable, logger)
	document := store.Document(health.DocumentID)
	board := health.NewShared(cfg.Degrade, document, cfg.KeyPrints(), logger)
	store.Ride(document, board.Due)
	saved := store.Document(virtual.DocumentID)
	models, err := virtual.New(cfg.Providers, cfg.Virtuals, saved, logger)
	if err != nil {
		return nil, "", err
	}
	store.Ride(saved, models.Due)
	told := store.Document(signals.DocumentID)
	table := signals.NewShared(told, logger)
	store.Ride(told, func(now time.Time) bool { return models.For("").Adaptive() && table.Due(now) })
	warm(ctx, store, board, models, table)
	pool, err := roots()
	if err != nil {
		return nil, "", fmt.Errorf("trusted roots: %w", err)
	}
	o, err := cfg.Gateway(logger, pool)
	if err != nil {
		return nil, "", err
	}
	o.Store, o.Aliases, o.Board, o.Catalog, o.Signals = store, store, board, models, table
	o.Recorder = firehose.New(firehose.NewClient(env.Config("firehose")), cfg.AWS.EventsStream, logger)
	return gateway.New(o), cfg.Listen, nil
}

// warm reads the shared state before the first request does. A state that cannot be read
// keeps nobody from starting.
func warm(ctx context.Context, store *dynamo.Store, board *health.Shared, models *virtual.Models, table *signals.Table) {
	ctx, cancel := context.WithTimeout(ctx, warmBudget)
	defer cancel()
	now := time.Now()
	store.Bring(ctx, now)
	board.Refresh(ctx, now)
	models.Refresh(ctx, now)
	if models.For("").Adaptive() {
		table.Refresh(ctx, now)
	}
}

// load begins to read the roots, which takes CPU while the rest of the start waits for the
// network. What it returns waits for them.
func load(read func() (*x509.CertPool, error)) (wait func() (*x509.CertPool, error)) {
	var pool *x509.CertPool
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		pool, err = read()
	}()
	return func() (*x509.CertPool, error) {
		<-done
		return pool, err
	}
}
