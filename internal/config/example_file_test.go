package config

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/health"
	"switchboard/internal/proxy"
	"switchboard/internal/session"
)

// exampleKeys are the keys that the example takes from the environment.
func exampleKeys() []string {
	return []string{"OPENAI_API_KEY=k-one", "OPENAI_API_KEY_2=k-two", "ANTHROPIC_API_KEY=k-ant", "AZURE_API_KEY=k-az", "BEDROCK_API_KEY=k-bed"}
}

const exampleFile = "../../config.example.yaml"

// The example says that it shows the defaults; what it shows as an example is left out here.
func TestExampleFileLoadsAndShowsTheDefaults(t *testing.T) {
	c, err := Load(Source{Path: exampleFile, Getenv: env(exampleKeys()...)})
	if err != nil {
		t.Fatalf("Load(%s) = %v", exampleFile, err)
	}
	if len(c.Warnings) > 0 {
		t.Errorf("Load(%s): warnings %q, want none", exampleFile, c.Warnings)
	}
	type scalars struct {
		Listen, LogLevel, Mode string
		Session                session.Settings
		IdleTTL                time.Duration
		MaxAttempts            int
		Timeouts               proxy.Timeouts
		Degrade                health.Settings
		MaxBody                int64
		OnlyVirtual            bool
	}
	of := func(c *Config) scalars {
		s := scalars{c.Listen, c.LogLevel, c.Auth.Mode, c.Session, c.IdleTTL, c.MaxAttempts, c.Timeouts, c.Degrade, c.MaxBody, c.OnlyVirtual}
		s.Session.Headers = nil
		return s
	}
	defaults := newLoader(Source{}).cfg
	defaults.Auth.Mode = ModeKeys
	if diff := cmp.Diff(of(defaults), of(c)); diff != "" {
		t.Errorf("%s differs from the defaults (-default +example):\n%s", exampleFile, diff)
	}
	if _, err := c.Catalog(); err != nil {
		t.Errorf("Catalog() = %v", err)
	}
}

// A key of the schema that the example does not show is not known to anybody.
func TestExampleFileShowsEveryKey(t *testing.T) {
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	shown := offeredKeys(t, string(text))
	for key, present := range shown {
		if !present {
			t.Errorf("%s does not show %s", exampleFile, key)
		}
	}
	if len(shown) < 60 {
		t.Errorf("the schema has %d keys, want at least 60: are they still collected?", len(shown))
	}
}

// Every key of the schema is described in docs/configuration.md.
func TestManualDescribesEveryKey(t *testing.T) {
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	manual, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for key := range offeredKeys(t, string(text)) {
		name := key[strings.LastIndex(key, ".")+1:]
		if !strings.Contains(string(manual), "`"+name+"`") && !strings.Contains(string(manual), "."+name+"`") {
			t.Errorf("docs/configuration.md does not describe %s", key)
		}
	}
	names := []string{
		"SWITCHBOARD_CONFIG", "SWITCHBOARD_LISTEN", "SWITCHBOARD_SESSION_DB", "SWITCHBOARD_LOG_LEVEL", "SWITCHBOARD_ADMIN_KEY",
		"SESSION_KEEPING_ENABLED", "SESSION_AUTO_DETECT", "SESSION_BUILTIN_RULES", "KEEP_ONLY_ALIASES_AT_MODELS_ENDPOINT", "SESSION_HEADER_<N>", "SESSION_HEADER_<N>_TRANSFORM",
		"OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL",
	}
	for _, f := range []Function{Route, Admin} {
		for _, v := range Variables(f) {
			names = append(names, v.Name)
		}
	}
	for _, name := range names {
		if !strings.Contains(string(manual), "`"+name+"`") {
			t.Errorf("docs/configuration.md does not describe %s", name)
		}
	}
}

// offeredKeys lists the keys that a file could have had, with the identities and indexes of
// its own taken out, and whether it has them somewhere.
func offeredKeys(t *testing.T, text string) map[string]bool {
	t.Helper()
	own := strings.NewReplacer("openai-main", "*", "anthropic-main", "*", "azure-main", "*", "bedrock-main", "*", "flex", "*", "priority", "*", "200000", "*",
		"[0]", "[]", "[1]", "[]", "[2]", "[]")
	keys := map[string]bool{}
	l := newLoader(Source{Getenv: env(exampleKeys()...)})
	l.file = exampleFile
	l.offered = func(path string, present bool) {
		path = own.Replace(path)
		keys[path] = keys[path] || present
	}
	l.readFile([]byte(text))
	// A surcharge tier or another service tier shows some of the prices; each is shown once.
	for key := range keys {
		for _, tier := range []string{".service_tiers.*", ".above_input_tokens.*"} {
			if before, after, ok := strings.Cut(key, tier); ok && keys[before+after] {
				keys[key] = true
			}
		}
	}
	return keys
}

// env is a getenv over NAME=value pairs.
func env(pairs ...string) func(string) string {
	set := map[string]string{}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		set[name] = value
	}
	return func(name string) string { return set[name] }
}
