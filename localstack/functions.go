package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"switchboard/internal/demo"
	"switchboard/internal/functionurl"
)

// The keys of localstack/switchboard.yaml. They are in the repository: for loopback only.
const (
	clientKey = "local-client-key"
	adminKey  = "local-admin-key"
)

// packages are the functions' mains, as the targets build-… of the Makefile have them.
func packages() map[string]string {
	return map[string]string{"RouteFunction": "functions/route", "AdminFunction": "functions/admin"}
}

// startFunctions builds the functions, starts them behind their URLs and asks each one thing,
// so that one that does not start is said now. It returns the logical ids of those that run.
func (u *up) startFunctions(ctx context.Context, s *stack, listeners map[string]net.Listener) (running []string, err error) {
	work := filepath.Join(u.root, ".cache", "localstack")
	config, extra, err := u.configure(work)
	if err != nil {
		return nil, err
	}
	for _, f := range s.functions {
		listener := listeners[f.logical]
		bootstrap, err := u.buildFunction(ctx, work, f)
		if errors.Is(err, fs.ErrNotExist) || listener == nil {
			fmt.Fprintf(u.process.stdout, "%s: not in this source, left out\n", f.logical)
			continue
		}
		if err != nil {
			return nil, err
		}
		f.env["SWITCHBOARD_CONFIG"] = config
		running = append(running, f.logical)
		if err := u.startFunction(ctx, f, bootstrap, extra, listener); err != nil {
			return nil, err
		}
	}
	return running, nil
}

func (u *up) startFunction(ctx context.Context, f function, bootstrap string, extra []string, listener net.Listener) error {
	if f.cors {
		fmt.Fprintf(u.process.stdout, "%s: CORS of the Function URL is not answered on this machine\n", f.logical)
	}
	// The function outlives ctx by the time its requests need to end.
	running, err := functionurl.Start(context.WithoutCancel(ctx), functionurl.Options{
		Bootstrap: bootstrap, Name: f.name, Region: u.region(), MemoryMB: f.memoryMB, Timeout: f.timeout,
		Environments: u.environments, Freeze: u.freeze, Env: slices.Concat(extra, f.variables()),
		Logs: &sieve{to: u.process.stderr, name: f.logical, all: u.verbose},
	})
	if err != nil {
		return fmt.Errorf("%s: %w", f.logical, err)
	}
	u.onClose(func() { running.Close() }) //nolint:errcheck // it has none
	u.serve(listener, running)
	return u.greet(ctx, f, "http://"+listener.Addr().String())
}

// greet wakes the function. Any answer of its own is fine; Lambda's 502 is not.
func (u *up) greet(ctx context.Context, f function, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", f.logical, err)
	}
	response.Body.Close() //nolint:errcheck // only the status counts
	if response.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("%s does not start (status %d): see its log above; --demo needs no keys", f.logical, response.StatusCode)
	}
	return nil
}

// buildFunction runs go build as the Makefile does for sam, for this machine.
func (u *up) buildFunction(ctx context.Context, work string, f function) (bootstrap string, err error) {
	source, ok := packages()[f.logical]
	if !ok {
		return "", fs.ErrNotExist
	}
	if _, err := os.Stat(filepath.Join(u.root, source)); err != nil {
		return "", err
	}
	bootstrap = filepath.Join(work, f.logical, "bootstrap")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-tags", "lambda.norpc", "-trimpath", "-ldflags", "-s -w", "-o", bootstrap, "./"+source)
	build.Dir = u.root
	build.Env = append(u.process.environ(), "CGO_ENABLED=0")
	build.Stdout, build.Stderr = u.process.stderr, u.process.stderr
	fmt.Fprintf(u.process.stdout, "building %s\n", source)
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("%s: %s: %w", f.logical, strings.Join(build.Args, " "), err)
	}
	return bootstrap, nil
}

// configure yields the configuration file and what of this environment the functions get.
func (u *up) configure(work string) (path string, extra []string, err error) {
	path = or(u.config, filepath.Join(u.root, "localstack", "switchboard.yaml"))
	if path, err = filepath.Abs(path); err != nil {
		return "", nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	if u.demo {
		if path, err = u.startDemo(work, string(text)); err != nil {
			return "", nil, err
		}
	}
	extra = []string{
		"AWS_ENDPOINT_URL=" + u.endpoint, "AWS_DEFAULT_REGION=" + u.region(),
		"AWS_ACCESS_KEY_ID=" + or(u.process.getenv("AWS_ACCESS_KEY_ID"), "test"),
		"AWS_SECRET_ACCESS_KEY=" + or(u.process.getenv("AWS_SECRET_ACCESS_KEY"), "test"),
	}
	if u.config == "" && u.process.getenv("SWITCHBOARD_ADMIN_KEY") == "" {
		extra = append(extra, "SWITCHBOARD_ADMIN_KEY="+adminKey)
	}
	return path, append(extra, u.handedOver(string(text))...), nil
}

// startDemo starts the simulated providers and writes the configuration that uses them.
func (u *up) startDemo(work, auth string) (path string, err error) {
	providers, err := demo.Start()
	if err != nil {
		return "", err
	}
	u.onClose(providers.Close)
	if err := os.MkdirAll(work, 0o755); err != nil {
		return "", err
	}
	path = filepath.Join(work, "demo.yaml")
	return path, os.WriteFile(path, []byte(auth+"\n"+providers.YAML()), 0o600)
}

// handedOver picks what the functions get of this environment: what the configuration names
// as env:NAME, the providers' keys and addresses, our own settings, and how to reach the
// internet. An address that is the route function's own is left out: it is meant for clients.
func (u *up) handedOver(config string) (out []string) {
	named := regexp.MustCompile(`\benv:([A-Za-z_][A-Za-z0-9_]*)`).FindAllStringSubmatch(config, -1)
	ours := regexp.MustCompile(`^(SWITCHBOARD_ADMIN_KEY|SWITCHBOARD_LOG_LEVEL|SESSION_(KEEPING_ENABLED|AUTO_DETECT|BUILTIN_RULES|HEADER_.*)|[A-Z0-9_]+_API_KEY(_\d+)?|[A-Z0-9_]+_BASE_URL|(HTTPS?|NO)_PROXY|(https?|no)_proxy|SSL_CERT_(FILE|DIR))$`)
	for _, variable := range u.process.environ() {
		name, value, _ := strings.Cut(variable, "=")
		wanted := ours.MatchString(name) || slices.ContainsFunc(named, func(m []string) bool { return m[1] == name })
		_, port, _ := net.SplitHostPort(u.route)
		self := strings.HasSuffix(name, "_BASE_URL") && port != "" && port != "0" && strings.Contains(value, ":"+port)
		if wanted && !self {
			out = append(out, variable)
		}
	}
	return out
}
