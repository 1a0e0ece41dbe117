// Command localstack is switchboard's AWS stack on this machine: the emulator, the resources
// of template.yaml, and both functions behind Function URLs that really stream.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// process is what this program may use of the process it runs in.
type process struct {
	getenv         func(string) string
	environ        func() []string
	stdout, stderr io.Writer
}

// settings are the command line.
type settings struct {
	listen, route, admin string // addresses
	environments         int
	freeze               bool
	config               string // file for SWITCHBOARD_CONFIG; empty: ours
	demo                 bool
	verbose              bool
	functions            string            // local or deployed; empty: local without AWS_ENDPOINT_URL
	parameters           map[string]string // of the template
	secrets              map[string]string // reference -> text
	root                 string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], process{os.Getenv, os.Environ, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// run returns the exit code: 0, 1 for a failure, 2 for a command line that is wrong.
func run(ctx context.Context, args []string, p process) int {
	s, err := parseArgs(args, p.stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(p.stderr, "localstack:", err)
		return 2
	}
	if err := s.run(ctx, p); err != nil {
		fmt.Fprintln(p.stderr, "localstack:", err)
		return 1
	}
	return 0
}

func parseArgs(args []string, stderr io.Writer) (*settings, error) {
	s := &settings{parameters: map[string]string{}, secrets: map[string]string{}}
	flags := flag.NewFlagSet("localstack", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.listen, "listen", "127.0.0.1:4566", "`address` of the emulator")
	flags.StringVar(&s.route, "route", "127.0.0.1:9000", "`address` of the route function's URL")
	flags.StringVar(&s.admin, "admin", "127.0.0.1:9001", "`address` of the admin function's URL")
	flags.IntVar(&s.environments, "environments", 4, "execution environments of each function, one request each")
	flags.BoolVar(&s.freeze, "freeze", false, "stop the processes between requests, as Lambda does")
	flags.StringVar(&s.config, "config", "", "switchboard configuration `file` of the functions (default localstack/switchboard.yaml)")
	flags.BoolVar(&s.demo, "demo", false, "use two simulated providers; no key needed")
	flags.BoolVar(&s.verbose, "verbose", false, "show all that the functions log")
	flags.StringVar(&s.functions, "functions", "", "where they run when AWS_ENDPOINT_URL is set: deployed (default) or local")
	flags.StringVar(&s.root, "root", "", "`folder` of the repository (default: this one or one above)")
	flags.Func("parameter", "template parameter `NAME=VALUE`; may be repeated", pairInto(s.parameters))
	flags.Func("secret", "stored before the functions start, `ssm:/path=TEXT` or secretsmanager:name=TEXT; may be repeated", pairInto(s.secrets))
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	return s, s.check(flags.Args())
}

func pairInto(m map[string]string) func(string) error {
	return func(given string) error {
		name, value, ok := strings.Cut(given, "=")
		if !ok || name == "" {
			return errors.New("write NAME=VALUE")
		}
		m[name] = value
		return nil
	}
}

func (s *settings) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q is no flag", rest[0])
	case s.environments < 1 || s.environments > 1000:
		return fmt.Errorf("--environments is %d, not 1 to 1000", s.environments)
	case s.functions != "" && s.functions != "local" && s.functions != "deployed":
		return fmt.Errorf("--functions is %q, not local or deployed", s.functions)
	case s.demo && s.config != "":
		return errors.New("--demo brings its own configuration: leave --config out")
	case s.config == "" && (!loopback(s.route) || !loopback(s.admin)):
		return errors.New("the built-in configuration has well-known keys, so its URLs stay on loopback: give --config with keys of your own")
	}
	for reference := range s.secrets {
		service, name, _ := strings.Cut(reference, ":")
		if service != "ssm" && service != "secretsmanager" || name == "" {
			return fmt.Errorf("--secret %s: write ssm:/path=TEXT or secretsmanager:name=TEXT", reference)
		}
	}
	return nil
}
