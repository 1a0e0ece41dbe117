package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/emulator"
)

func TestParseArgs(t *testing.T) {
	s, err := parseArgs([]string{"--freeze", "--environments", "2", "--parameter", "A=1=2", "--parameter", "B=", "--secret", "ssm:/x/y=t", "--demo"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !s.freeze || !s.demo || s.environments != 2 || s.listen != "127.0.0.1:4566" || s.route != "127.0.0.1:9000" || s.admin != "127.0.0.1:9001" ||
		!cmp.Equal(s.parameters, map[string]string{"A": "1=2", "B": ""}) || !cmp.Equal(s.secrets, map[string]string{"ssm:/x/y": "t"}) {
		t.Errorf("parseArgs = %+v", s)
	}
	for _, args := range []string{
		"extra", "--environments 0", "--environments x", "--functions lambda", "--demo --config f", "--parameter A", "--secret vault:x=1", "--secret ssm:=1",
		"--route 0.0.0.0:9000", "--route :9000", "--admin 10.0.0.1:1", "--nothing",
	} {
		if _, err := parseArgs(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("parseArgs(%s) = nil, want an error", args)
		}
	}
	if _, err := parseArgs([]string{"--config", "f", "--route", "0.0.0.0:9000"}, io.Discard); err != nil {
		t.Errorf("with keys of one's own: %v", err)
	}
	if _, err := parseArgs([]string{"--help"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help = %v", err)
	}
}

func TestRunExitCodes(t *testing.T) {
	for _, tt := range []struct {
		args []string
		env  map[string]string
		want int
	}{
		{[]string{"--help"}, nil, 0},
		{[]string{"--nothing"}, nil, 2},
		{[]string{"--root", "/nowhere"}, nil, 1},
		{[]string{"--functions", "deployed"}, nil, 1},
		{[]string{"--demo"}, map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, 1},
	} {
		if got := run(t.Context(), tt.args, quiet(tt.env)); got != tt.want {
			t.Errorf("run(%v) = %d, want %d", tt.args, got, tt.want)
		}
	}
}

func quiet(env map[string]string) process {
	return process{
		getenv: func(name string) string { return env[name] },
		environ: func() (all []string) {
			for name, value := range env {
				all = append(all, name+"="+value)
			}
			return all
		},
		stdout: io.Discard, stderr: io.Discard,
	}
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:1": true,
		":1": false, "0.0.0.0:1": false, "[::]:1": false, "example.com:1": false, "10.0.0.1:1": false, "127.0.0.1": false,
	} {
		if got := loopback(address); got != want {
			t.Errorf("loopback(%s) = %v, want %v", address, got, want)
		}
	}
}

func TestFindRoot(t *testing.T) {
	got, err := findRoot("")
	if want, _ := filepath.Abs(".."); err != nil || got != want {
		t.Errorf("findRoot = %s, %v, want %s", got, err, want)
	}
	if _, err := findRoot(t.TempDir()); err == nil {
		t.Error("findRoot(empty folder) = nil, want an error")
	}
}

func TestHandedOver(t *testing.T) {
	env := map[string]string{
		"OPENAI_API_KEY": "1", "OPENAI_API_KEY_2": "2", "GROQ_API_KEY": "3", "MY_SECRET": "4", "OTHER_SECRET": "5", "HOME": "6", "PATH": "7",
		"OPENAI_BASE_URL": "http://127.0.0.1:9000/v1", "ANTHROPIC_BASE_URL": "https://gateway.example", "SESSION_HEADER_1": "X-A", "SESSION_TABLE": "8",
		"HTTPS_PROXY": "9", "SWITCHBOARD_LOG_LEVEL": "debug", "SWITCHBOARD_CONFIG": "10", "AWS_PROFILE": "11", "SSL_CERT_FILE": "12",
	}
	u := &up{settings: &settings{route: "127.0.0.1:9000"}, process: quiet(env)}
	var got []string
	for _, variable := range u.handedOver("api_keys: [env:MY_SECRET, {key: env:NOT_SET}]") {
		name, _, _ := strings.Cut(variable, "=")
		got = append(got, name)
	}
	slices.Sort(got)
	want := []string{"ANTHROPIC_BASE_URL", "GROQ_API_KEY", "HTTPS_PROXY", "MY_SECRET", "OPENAI_API_KEY", "OPENAI_API_KEY_2", "SESSION_HEADER_1", "SSL_CERT_FILE", "SWITCHBOARD_LOG_LEVEL"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("handedOver: %s", diff)
	}
}

func TestSieve(t *testing.T) {
	lines := []string{`[0] {"level":"INFO","msg":"a"}`, `[0] {"level":"WARN","msg":"b"}`, `[1] panic: x`, `[1] {"level":"DEBUG","msg":"c"}`}
	for all, want := range map[bool]int{true: 4, false: 2} {
		var out bytes.Buffer
		s := &sieve{to: &out, name: "RouteFunction", all: all}
		for _, line := range lines {
			if n, err := s.Write([]byte(line + "\n")); n != len(line)+1 || err != nil {
				t.Errorf("Write = %d, %v", n, err)
			}
		}
		if got := strings.Count(out.String(), "RouteFunction["); got != want {
			t.Errorf("all %v: %d lines, want %d: %s", all, got, want, out.String())
		}
	}
}

// TestDeploySaysWhatItRuns has a sam that only writes down how it was called.
func TestDeploySaysWhatItRuns(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\necho \"called $* at $AWS_ENDPOINT_URL as $AWS_ACCESS_KEY_ID for $LAMBDA_ARCH in $AWS_DEFAULT_REGION\"\n[ \"$1\" != \"$FAIL\" ]\n"
	if err := os.WriteFile(filepath.Join(bin, "sam"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	deploy := func(env map[string]string, args ...string) (string, int) {
		var out bytes.Buffer
		p := quiet(env)
		p.stdout, p.stderr = &out, &out
		code := run(t.Context(), args, p)
		return out.String(), code
	}
	endpoint := map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:4566/", "AWS_ACCESS_KEY_ID": "mine"}
	out, code := deploy(endpoint, "--parameter", "Timeout=60", "--parameter", "Architecture=x86_64")
	for _, want := range []string{
		"+ AWS_ENDPOINT_URL=http://127.0.0.1:4566 LAMBDA_ARCH=x86_64 " + bin + "/sam build\ncalled build at http://127.0.0.1:4566/ as mine for x86_64 in us-east-1\n",
		"called deploy --stack-name switchboard --resolve-s3 --capabilities CAPABILITY_IAM --no-confirm-changeset --no-fail-on-empty-changeset --parameter-overrides Architecture=x86_64 Timeout=60 at",
	} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("deploy = %d, %s\nwant %s", code, out, want)
		}
	}
	cloud := emulator.New(emulator.Options{})
	server := httptest.NewServer(cloud)
	defer server.Close()
	out, code = deploy(map[string]string{"AWS_ENDPOINT_URL": server.URL}, "--secret", "ssm:/switchboard/key=1", "--parameter", "Config=ssm:/switchboard/config")
	if code != 0 || cloud.Calls()["SSM.PutParameter"] != 1 || strings.Contains(out, "will not start") {
		t.Errorf("with a secret = %d, %s, %v", code, out, cloud.Calls())
	}
	endpoint["FAIL"] = "build"
	if out, code := deploy(endpoint); code != 1 || strings.Contains(out, "called deploy") {
		t.Errorf("a failed build = %d, %s, want 1 and no deploy", code, out)
	}
	t.Setenv("PATH", t.TempDir())
	if out, code := deploy(endpoint); code != 1 || !strings.Contains(out, "aws-sam-cli") {
		t.Errorf("without sam = %d, %s", code, out)
	}
}
