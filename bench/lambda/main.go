// Command lambda measures the functions: what route adds inside the function, its start,
// size, memory and calls, the whole local Function URL, and the first page of admin. It prints the bars and puts the
// result into docs/performance-aws.md.
//
// The comparison runs this same program as a function in three roles (bare handler on
// aws-lambda-go's lambdaurl, bare handler on our carrier, the gateway on our carrier), so
// that only the code under test differs.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"switchboard/internal/record"
)

const clientKey = "ck-bench-00112233445566778899aabbccddeeff"

// forgetful takes events and keeps none.
type forgetful struct{}

// Record implements record.Recorder.
func (forgetful) Record(context.Context, *record.Event) error { return nil }

func configText(upstream string) string {
	return fmt.Sprintf(`auth:
  keys: [{name: bench, sha256: "%x", user_path: /bench}]
providers:
  mock:
    type: openai
    base_url: %s/v1
    api_keys: [sk-mock-one-0001, sk-mock-two-0002]
    models:
      - {id: gpt-4o-mini, pricing: {input_per_mtok: 0.15, cached_input_per_mtok: 0.075, output_per_mtok: 0.60}}
`, sha256.Sum256([]byte(clientKey)), upstream)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var b bench
	flag.StringVar(&b.page, "page", "docs/performance-aws.md", "page to write the result into; empty: none")
	flag.StringVar(&b.keep, "out", ".cache/bench-lambda", "folder for what was built and measured")
	flag.IntVar(&b.rounds, "rounds", 300, "requests of each kind and size")
	flag.IntVar(&b.starts, "starts", 30, "starts of each function")
	flag.Parse()
	run := b.run
	if role := os.Getenv(envRole); role != "" {
		run = func(ctx context.Context) error { return play(ctx, role) }
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	page, keep     string
	rounds, starts int
}

func (b *bench) path(name string) string { return filepath.Join(b.keep, name) }

func (b *bench) run(ctx context.Context) error {
	keep, err := filepath.Abs(b.keep)
	if err != nil {
		return err
	}
	b.keep = keep
	if err := b.build(ctx); err != nil {
		return err
	}
	var bars []bar
	for _, measure := range []func(context.Context) ([]bar, error){b.insideTheFunction, b.coldStarts, b.coldPages, b.functionURL} {
		more, err := measure(ctx)
		if err != nil {
			return err
		}
		bars = append(bars, more...)
	}
	table := tableOf(bars)
	fmt.Print(table)
	if b.page != "" {
		if err := writePage(b.page, table); err != nil {
			return err
		}
	}
	for _, one := range bars {
		if !one.ok() {
			err = errors.Join(err, fmt.Errorf("%s: %s, the bar is %s", one.name, one.format(one.got), one.format(one.most)))
		}
	}
	return err
}

// build makes the functions as they are deployed: the Makefile knows how.
func (b *bench) build(ctx context.Context) error {
	for target, name := range map[string]string{"RouteFunction": "route", "AdminFunction": "admin"} {
		if err := os.MkdirAll(b.path(name), 0o755); err != nil {
			return err
		}
		if err := command(ctx, "make", "-s", "build-"+target, "ARTIFACTS_DIR="+b.path(name), "LAMBDA_ARCH="+runtime.GOARCH); err != nil {
			return err
		}
	}
	flags := []string{"build", "-tags", "lambda.norpc", "-trimpath", "-ldflags", "-s -w", "-o"}
	for name, pkg := range map[string]string{"roles": "./bench/lambda", "bare": "./bench/lambda/bare"} {
		if err := command(ctx, "go", append(flags, b.path(name), pkg)...); err != nil {
			return err
		}
	}
	return nil
}

func command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}
