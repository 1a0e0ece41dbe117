// Package config turns YAML and environment into one checked value.
package config

import (
	"time"

	"switchboard/internal/auth"
	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/proxy"
	"switchboard/internal/route"
	"switchboard/internal/session"
)

// Config is the whole configuration, checked, with secrets resolved.
type Config struct {
	Listen        string
	SessionDBPath string // empty: the platform's default
	LogLevel      string // debug, info, warn, error
	Auth          Auth
	Session       session.Settings
	IdleTTL       time.Duration // session.idle_ttl
	Providers     []*provider.Provider
	Virtuals      []route.Virtual
	MaxAttempts   int
	Timeouts      proxy.Timeouts
	Degrade       health.Settings
	MaxBody       int64
	// Warnings are for the log at start: an api key whose variable is empty, a provider
	// without a usable key. Never a secret.
	Warnings []string
}

// Auth says who may call.
type Auth struct {
	Mode  string // keys, none, iam
	Keys  []auth.Key
	Admin *[32]byte // digest of the admin key; nil: the admin API is off
}

// Source is where configuration comes from.
type Source struct {
	Path   string // --config or SWITCHBOARD_CONFIG; empty: switchboard.yaml if it is there
	Getenv func(string) string
	Listen string // --listen, before file and environment
}

// Load reads, checks and resolves. Its error says file, line, column, key and what would be right.
func Load(src Source) (*Config, error) { panic("todo") }
