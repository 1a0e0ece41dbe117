// Command bench measures switchboard against the least gateway that Go's standard library
// allows ("floor"), with everything on: client keys, prices, sessions and every routing
// event in SQLite on disk. It runs the tools of BENCH_DIR, prints the bars, and puts the
// result into docs/performance.md.
//
// Not here: the load, the mock provider and the floor. They are separate tools that put any
// gateway under the same work.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := bench{}
	flag.StringVar(&b.tools, "tools", "../shared/bench", "folder with the bench tools: mock, load, floor, bench.sh")
	flag.IntVar(&b.reps, "reps", 3, "repetitions of the whole matrix")
	flag.StringVar(&b.page, "page", "docs/performance.md", "page to write the result into; empty: none")
	flag.StringVar(&b.keep, "out", ".cache/bench", "folder for what was built and measured")
	flag.Parse()
	if err := b.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	tools, page, keep string
	reps              int
}

// scenario is one line of the matrix, as bench.sh has it.
type scenario struct {
	name string
	sent int // requests a repetition, with those before measuring starts
}

func (b *bench) run(ctx context.Context) error {
	for _, need := range []string{"mock", "load", "floor", "bench.sh"} {
		if _, err := os.Stat(filepath.Join(b.tools, need)); err != nil {
			return fmt.Errorf("%s has no %s: set BENCH_DIR to the folder with the bench tools (mock, load, floor, bench.sh)", b.tools, need)
		}
	}
	for _, path := range []*string{&b.tools, &b.keep} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	if err := os.MkdirAll(b.keep, 0o755); err != nil {
		return err
	}
	if err := b.build(ctx); err != nil {
		return err
	}
	m, err := b.measure(ctx)
	if err != nil {
		return err
	}
	bars := m.bars()
	table := barTable(bars)
	fmt.Print(table)
	if b.page != "" {
		if err := writePage(b.page, m.page(table)); err != nil {
			return err
		}
	}
	for _, bar := range bars {
		if !bar.ok() {
			err = errors.Join(err, fmt.Errorf("%s: %s, the bar is %s", bar.name, bar.format(bar.got), bar.limit()))
		}
	}
	return err
}

func (b *bench) path(name string) string { return filepath.Join(b.keep, name) }

// build makes the tools, the product as it is shipped, and the request bodies.
func (b *bench) build(ctx context.Context) error {
	if err := command(ctx, b.tools, nil, "go", "build", "-o", b.keep+"/", "./mock", "./load", "./floor"); err != nil {
		return err
	}
	if err := command(ctx, "", []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", b.path("switchboard"), "./cmd/switchboard"); err != nil {
		return err
	}
	for _, body := range []struct{ name, size, turns string }{{"2k", "2048", "1"}, {"100k", "102400", "40"}, {"1m", "1048576", "40"}} {
		for _, kind := range []string{"plain", "stream"} {
			out, err := exec.CommandContext(ctx, b.path("load"), "body", "-size", body.size, "-turns", body.turns, fmt.Sprintf("-stream=%v", kind == "stream")).Output()
			if err != nil {
				return fmt.Errorf("load body: %w", err)
			}
			if err := os.WriteFile(b.path(kind+"-"+body.name+".json"), out, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

func command(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), env...), os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}
