// Command switchboard routes LLM conversations from one machine: the data plane on SQLite.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"switchboard/internal/config"
)

// commands are the command line.
type commands struct {
	Serve   serveCommand   `cmd:"" help:"Serve the data plane."`
	Demo    demoCommand    `cmd:"" help:"Show a conversation that survives a failing provider, and print its thread."`
	Check   checkCommand   `cmd:"" help:"Check a configuration and exit."`
	Explain explainCommand `cmd:"" help:"Say where a request would go and why, without sending it."`
	Key     struct {
		New keyNewCommand `cmd:"" help:"Make a client key: prints it once, with the digest for the configuration."`
	} `cmd:"" help:"Client keys."`
	Events struct {
		Replay eventsReplayCommand `cmd:"" help:"Put events back that could not be delivered, from the logs they were written to."`
	} `cmd:"" help:"Routing events."`
}

// process is what a command may use of the process it runs in.
type process struct {
	getenv         func(string) string
	environ        func() []string
	stdin          io.Reader
	stdout, stderr io.Writer
}

func main() {
	log.SetFlags(0)
	log.SetOutput(config.Stray(os.Stderr))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args, process{os.Getenv, os.Environ, os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// run executes one command line and returns the exit code: 0, 1 for a failure, 2 for a
// command line or configuration that is wrong.
func run(ctx context.Context, args []string, p process) int {
	var line commands
	exit := -1
	parser, err := kong.New(&line,
		kong.Name("switchboard"),
		kong.Description("An OpenAI- and Anthropic-compatible router that keeps each session where its prompt cache is."),
		kong.Writers(p.stdout, p.stderr),
		kong.Exit(func(code int) { exit = code }),
	)
	if err != nil {
		fmt.Fprintln(p.stderr, "switchboard:", err)
		return 1
	}
	parsed, err := parser.Parse(args[1:])
	if exit >= 0 {
		return exit // --help
	}
	if err != nil {
		fmt.Fprintln(p.stderr, "switchboard:", err)
		return 2
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	if err := parsed.Run(p); err != nil {
		fmt.Fprintln(p.stderr, "switchboard:", err)
		var bad *configError
		if errors.As(err, &bad) {
			return 2
		}
		return 1
	}
	return 0
}
