package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/provider"
	"switchboard/internal/session"
)

// nowhere makes a directory without a switchboard.yaml the current one.
func nowhere(t *testing.T) { t.Chdir(t.TempDir()) }

func TestFlagBeatsEnvironmentBeatsFileBeatsDefault(t *testing.T) {
	file := complete("listen: 127.0.0.1:2\nsession_db_path: file.db\nlog_level: warn\nsession: {enabled: false, auto_detect: false, builtin_rules: true}\n")
	path := filepath.Join(t.TempDir(), "switchboard.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	vars := []string{
		"SWITCHBOARD_LISTEN=127.0.0.1:3", "SWITCHBOARD_SESSION_DB=env.db", "SWITCHBOARD_LOG_LEVEL=error",
		"SESSION_KEEPING_ENABLED=true", "SESSION_AUTO_DETECT=1", "SESSION_BUILTIN_RULES=0",
	}
	type settings struct {
		Listen, DB, Level           string
		Enabled, AutoDetect, Builti bool
	}
	tests := []struct {
		name string
		src  Source
		want settings
	}{
		{"file", Source{Path: path, Getenv: env("K=k")}, settings{"127.0.0.1:2", "file.db", "warn", false, false, true}},
		{"environment", Source{Path: path, Getenv: env(append(vars, "K=k")...)}, settings{"127.0.0.1:3", "env.db", "error", true, true, false}},
		{
			"flags",
			Source{Path: path, Getenv: env(append(vars, "K=k")...), Listen: "127.0.0.1:4", SessionDB: "flag.db", LogLevel: "debug"},
			settings{"127.0.0.1:4", "flag.db", "debug", true, true, false},
		},
		{"file named by the environment", Source{Getenv: env("K=k", "SWITCHBOARD_CONFIG="+path)}, settings{"127.0.0.1:2", "file.db", "warn", false, false, true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Load(tt.src)
			if err != nil {
				t.Fatal(err)
			}
			got := settings{c.Listen, c.SessionDBPath, c.LogLevel, c.Session.Enabled, c.Session.AutoDetect, c.Session.BuiltinRules}
			if got != tt.want {
				t.Errorf("Load = %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestEnvironmentOnlyStart(t *testing.T) {
	nowhere(t)
	c, err := Load(Source{Getenv: env("OPENAI_API_KEY=one", "OPENAI_API_KEY_2=two", "ANTHROPIC_API_KEY=three",
		"OPENAI_BASE_URL=http://127.0.0.1:9/oai/v1/", "ANTHROPIC_BASE_URL=http://127.0.0.1:9")})
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:8080" || c.Auth.Mode != ModeNone || c.Auth.Admin != nil || c.SessionDBPath != "" {
		t.Errorf("Load = %+v, want the defaults with mode none on loopback", c)
	}
	var got [][]string
	for _, p := range c.Providers {
		row := []string{p.Identity, p.Type, p.BaseURL}
		for _, k := range p.Keys {
			row = append(row, k.ID, k.Text)
		}
		got = append(got, row)
		vendor, _ := provider.VendorOf(p.Type)
		if !cmp.Equal(p.Models, provider.CatalogModels(vendor)) || !cmp.Equal(p.Surfaces, vendor.Surfaces) {
			t.Errorf("provider %s: models or surfaces are not the vendor's", p.Identity)
		}
	}
	want := [][]string{
		{"openai", "openai", "http://127.0.0.1:9/oai/v1", "1", "one", "2", "two"},
		{"anthropic", "anthropic", "http://127.0.0.1:9/v1", "1", "three"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Providers (-want +got):\n%s", diff)
	}
}

func TestFileWithoutProvidersTakesThemFromTheEnvironment(t *testing.T) {
	c, err := loadText(t, goodAuth, "OPENAI_API_KEY=one")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Providers) != 1 || c.Providers[0].Identity != "openai" || c.Auth.Mode != ModeKeys {
		t.Errorf("Load = %+v, want openai and mode keys", c)
	}
}

func TestBadEnvironment(t *testing.T) {
	nowhere(t)
	tests := []struct {
		name string
		src  Source
		vars []string
		want string
	}{
		{name: "nothing", want: "environment: providers: no provider; set OPENAI_API_KEY, ANTHROPIC_API_KEY or the key of another type, write a switchboard.yaml, or try it with --demo"},
		{name: "empty key", vars: []string{"OPENAI_API_KEY= "}, want: "environment: providers: no provider; set OPENAI_API_KEY, ANTHROPIC_API_KEY or the key of another type, write a switchboard.yaml, or try it with --demo"},
		{name: "boolean", vars: []string{"OPENAI_API_KEY=k", "SESSION_AUTO_DETECT=yes"}, want: `environment: SESSION_AUTO_DETECT: "yes" is neither true nor false; write true, false, 1 or 0`},
		{name: "boolean in capitals", vars: []string{"OPENAI_API_KEY=k", "SESSION_KEEPING_ENABLED=TRUE"}, want: `environment: SESSION_KEEPING_ENABLED: "TRUE" is neither true nor false; write true, false, 1 or 0`},
		{name: "address", vars: []string{"OPENAI_API_KEY=k", "SWITCHBOARD_LISTEN=8080"}, want: `environment: SWITCHBOARD_LISTEN: "8080" is not an address to listen on; write host:port, for example 127.0.0.1:8080`},
		{name: "flag", src: Source{Listen: "x"}, vars: []string{"OPENAI_API_KEY=k"}, want: `environment: --listen: "x" is not an address to listen on; write host:port, for example 127.0.0.1:8080`},
		{name: "level", vars: []string{"OPENAI_API_KEY=k", "SWITCHBOARD_LOG_LEVEL=loud"}, want: `environment: SWITCHBOARD_LOG_LEVEL: "loud" is not known; one of debug, info, warn, error`},
		{name: "open to the network", vars: []string{"OPENAI_API_KEY=k", "SWITCHBOARD_LISTEN=:8080"}, want: `environment: auth.keys: no client key, so nobody could call, listening on ":8080"; write a switchboard.yaml with auth.keys, or listen on 127.0.0.1`},
		{name: "open on Lambda", vars: []string{"OPENAI_API_KEY=k", "AWS_LAMBDA_FUNCTION_NAME=f"}, want: `environment: auth.keys: no client key, so nobody could call, on Lambda; set SWITCHBOARD_CONFIG to a file of the bundle or ssm:/path, with auth.keys`},
		{name: "base URL", vars: []string{"OPENAI_API_KEY=k", "OPENAI_BASE_URL=x.example"}, want: "environment: OPENAI_BASE_URL: not an absolute http or https URL; write for example https://api.openai.com/v1"},
		{name: "base URL of our own", vars: []string{"OPENAI_API_KEY=k", "OPENAI_BASE_URL=http://localhost:8080/v1"}, want: "environment: OPENAI_BASE_URL: this is where switchboard itself listens; write the provider's own address"},
		{name: "transform alone", vars: []string{"OPENAI_API_KEY=k", "SESSION_HEADER_2_TRANSFORM=session-uuid"}, want: "environment: SESSION_HEADER_2_TRANSFORM: there is no SESSION_HEADER_2; set it to the name of a header"},
		{name: "key of two lines", vars: []string{"OPENAI_API_KEY=one\ntwo"}, want: "environment: OPENAI_API_KEY: the key has a control character in it; store it on one line"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.src.Getenv = env(tt.vars...)
			_, err := Load(tt.src)
			if err == nil || err.Error() != tt.want {
				t.Errorf("Load = %v\nwant   %s", err, tt.want)
			}
		})
	}
}

func TestMissingFile(t *testing.T) {
	nowhere(t)
	for _, tt := range []struct {
		src  Source
		want string
	}{
		{Source{Path: "nope.yaml"}, "nope.yaml: no such file or directory (named by --config)"},
		{Source{Getenv: env("SWITCHBOARD_CONFIG=gone.yaml")}, "gone.yaml: no such file or directory (named by SWITCHBOARD_CONFIG)"},
	} {
		_, err := Load(tt.src)
		if err == nil || err.Error() != tt.want || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Load = %v, want %s", err, tt.want)
		}
	}
	if err := os.Mkdir("switchboard.yaml", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(Source{}); err == nil || !strings.Contains(err.Error(), "switchboard.yaml: ") {
		t.Errorf("Load of a directory = %v, want an error", err)
	}
}

func TestSessionHeadersOfTheEnvironmentComeFirst(t *testing.T) {
	vars := []string{
		"K=k", "SESSION_HEADER_10=X-Ten", "SESSION_HEADER_2=X-Two", "SESSION_HEADER_2_TRANSFORM=session-uuid", "SESSION_HEADER_700=X-Last",
		"SESSION_HEADER_3=", "SESSION_HEADER_x=X-No", "SESSION_HEADER_-1=X-No",
	}
	path := filepath.Join(t.TempDir(), "switchboard.yaml")
	if err := os.WriteFile(path, []byte(complete("session: {headers: [{header: X-File}]}\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []session.Rule{{Header: "X-Two", Transform: "session-uuid"}, {Header: "X-Ten"}, {Header: "X-Last"}, {Header: "X-File"}}
	c, err := Load(Source{Path: path, Getenv: env(vars...), Environ: func() []string { return vars }})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, c.Session.Headers); diff != "" {
		t.Errorf("Headers (-want +got):\n%s", diff)
	}
	c, err = Load(Source{Path: path, Getenv: env(vars...)}) // without the list 700 is out of reach
	if err != nil {
		t.Fatal(err)
	}
	want = append(want[:2:2], want[3])
	if diff := cmp.Diff(want, c.Session.Headers); diff != "" {
		t.Errorf("Headers without Environ (-want +got):\n%s", diff)
	}
}

// S-SID-06 r4: a rule that names a credential header stops the start and is named.
func TestSSID06CredentialHeaderStopsTheStart(t *testing.T) {
	for _, header := range []string{
		"Authorization", "authorization", "AUTHORIZATION", "x-api-key", "api-key", "Cookie", "Set-Cookie", "Proxy-Authorization",
		"X-Goog-Api-Key", "X-Auth-Token", "X-Access-Token", "X-Amz-Security-Token",
	} {
		_, err := loadText(t, complete("session:\n  headers:\n    - {header: X-Good}\n    - {header: "+header+"}\n"))
		if err == nil || !strings.HasPrefix(err.Error(), "switchboard.yaml:4:16: session.headers[1].header: ") || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(header)) {
			t.Errorf("Load with the rule %s = %v, want an error at 4:16 that names it", header, err)
		}
		_, err = loadText(t, complete(""), "SESSION_HEADER_1="+header)
		if err == nil || !strings.HasPrefix(err.Error(), "environment: SESSION_HEADER_1: ") {
			t.Errorf("Load with SESSION_HEADER_1=%s = %v, want an error", header, err)
		}
	}
	_, err := loadText(t, complete("session:\n  headers: [{header: X-Good, transform: nonsense}, {header: 'a b'}]\n"))
	if err == nil || strings.Count(err.Error(), "switchboard.yaml:2:") != 2 {
		t.Errorf("Load with a bad transform and a bad name = %v, want two problems in line 2", err)
	}
}
