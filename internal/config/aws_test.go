package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// routeVars and adminVars are complete environments of the functions.
func routeVars(more ...string) []string {
	return append([]string{"K=key-of-the-test", "AWS_LAMBDA_RUNTIME_API=127.0.0.1:9001", "SESSION_TABLE=sessions", "STATE_TABLE=state", "EVENTS_STREAM=events"}, more...)
}

func adminVars(more ...string) []string {
	return append([]string{"K=key-of-the-test", "AWS_LAMBDA_RUNTIME_API=127.0.0.1:9001", "SWITCHBOARD_ADMIN_KEY=the admin key", "SESSION_TABLE=sessions", "STATE_TABLE=state", "EVENTS_BUCKET=bucket"}, more...)
}

// loadFunction loads a file with that text, completed, for a function.
func loadFunction(t testing.TB, f Function, text string, vars ...string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "switchboard.yaml")
	if err := os.WriteFile(path, []byte(complete(text)), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(Source{Function: f, Path: path, Getenv: env(vars...)})
	if err != nil {
		err = shortened{strings.ReplaceAll(err.Error(), path, "switchboard.yaml")}
	}
	return c, err
}

func TestFunctionsAreRead(t *testing.T) {
	for _, tt := range []struct {
		name string
		f    Function
		vars []string
		want AWS
	}{
		{"route", Route, routeVars(), AWS{SessionTable: "sessions", StateTable: "state", EventsStream: "events"}},
		{"route leaves the admin's alone", Route, routeVars("EVENTS_BUCKET=b", "AUDIT_ENGINE=nonsense"), AWS{SessionTable: "sessions", StateTable: "state", EventsStream: "events"}},
		{"admin", Admin, adminVars(), AWS{SessionTable: "sessions", StateTable: "state", EventsBucket: "bucket", AuditEngine: AuditS3}},
		{"admin leaves the route's alone", Admin, adminVars("EVENTS_STREAM=not a name"), AWS{SessionTable: "sessions", StateTable: "state", EventsBucket: "bucket", AuditEngine: AuditS3}},
		{
			"athena", Admin, adminVars("AUDIT_ENGINE=athena", "ATHENA_DATABASE= db ", "ATHENA_WORKGROUP=group"),
			AWS{SessionTable: "sessions", StateTable: "state", EventsBucket: "bucket", AuditEngine: AuditAthena, AthenaDatabase: "db", AthenaWorkgroup: "group"},
		},
		{
			"an ARN", Route, routeVars("SESSION_TABLE=arn:aws:dynamodb:eu-west-1:123456789012:table/stack-SessionTable-1A_b.c"),
			AWS{SessionTable: "arn:aws:dynamodb:eu-west-1:123456789012:table/stack-SessionTable-1A_b.c", StateTable: "state", EventsStream: "events"},
		},
		{"one machine has none", "", routeVars("EVENTS_BUCKET=b"), AWS{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := loadFunction(t, tt.f, "", tt.vars...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, c.AWS); diff != "" {
				t.Errorf("AWS (-want +got):\n%s", diff)
			}
			if len(c.Warnings) > 0 {
				t.Errorf("Warnings = %q, want none", c.Warnings)
			}
		})
	}
}

func TestFunctionFaults(t *testing.T) {
	const (
		sessions = "environment: SESSION_TABLE: missing; set it to the name of the DynamoDB table with the sessions"
		state    = "environment: STATE_TABLE: missing; set it to the name of the DynamoDB table with the shared state"
	)
	for _, tt := range []struct {
		name, text string
		f          Function
		vars       []string
		want       []string
	}{
		{name: "route with nothing", f: Route, vars: []string{"K=k"}, want: []string{sessions, state, "environment: EVENTS_STREAM: missing; set it to the name of the Firehose stream for routing events"}},
		{name: "admin with nothing", f: Admin, vars: []string{"K=k"}, want: []string{sessions, state, "environment: EVENTS_BUCKET: missing; set it to the name of the S3 bucket with the routing events"}},
		{name: "blank", f: Route, vars: routeVars("STATE_TABLE= \t"), want: []string{state}},
		{name: "no name", f: Route, vars: routeVars("SESSION_TABLE=a table"), want: []string{`environment: SESSION_TABLE: "a table" is not usable; set it to the name of the DynamoDB table with the sessions`}},
		{name: "unresolved", f: Route, vars: routeVars("EVENTS_STREAM=${EventsStream}"), want: []string{`environment: EVENTS_STREAM: "${EventsStream}" is not usable; set it to the name of the Firehose stream for routing events`}},
		{name: "engine", f: Admin, vars: adminVars("AUDIT_ENGINE=duckdb"), want: []string{`environment: AUDIT_ENGINE: "duckdb" is not known; one of s3, athena`}},
		{name: "athena with nothing", f: Admin, vars: adminVars("AUDIT_ENGINE=athena"), want: []string{
			"environment: ATHENA_DATABASE: missing, with AUDIT_ENGINE athena; set it to the name of the Glue database of the routing events",
			"environment: ATHENA_WORKGROUP: missing, with AUDIT_ENGINE athena; set it to the name of the Athena workgroup to query in",
		}},
		{name: "the file's faults come first", f: Route, text: "routing: {max_attempts: 0}\n", vars: routeVars("STATE_TABLE="), want: []string{"switchboard.yaml:1:25: routing.max_attempts: not a whole number from 1 to 100", state}},
		{name: "no YAML", f: Route, text: "a: [\n", vars: routeVars("STATE_TABLE="), want: []string{"switchboard.yaml:1:4: this is not valid YAML: sequence end token ']' not found", state}},
		{name: "open", f: Route, text: "auth: {mode: none}\n", vars: routeVars(), want: []string{"switchboard.yaml:1:14: auth.mode: none would let everybody in, on Lambda; use keys, or iam with a Function URL of AuthType AWS_IAM"}},
		{name: "open, run elsewhere", f: Route, text: "auth: {mode: none}\n", vars: routeVars("AWS_LAMBDA_RUNTIME_API="), want: []string{"switchboard.yaml:1:14: auth.mode: none would let everybody in, on Lambda; use keys, or iam with a Function URL of AuthType AWS_IAM"}},
		{name: "iam, run elsewhere for everybody", f: Route, text: "auth: {mode: iam}\nlisten: 0.0.0.0:80\n", vars: routeVars("AWS_LAMBDA_RUNTIME_API="), want: []string{`switchboard.yaml:1:14: auth.mode: iam would let everybody in, listening on "0.0.0.0:80": only a Lambda Function URL checks IAM; use keys`}},
		{name: "no client key", f: Route, text: "auth: {mode: keys}\n", vars: routeVars(), want: []string{"switchboard.yaml:1:1: auth.keys: no client key, so nobody could call; add one made by switchboard key new"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loadFunction(t, tt.f, tt.text, tt.vars...)
			if err == nil {
				t.Fatalf("Load = nil, want\n%s", strings.Join(tt.want, "\n"))
			}
			if diff := cmp.Diff(tt.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("Load (-want +got):\n%s", diff)
			}
		})
	}
}

// S-LAM-07 b: on Lambda no body is allowed that an event cannot hold.
func TestSLAM07BodyIsCapped(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int64
		warn bool
	}{
		{"", 6_000_000, false},
		{"limits: {max_body: 6MB}\n", 6_000_000, false},
		{"limits: {max_body: 1MiB}\n", 1 << 20, false},
		{"limits: {max_body: 6000001}\n", 6_000_000, true},
		{"limits: {max_body: 6MiB}\n", 6_000_000, true},
		{"limits: {max_body: 32MiB}\n", 6_000_000, true},
	} {
		for f, vars := range map[Function][]string{Route: routeVars(), Admin: adminVars()} {
			c, err := loadFunction(t, f, tt.text, vars...)
			if err != nil {
				t.Fatal(err)
			}
			warned := slices.ContainsFunc(c.Warnings, func(s string) bool {
				return strings.HasPrefix(s, "limits.max_body is ") && strings.Contains(s, "on Lambda it is 6000000")
			})
			if c.MaxBody != tt.want || warned != tt.warn || warned != (len(c.Warnings) > 0) {
				t.Errorf("%s, %q: MaxBody = %d, warnings %q, want %d and a warning: %v", f, tt.text, c.MaxBody, c.Warnings, tt.want, tt.warn)
			}
		}
	}
	if c := mustLoad(t, "", "AWS_LAMBDA_FUNCTION_NAME="); c.MaxBody != 32<<20 {
		t.Errorf("one machine: MaxBody = %d, want %d", c.MaxBody, 32<<20)
	}
}

func TestWhatMeansNothingOnLambda(t *testing.T) {
	const text = "listen: 127.0.0.1:7\nsession_db_path: x.db\n"
	c, err := loadFunction(t, Route, text, routeVars("SWITCHBOARD_SESSION_DB=y.db")...)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"listen is not used on Lambda", "session_db_path is not used on Lambda"}
	if !cmp.Equal(want, c.Warnings) || c.SessionDBPath != "" {
		t.Errorf("Load = %q, database %q, want %q and none", c.Warnings, c.SessionDBPath, want)
	}
	// Run elsewhere, the same function does listen.
	c, err = loadFunction(t, Route, text, routeVars("AWS_LAMBDA_RUNTIME_API=")...)
	if err != nil || c.Listen != "127.0.0.1:7" || len(c.Warnings) > 0 {
		t.Errorf("Load = %v, listening on %s, warnings %q, want 127.0.0.1:7 and none", err, c.Listen, c.Warnings)
	}
	// One machine's file is as it was.
	if c := mustLoad(t, text); c.Listen != "127.0.0.1:7" || c.SessionDBPath != "x.db" || len(c.Warnings) > 0 {
		t.Errorf("one machine: %s, %s, warnings %q", c.Listen, c.SessionDBPath, c.Warnings)
	}
}

// S-SEC-04: behind a Function URL with AWS_IAM the signature is the key, and where there are
// client keys as well, both are needed.
func TestSSEC04IAMOnLambda(t *testing.T) {
	const refused = "switchboard.yaml:1:14: auth.mode: iam would let everybody in: the Function URL's AuthType is NONE; make it AWS_IAM, or use keys"
	keys := "auth: {mode: iam, keys: [{sha256: " + digestA + "}]}\n"
	for _, tt := range []struct {
		text, authType string
		open           bool
		want           string
	}{
		{"auth: {mode: iam}\n", "AWS_IAM", true, ""},
		{"auth: {mode: iam}\n", "", true, ""},
		{"auth: {mode: iam}\n", "NONE", false, refused},
		{keys, "AWS_IAM", false, ""},
		{keys, "NONE", false, ""},
		{"", "NONE", false, ""},
		{"", "AWS_IAM", false, ""},
	} {
		c, err := loadFunction(t, Route, tt.text, routeVars("URL_AUTH_TYPE="+tt.authType)...)
		switch {
		case tt.want != "" && (err == nil || err.Error() != tt.want):
			t.Errorf("Load of %q behind %q = %v, want %s", tt.text, tt.authType, err, tt.want)
		case tt.want == "" && (err != nil || c.Auth.Open() != tt.open):
			t.Errorf("Load of %q behind %q = %v, want open: %v", tt.text, tt.authType, err, tt.open)
		}
	}
}

func TestAdminFunctionWithoutAdminKey(t *testing.T) {
	vars := adminVars("SWITCHBOARD_ADMIN_KEY=")
	c, err := loadFunction(t, Admin, "", vars...)
	want := []string{"there is no admin key, so everybody is refused; set auth.admin or SWITCHBOARD_ADMIN_KEY"}
	if err != nil || !cmp.Equal(want, c.Warnings) {
		t.Errorf("Load = %v, warnings %q, want %q", err, c.Warnings, want)
	}
}

// Variables is what Load really asks the environment for.
func TestVariables(t *testing.T) {
	if got := Variables(""); got != nil {
		t.Errorf("Variables of one machine = %v, want none", got)
	}
	for f, vars := range map[Function][]string{Route: routeVars(), Admin: adminVars()} {
		getenv := env(vars...)
		asked := map[string]bool{}
		path := filepath.Join(t.TempDir(), "switchboard.yaml")
		if err := os.WriteFile(path, []byte(complete("")), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(Source{Function: f, Getenv: func(name string) string {
			asked[name] = true
			if name == "SWITCHBOARD_CONFIG" {
				return path
			}
			return getenv(name)
		}})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, v := range Variables(f) {
			if !asked[v.Name] || seen[v.Name] || v.Meaning == "" {
				t.Errorf("Variables(%s): %+v, want one that Load reads, once, with its meaning", f, v)
			}
			seen[v.Name] = true
			_, err := loadFunction(t, f, "", append(slices.Clone(vars), v.Name+"=")...)
			if (err != nil) != v.Required {
				t.Errorf("Load of %s without %s = %v, want an error: %v", f, v.Name, err, v.Required)
			}
		}
	}
}

func TestEventsBuffer(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "60": time.Minute, "0": 0, "900": 15 * time.Minute} {
		c, err := loadFunction(t, Admin, "", adminVars("EVENTS_BUFFER_SECONDS="+text)...)
		if err != nil || c.AWS.EventsBuffer != want {
			t.Errorf("EVENTS_BUFFER_SECONDS=%s: %v, want %v", text, err, want)
		}
	}
	for _, text := range []string{"901", "-1", "1m", "6e1"} {
		if _, err := loadFunction(t, Admin, "", adminVars("EVENTS_BUFFER_SECONDS="+text)...); err == nil || !strings.Contains(err.Error(), "0 to 900") {
			t.Errorf("EVENTS_BUFFER_SECONDS=%s: %v, want an error that says the range", text, err)
		}
	}
}
