package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// deploy has sam deploy template.yaml at the endpoint, and says what it runs.
func (s *settings) deploy(ctx context.Context, p process, root, endpoint string) error {
	if s.demo || s.config != "" {
		return errors.New("--demo and --config are for functions on this machine: add --functions=local")
	}
	if _, err := os.Stat(filepath.Join(root, "switchboard.yaml")); err == nil {
		fmt.Fprintln(p.stdout, "The bundle gets switchboard.yaml, which lies beside template.yaml.")
	} else if s.parameters["Config"] == "" {
		fmt.Fprintln(p.stdout, "There is no switchboard.yaml beside template.yaml, so the functions will not start: write one, or store it and add --parameter Config=ssm:/switchboard/config.")
	}
	sam, err := findSam()
	if err != nil {
		return err
	}
	if err := newClients(endpoint, region, p.getenv).create(ctx, &stack{}, s.secrets); err != nil {
		return err
	}
	architecture := s.parameters["Architecture"]
	if architecture == "" {
		architecture = map[string]string{"arm64": "arm64"}[runtime.GOARCH]
		architecture = or(architecture, "x86_64")
	}
	overrides := []string{"Architecture=" + architecture}
	for _, name := range slices.Sorted(maps.Keys(s.parameters)) {
		if name != "Architecture" {
			overrides = append(overrides, name+"="+s.parameters[name])
		}
	}
	environ := withDefaults(p, map[string]string{
		"AWS_ENDPOINT_URL": endpoint, "AWS_DEFAULT_REGION": region, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"SAM_CLI_TELEMETRY": "0", "LAMBDA_ARCH": architecture,
	})
	for _, args := range [][]string{
		{"build"},
		append([]string{
			"deploy", "--stack-name", stackName, "--resolve-s3", "--capabilities", "CAPABILITY_IAM",
			"--no-confirm-changeset", "--no-fail-on-empty-changeset", "--parameter-overrides",
		}, overrides...),
	} {
		fmt.Fprintf(p.stdout, "+ AWS_ENDPOINT_URL=%s LAMBDA_ARCH=%s %s %s\n", endpoint, architecture, sam, strings.Join(args, " "))
		command := exec.CommandContext(ctx, sam, args...)
		command.Dir, command.Env = root, environ
		command.Stdout, command.Stderr = p.stdout, p.stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("%s %s: %w", sam, args[0], err)
		}
	}
	fmt.Fprintln(p.stdout, "The URLs are the stack's outputs, above. They buffer streams there; --functions=local does not.")
	return nil
}

func findSam() (string, error) {
	for _, name := range []string{"sam", "samlocal"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("neither sam nor samlocal is on PATH: install aws-sam-cli, or add --functions=local to run the functions here against that endpoint")
}

// withDefaults is the environment with what is not set in it.
func withDefaults(p process, defaults map[string]string) []string {
	environ := p.environ()
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		if p.getenv(name) == "" {
			environ = append(environ, name+"="+defaults[name])
		}
	}
	return environ
}
