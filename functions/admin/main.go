// Command admin is the admin plane as a Lambda function behind a Function URL.
package main

import (
	"context"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"switchboard/internal/admin"
	"switchboard/internal/affinity"
	"switchboard/internal/athena"
	"switchboard/internal/audit"
	"switchboard/internal/auth"
	"switchboard/internal/awsclient"
	"switchboard/internal/carrier"
	"switchboard/internal/config"
	"switchboard/internal/dynamo"
	"switchboard/internal/gateway"
	"switchboard/internal/health"
	"switchboard/internal/s3log"
	"switchboard/internal/session"
	signals "switchboard/internal/signal"
	"switchboard/internal/virtual"
)

func main() {
	log.SetFlags(0)
	log.SetOutput(config.Stray(os.Stderr))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := carrier.Run(ctx, os.Getenv, os.Stderr, func() (http.Handler, string, error) { return start(ctx, os.Getenv, os.Stderr) })
	stop()
	os.Exit(code)
}

// start makes everything that outlives a request.
func start(ctx context.Context, getenv func(string) string, stderr io.Writer) (handler http.Handler, listen string, err error) {
	env, err := awsclient.FromEnv(getenv)
	if err != nil {
		return nil, "", err
	}
	cfg, err := config.Load(config.Source{
		Getenv: getenv, Environ: os.Environ, Function: config.Admin,
		Secrets: func(ref string) (string, error) { return env.Secret(ctx, ref) },
	})
	if err != nil {
		return nil, "", err
	}
	logger, err := cfg.Logger(stderr)
	if err != nil {
		return nil, "", err
	}
	for _, warning := range cfg.Warnings {
		logger.WarnContext(ctx, "configuration", slog.String("warning", warning))
	}
	store := dynamo.New(dynamo.NewClient(env.Config("dynamodb")), cfg.AWS.SessionTable, cfg.AWS.StateTable, logger)
	board := health.NewShared(cfg.Degrade, store.Document(health.DocumentID), cfg.KeyPrints(), logger)
	o, err := cfg.Gateway(logger, nil)
	if err != nil {
		return nil, "", err
	}
	models, err := virtual.New(cfg.Providers, cfg.Virtuals, store.Document(virtual.DocumentID).Current(), logger)
	if err != nil {
		return nil, "", err
	}
	o.Signals = signals.NewShared(store.Document(signals.DocumentID), logger)
	o.Store, o.Aliases, o.Board, o.Catalog = store, store, board, models // to explain: nothing is served here
	reader, err := openReader(ctx, env, cfg.AWS, store, logger)
	if err != nil {
		return nil, "", err
	}
	return admin.New(admin.Options{
		Auth: auth.NewAdmin(cfg.Auth.Admin), Providers: cfg.Providers, Health: board, Logger: logger, Reader: reader,
		Pins: store, Router: gateway.New(o), IdleTTL: cfg.IdleTTL, Models: models,
	}), cfg.Listen, nil
}

// openReader opens the engine that answers questions about events.
func openReader(ctx context.Context, env *awsclient.Env, from config.AWS, pins *dynamo.Store, logger *slog.Logger) (audit.Reader, error) {
	if from.AuditEngine == config.AuditAthena {
		return athena.New(athena.NewClient(env.Config("athena")), athena.Options{
			Database: from.AthenaDatabase, Workgroup: from.AthenaWorkgroup, Buffer: from.EventsBuffer, Window: inUse(pins), Logger: logger,
		})
	}
	return s3log.Open(ctx, s3log.Options{
		Bucket: s3log.NewS3(s3log.NewClient(env.Config("s3")), from.EventsBucket), Source: from.EventsBucket,
		Dir: filepath.Join(os.TempDir(), "switchboard-events"), Buffer: from.EventsBuffer, Window: inUse(pins), Logger: logger,
	})
}

// inUse finds when a session was in use from its pins, so that only those hours are read. A
// session that came back after its pins had expired is known since then.
func inUse(pins *dynamo.Store) func(ctx context.Context, userPath, sessionID string) (from, to time.Time, ok bool) {
	return func(ctx context.Context, userPath, sessionID string) (from, to time.Time, ok bool) {
		page, err := pins.Pins(ctx, affinity.PinQuery{SessionKey: session.Scope(userPath, sessionID), Limit: audit.MaxLimit}, time.Now())
		if err != nil || page.Next != "" {
			return from, to, false
		}
		for i, pin := range page.Pins {
			if i == 0 || pin.AssignedAt.Before(from) {
				from = pin.AssignedAt
			}
			if pin.LastUsedAt.After(to) {
				to = pin.LastUsedAt
			}
		}
		return from, to, len(page.Pins) > 0
	}
}
