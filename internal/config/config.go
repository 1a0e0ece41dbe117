// Package config turns YAML and environment into one checked value.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
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
	OnlyVirtual   bool // models_endpoint.only_virtual
	MaxAttempts   int
	Timeouts      proxy.Timeouts
	Degrade       health.Settings
	MaxBody       int64 // bytes
	AWS           AWS   // with Source.Function
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

// Open tells whether requests need no client key. With keys in mode iam they need both: the
// signature lets in, the key (in x-api-key: the signature has Authorization) says whose.
func (a Auth) Open() bool {
	return a.Mode == ModeNone || a.Mode == ModeIAM && len(a.Keys) == 0
}

// Source is where configuration comes from. The zero Source reads switchboard.yaml, if it
// is there, and no environment.
type Source struct {
	// Function is what is configured; empty: one machine. On Lambda the environment has to
	// name what the stack has made (Variables), and listen and session_db_path mean nothing;
	// a function that is run elsewhere does listen, but is held to the same rules.
	Function Function
	Path     string // --config or SWITCHBOARD_CONFIG, also ssm:/…; empty: switchboard.yaml if it is there
	Getenv   func(string) string
	Listen   string // --listen, before file and environment
	// SessionDB and LogLevel are the flags --session-db and --log-level, before file and
	// environment; empty when not given.
	SessionDB string
	LogLevel  string
	// Environ lists the environment as os.Environ does, to find SESSION_HEADER_<N> of any
	// N. nil: only N from 1 to 64 are looked for, with Getenv.
	Environ func() []string
	// Secrets resolves ssm:/path and secretsmanager:name#key; nil where there is no AWS. It
	// is called from several goroutines at a time. Its errors show no secret.
	Secrets func(ref string) (string, error)
}

// Catalog indexes the providers and virtual models. Load has checked them, so that an error
// means that they were changed since.
func (c *Config) Catalog() (*route.Catalog, error) {
	return route.NewCatalog(c.Providers, c.Virtuals)
}

const defaultPath = "switchboard.yaml"

// Load reads, checks and resolves. Its error has one line per problem, in the order of the
// file: file:line:column: key: what is wrong; what would be right. No secret is in it.
func Load(src Source) (*Config, error) {
	l := newLoader(src)
	text, found, err := l.open()
	if err != nil {
		return nil, err
	}
	l.readAWS()
	if !found {
		l.prefetch(nil)
	}
	// What is no YAML says nothing, so that nothing can be missing in it.
	if !found || l.readFile(text) {
		l.readEnvironment()
		l.finish(found)
	}
	if err := l.problems.err(l.file, l.secrets); err != nil {
		return nil, err
	}
	return l.cfg, nil
}

// loader carries one Load.
type loader struct {
	src      Source
	getenv   func(string) string
	file     string // as the user named it
	cfg      *Config
	problems problems
	secrets  []string // never to be shown
	doc      document
	resolved map[string]answer // what Source.Secrets answered
	catalogs map[string][]provider.Model

	// Places of what is checked once file and environment are known.
	listenAt, modeAt, keysAt, adminAt place
	fileRules                         []placedRule
	virtualAt                         map[string]place
	baseAt                            map[string]place // by provider identity
	providersGiven                    bool
	translation                       translation
	lambda                            bool     // a Function URL is public, whatever listen says
	carried                           bool     // by the Lambda runtime: nobody listens
	unused                            []string // keys of the file that mean nothing on Lambda

	// offered, for tests, learns every key of the schema that was possible, and whether it
	// was there.
	offered func(path string, present bool)
}

func newLoader(src Source) *loader {
	l := &loader{
		src:       src,
		getenv:    src.Getenv,
		resolved:  map[string]answer{},
		catalogs:  map[string][]provider.Model{},
		virtualAt: map[string]place{},
		baseAt:    map[string]place{},

		translation: newTranslation(),
		cfg: &Config{
			Listen:      "127.0.0.1:8080",
			LogLevel:    "info",
			Session:     session.Settings{Enabled: true, AutoDetect: true, BuiltinRules: true, MaxLength: 200},
			IdleTTL:     6 * time.Hour,
			MaxAttempts: 4,
			Timeouts: proxy.Timeouts{
				Connect: 5 * time.Second, FirstByte: time.Minute,
				FirstByteUnary: 10 * time.Minute, Idle: 2 * time.Minute,
			},
			Degrade: health.Defaults(),
			MaxBody: 32 << 20,
		},
	}
	if l.getenv == nil {
		l.getenv = func(string) string { return "" }
	}
	l.carried = l.getenv("AWS_LAMBDA_FUNCTION_NAME") != "" || l.getenv("AWS_LAMBDA_RUNTIME_API") != ""
	l.lambda = l.carried || src.Function != ""
	if src.Function != "" {
		l.cfg.MaxBody = maxLambdaBody
	}
	return l
}

// open finds the file. That the default one is not there is no error.
func (l *loader) open() (text []byte, found bool, err error) {
	named := " (named by --config)"
	l.file = l.src.Path
	if l.file == "" {
		named = " (named by SWITCHBOARD_CONFIG)"
		l.file = strings.TrimSpace(l.getenv("SWITCHBOARD_CONFIG"))
	}
	isDefault := l.file == ""
	if isDefault {
		named, l.file = "", defaultPath
	}
	if reference(l.file) {
		if l.src.Secrets == nil {
			return nil, false, fmt.Errorf("%s: this only works on AWS%s; name a file", l.file, named)
		}
		remote, err := l.ask(l.file)
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w%s", l.file, err, named)
		}
		return []byte(remote), true, nil
	}
	text, err = os.ReadFile(l.file)
	switch {
	case err == nil:
		return text, true, nil
	case isDefault && errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	}
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err // the path is said already
	}
	return nil, false, fmt.Errorf("%s: %w%s", l.file, err, named)
}

func (l *loader) fail(at place, format string, args ...any) {
	l.problems = append(l.problems, problem{at, fmt.Sprintf(format, args...)})
}

func (l *loader) warn(format string, args ...any) {
	l.cfg.Warnings = append(l.cfg.Warnings, fmt.Sprintf(format, args...))
}
