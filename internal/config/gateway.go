package config

import (
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"switchboard/internal/auth"
	"switchboard/internal/gateway"
	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/proxy"
	"switchboard/internal/session"
)

// Gateway yields what the gateway takes from the configuration. The caller adds what lies
// outside: store, aliases, recorder and board, and instead of the declared models those that
// are saved as well. roots are the certificate authorities that
// providers are checked with; nil: the system's. Load has checked it all, so that an error
// means that the configuration was changed since.
func (c *Config) Gateway(logger *slog.Logger, roots *x509.CertPool) (gateway.Options, error) {
	catalog, err := c.Catalog()
	if err != nil {
		return gateway.Options{}, err
	}
	identifier, err := session.New(c.Session, auth.Headers()...)
	if err != nil {
		return gateway.Options{}, err
	}
	transport := proxy.NewTransport(c.Timeouts.Connect)
	transport.TLSClientConfig.RootCAs = roots
	return gateway.Options{
		Catalog: catalog, Identifier: identifier,
		Auth:      auth.New(c.Auth.Open(), c.Auth.Keys),
		Transport: transport, Timeouts: c.Timeouts,
		OnlyVirtual: c.OnlyVirtual,
		MaxAttempts: c.MaxAttempts, MaxBody: c.MaxBody, IdleTTL: c.IdleTTL, Logger: logger,
	}, nil
}

// Logger yields a logger of JSON lines at the configured level; empty is info.
func (c *Config) Logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if c.LogLevel != "" {
		if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
			return nil, fmt.Errorf("log level %q: use debug, info, warn or error", c.LogLevel)
		}
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})), nil
}

// UsesTLS tells whether any provider is called over TLS: without one, nobody needs trusted
// roots, and a start need not load them.
func (c *Config) UsesTLS() bool {
	return slices.ContainsFunc(c.Providers, func(p *provider.Provider) bool { return strings.HasPrefix(p.BaseURL, "https:") })
}

// KeyPrints yields the keys of all providers by their prints, for a shared board.
func (c *Config) KeyPrints() health.Keys {
	keys := make(health.Keys, len(c.Providers))
	for _, p := range c.Providers {
		prints := make(map[string]string, len(p.Keys))
		for _, k := range p.Keys {
			prints[k.ID] = k.Print
		}
		keys[p.Identity] = prints
	}
	return keys
}
