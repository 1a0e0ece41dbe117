package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"switchboard/internal/admin"
	"switchboard/internal/auth"
	"switchboard/internal/carrier"
	"switchboard/internal/config"
	"switchboard/internal/gateway"
	"switchboard/internal/health"
	"switchboard/internal/record"
	"switchboard/internal/sqlite"
	"switchboard/internal/virtual"
)

type serveCommand struct {
	Config    string `help:"Configuration file." placeholder:"FILE"`
	Listen    string `help:"Address to listen on." placeholder:"ADDRESS"`
	SessionDB string `name:"session-db" help:"SQLite file that keeps sessions and routing events." placeholder:"FILE"`
	LogLevel  string `help:"debug, info, warn or error." placeholder:"LEVEL"`
	Demo      bool   `help:"Serve two built-in providers instead of configured ones."`
}

// configError is a configuration that stops the start.
type configError struct{ error }

func (e *configError) Unwrap() error { return e.error }

const (
	// closeBudget is how long the store may take to write what is queued.
	closeBudget = 30 * time.Second
	// memoryLimit is soft: below it the collector is lazy, near it it works harder. It holds
	// a hundred paced streams of 100 KB requests.
	memoryLimit = 36 << 20
	// gcPercent trades some of that memory for fewer collections: the live heap is a few MB.
	gcPercent = 300
)

// Run serves until the first signal, then finishes what is under way.
func (c *serveCommand) Run(ctx context.Context, p process) error {
	if c.Demo {
		return c.serveDemo(ctx, p)
	}
	cfg, err := config.Load(config.Source{
		Path: c.Config, Getenv: p.getenv, Environ: p.environ, Listen: c.Listen, SessionDB: c.SessionDB, LogLevel: c.LogLevel,
	})
	if err != nil {
		return &configError{err}
	}
	return c.listen(ctx, p, cfg)
}

// serveDemo serves the built-in providers. Its database lives as long as the process,
// unless --session-db names another.
func (c *serveCommand) serveDemo(ctx context.Context, p process) error {
	dir, providers, stop, err := startDemo()
	if err != nil {
		return err
	}
	defer stop()
	address := c.Listen
	if address == "" {
		address = "127.0.0.1:8080"
	}
	cfg, err := loadDemo(dir, address, providers, p)
	if err != nil {
		return err
	}
	cfg.LogLevel, cfg.SessionDBPath = c.LogLevel, filepath.Join(dir, "sessions.db")
	if c.SessionDB != "" {
		cfg.SessionDBPath = c.SessionDB
	}
	fmt.Fprintf(p.stdout, "switchboard demo: base URL http://%s/v1, models \"demo\" and \"smart\", no key needed\n", address)
	if cfg.Auth.Admin == nil { // a key of its own, for as long as it runs: pages are never open
		key, digest, err := auth.NewKey()
		if err != nil {
			return err
		}
		cfg.Auth.Admin = &digest
		fmt.Fprintf(p.stdout, "dashboard: http://%s/admin/, admin key %s\n", address, key)
	}
	return c.listen(ctx, p, cfg)
}

func (c *serveCommand) listen(ctx context.Context, p process, cfg *config.Config) error {
	logger, err := cfg.Logger(p.stderr)
	if err != nil {
		return &configError{err}
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", cfg.Listen, err)
	}
	defer listener.Close() //nolint:errcheck // Shutdown has closed it by then
	return serve(ctx, p, cfg, logger, listener)
}

// serve runs the data plane on listener over the configured database.
func serve(ctx context.Context, p process, cfg *config.Config, logger *slog.Logger, listener net.Listener) (err error) {
	debug.SetMemoryLimit(memoryLimit)
	debug.SetGCPercent(gcPercent)
	path := cfg.SessionDBPath
	if path == "" {
		home, _ := os.UserHomeDir() //nolint:errcheck // DefaultPath says what is missing
		if path, err = sqlite.DefaultPath(runtime.GOOS, p.getenv, home); err != nil {
			return &configError{err}
		}
	}
	db, err := sqlite.Open(ctx, path, logger)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBudget)
		defer cancel()
		err = errors.Join(err, db.Close(ctx))
	}()
	handler, err := newHandler(cfg, db, db, logger)
	if err != nil {
		return &configError{err}
	}
	for _, warning := range cfg.Warnings {
		logger.WarnContext(ctx, "configuration", slog.String("warning", warning))
	}
	logger.InfoContext(ctx, "listening", slog.String("address", listener.Addr().String()), slog.String("session_db", path))
	return carrier.ServeListener(ctx, listener, handler, logger)
}

// newHandler wires both planes by hand: the admin plane under /admin/, the data plane on
// every other path. Without an admin key there is no admin plane.
func newHandler(cfg *config.Config, db *sqlite.DB, recorder record.Recorder, logger *slog.Logger) (http.Handler, error) {
	o, err := cfg.Gateway(logger, nil)
	if err != nil {
		return nil, err
	}
	models, err := virtual.New(cfg.Providers, cfg.Virtuals, db.Document(virtual.DocumentID), logger)
	if err != nil {
		return nil, err
	}
	board := health.NewBoard(cfg.Degrade)
	o.Store, o.Aliases, o.Recorder, o.Board, o.Catalog = db, db, recorder, board, models
	data := gateway.New(o)
	if cfg.Auth.Admin == nil {
		return data, nil
	}
	control := admin.New(admin.Options{
		Auth: auth.NewAdmin(cfg.Auth.Admin), Providers: cfg.Providers, Health: board, Logger: logger,
		Reader: db, Pins: db, Router: data, IdleTTL: cfg.IdleTTL, Models: models,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/admin" || strings.HasPrefix(r.URL.Path, "/admin/") {
			control.ServeHTTP(w, r)
			return
		}
		data.ServeHTTP(w, r)
	}), nil
}
