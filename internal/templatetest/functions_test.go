package templatetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// functions are the template's, with the package that their build puts into bootstrap.
func functions() map[string]string {
	return map[string]string{"RouteFunction": "./functions/route", "AdminFunction": "./functions/admin"}
}

func TestFunctions(t *testing.T) {
	s := deploy(t)
	if diff := cmp.Diff([]string{"AdminFunction", "RouteFunction"}, s.all("AWS::Serverless::Function")); diff != "" {
		t.Fatalf("functions (-want +got):\n%s", diff)
	}
	for name := range functions() {
		p := s.of(t, "AWS::Serverless::Function", name)
		want := map[string]any{
			"CodeUri": ".", "Handler": "bootstrap", "Runtime": "provided.al2023", "Architectures": []any{"arm64"},
			"Role": "${" + strings.TrimSuffix(name, "Function") + "Role.Arn}",
			"LoggingConfig": map[string]any{
				"LogFormat": "Text", // JSON would wrap what is JSON already
				"LogGroup":  "${" + strings.TrimSuffix(name, "Function") + "Logs}",
			},
		}
		for key, value := range want {
			if diff := cmp.Diff(value, p[key]); diff != "" {
				t.Errorf("%s.%s (-want +got):\n%s", name, key, diff)
			}
		}
		if got := at(s.resources[name].attributes, "Metadata", "BuildMethod"); got != "makefile" {
			t.Errorf("%s is built by %v, want makefile: sam's own builder links with cgo", name, got)
		}
		// Only literals decide whether SAM adds policies of its own, and those are too wide.
		for _, key := range []string{"Policies", "Events", "VpcConfig"} {
			if p[key] != nil {
				t.Errorf("%s has %s %v", name, key, p[key])
			}
		}
	}
	if got := deploy(t, "Architecture=x86_64").of(t, "AWS::Serverless::Function", "RouteFunction")["Architectures"]; cmp.Diff([]any{"x86_64"}, got) != "" {
		t.Errorf("with Architecture=x86_64 the route function is for %v", got)
	}
}

// A stream may last as long as Lambda lets it.
func TestRouteStreamsForFifteenMinutes(t *testing.T) {
	s := deploy(t)
	for name, least := range map[string]int{"RouteFunction": 900, "AdminFunction": 30} {
		p := s.of(t, "AWS::Serverless::Function", name)
		if got := at(p, "FunctionUrlConfig", "InvokeMode"); got != "RESPONSE_STREAM" {
			t.Errorf("%s answers by %v, want RESPONSE_STREAM", name, got)
		}
		if got := number(t, p["Timeout"]); got < least || got > 900 {
			t.Errorf("%s has %d s, want %d to 900", name, got, least)
		}
	}
}

// A public URL needs two permissions, and one for signed callers needs none. SAM adds them
// for literals only.
func TestUrlPermissions(t *testing.T) {
	for _, test := range []struct {
		given []string
		want  []string
	}{
		{nil, []string{"AdminFunction lambda:InvokeFunction", "AdminFunction lambda:InvokeFunctionUrl", "RouteFunction lambda:InvokeFunction", "RouteFunction lambda:InvokeFunctionUrl"}},
		{[]string{"AuthType=AWS_IAM"}, []string{"AdminFunction lambda:InvokeFunction", "AdminFunction lambda:InvokeFunctionUrl"}},
		{[]string{"AdminAuthType=AWS_IAM"}, []string{"RouteFunction lambda:InvokeFunction", "RouteFunction lambda:InvokeFunctionUrl"}},
		{[]string{"AuthType=AWS_IAM", "AdminAuthType=AWS_IAM"}, nil},
	} {
		s := deploy(t, test.given...)
		var got []string
		for _, name := range s.all("AWS::Lambda::Permission") {
			p := s.resources[name].properties
			got = append(got, strings.Trim(fmt.Sprint(p["FunctionName"]), "${}")+" "+fmt.Sprint(p["Action"]))
			narrow := p["FunctionUrlAuthType"] == "NONE" || p["InvokedViaFunctionUrl"] == true
			if !narrow || p["Principal"] != "*" {
				t.Errorf("%s: %v opens more than the URL", name, p)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("deploy(%v): permissions (-want +got):\n%s", test.given, diff)
		}
		for name, parameter := range map[string]string{"RouteFunction": "AuthType", "AdminFunction": "AdminAuthType"} {
			if got := at(s.of(t, "AWS::Serverless::Function", name), "FunctionUrlConfig", "AuthType"); got != s.values[parameter] {
				t.Errorf("deploy(%v): %s has AuthType %v, want %s", test.given, name, got, s.values[parameter])
			}
		}
	}
}

// The template is the only owner of CORS, has none unless asked, and never lets
// credentials through: with the code setting it too, browsers would refuse the answer.
func TestSLAM04CORSHasOneOwner(t *testing.T) {
	for _, name := range []string{"RouteFunction", "AdminFunction"} {
		if got := at(deploy(t).of(t, "AWS::Serverless::Function", name), "FunctionUrlConfig", "Cors"); got != nil {
			t.Errorf("%s has CORS %v without being asked", name, got)
		}
	}
	s := deploy(t, "CorsAllowOrigins=https://app.example,https://other.example")
	cors := at(s.of(t, "AWS::Serverless::Function", "RouteFunction"), "FunctionUrlConfig", "Cors")
	if diff := cmp.Diff([]any{"https://app.example", "https://other.example"}, at(cors, "AllowOrigins")); diff != "" {
		t.Errorf("AllowOrigins (-want +got):\n%s", diff)
	}
	if got := at(cors, "AllowCredentials"); got != nil {
		t.Errorf("AllowCredentials is %v, want none: keys are no cookies", got)
	}
	if got := at(s.of(t, "AWS::Serverless::Function", "AdminFunction"), "FunctionUrlConfig", "Cors"); got != nil {
		t.Errorf("the admin URL has CORS %v; its pages come from itself", got)
	}
	for _, dir := range []string{"internal", "functions", "cmd"} {
		err := filepath.WalkDir(root+dir, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			// internal/functionurl plays the Function URL, which may own it.
			if strings.Contains(strings.ToLower(string(text)), `"access-control-`) && !strings.Contains(path, "functionurl") {
				t.Errorf("%s sets CORS headers", path)
			}
			return err
		})
		if err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
	}
}

func TestReservedConcurrency(t *testing.T) {
	for _, test := range []struct {
		parameter, function string
	}{{"ReservedConcurrency", "RouteFunction"}, {"AdminReservedConcurrency", "AdminFunction"}} {
		if got := deploy(t).of(t, "AWS::Serverless::Function", test.function)["ReservedConcurrentExecutions"]; got != nil {
			t.Errorf("%s reserves %v without being asked", test.function, got)
		}
		for _, value := range []string{"0", "7"} {
			got := deploy(t, test.parameter+"="+value).of(t, "AWS::Serverless::Function", test.function)["ReservedConcurrentExecutions"]
			if got != value {
				t.Errorf("%s=%s: %s reserves %v", test.parameter, value, test.function, got)
			}
		}
	}
}

// make builds what sam asks for: static, stripped, for the architecture of samconfig.toml,
// with the configuration beside it, readable for Lambda's user.
func TestMakefileBuildsTheFunctions(t *testing.T) {
	for _, test := range []struct {
		config, environment, want string
	}{
		{read(t, "samconfig.toml"), "", "arm64"},
		{`parameter_overrides = "Architecture=x86_64 Timeout=60"`, "", "amd64"},
		{`parameter_overrides = "Timeout=\"60\" Architecture=\"x86_64\""`, "", "amd64"},
		{`parameter_overrides = "Timeout=60"`, "", "arm64"},
		{`# parameter_overrides = "Architecture=x86_64"`, "", "arm64"},
		{`parameter_overrides = "Architecture=arm64"`, "LAMBDA_ARCH=x86_64", "amd64"},
	} {
		for function, source := range functions() {
			dir, artifacts := t.TempDir(), t.TempDir()
			for name, text := range map[string]string{"Makefile": read(t, "Makefile"), "samconfig.toml": test.config, "switchboard.yaml": "listen: x\n"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "make", "-C", dir, "build-"+function, "ARTIFACTS_DIR="+artifacts, "GO=true")
			cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
				// Flags of a make around this test (-s) would be this one's as well.
				return strings.HasPrefix(s, "LAMBDA_ARCH=") || strings.HasPrefix(s, "MAKEFLAGS=") || strings.HasPrefix(s, "MFLAGS=")
			}), test.environment)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("make build-%s: %v\n%s", function, err, out)
			}
			for _, want := range []string{
				"CGO_ENABLED=0 ", "GOOS=linux ", "GOARCH=" + test.want + " ", "-tags lambda.norpc,", "-trimpath ", "-ldflags '-s -w'",
				`-o "` + artifacts + `/bootstrap" ` + source,
			} {
				if !strings.Contains(string(out), want) {
					t.Errorf("with %q %s, make build-%s has no %q:\n%s", test.config, test.environment, function, want, out)
				}
			}
			if info, err := os.Stat(filepath.Join(artifacts, "switchboard.yaml")); err != nil || info.Mode().Perm() != 0o644 {
				t.Errorf("make build-%s: the configuration in the bundle: %v, %v, want mode 644", function, info, err)
			}
		}
	}
}
