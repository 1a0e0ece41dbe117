package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/auth"
	"switchboard/internal/config"
	"switchboard/internal/gateway"
	"switchboard/internal/health"
	"switchboard/internal/sqlite"
)

// explainCommand says what would become of a request, without sending it.
type explainCommand struct {
	File      string  `arg:"" name:"file" help:"The request: HTTP text (POST /v1/chat/completions, headers, an empty line, the body), or its JSON body alone. - is standard input."`
	Config    string  `help:"Configuration file." placeholder:"FILE"`
	SessionDB string  `name:"session-db" help:"SQLite file that keeps the sessions; it is only read." placeholder:"FILE"`
	UserPath  *string `help:"Tenant whose request it is; else that of the client key in the request." placeholder:"PATH"`
	Path      string  `help:"Path that the request goes to; of a JSON body it is guessed, /v1/messages never." placeholder:"PATH"`
	JSON      bool    `name:"json" help:"Print the whole explanation as JSON."`
}

// Run explains one request.
func (c *explainCommand) Run(ctx context.Context, p process) error {
	ask, err := c.ask(p)
	if err != nil {
		return err
	}
	cfg, err := config.Load(config.Source{Path: c.Config, Getenv: p.getenv, Environ: p.environ, SessionDB: c.SessionDB})
	if err != nil {
		return &configError{err}
	}
	logger := slog.New(slog.NewTextHandler(p.stderr, nil))
	o, err := cfg.Gateway(logger, nil)
	if err != nil {
		return &configError{err}
	}
	file, err := openPins(cfg, p, logger)
	if err != nil {
		return err
	}
	if file != nil {
		defer file.Close() //nolint:errcheck // it was only read
	}
	// What a running process knows of its providers' health is its own.
	o.Store, o.Aliases, o.Board = filePins{file: file}, fileAliases{file: file}, health.NewBoard(cfg.Degrade)
	explained := gateway.New(o).Explain(ctx, ask)
	if c.JSON {
		encoder := json.NewEncoder(p.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(explained)
	}
	return printExplanation(p.stdout, &explained)
}

// openPins opens the database file, if there is one; nil: there is none, and no pin.
func openPins(cfg *config.Config, p process, logger *slog.Logger) (*sqlite.ReadOnly, error) {
	path := cfg.SessionDBPath
	if path == "" {
		home, _ := os.UserHomeDir() //nolint:errcheck // DefaultPath says what is missing
		var err error
		if path, err = sqlite.DefaultPath(runtime.GOOS, p.getenv, home); err != nil {
			return nil, &configError{err}
		}
	}
	file, err := sqlite.OpenReadOnly(path, logger)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return file, err
}

// filePins is a store that can only look; the methods that it embeds are none.
type filePins struct {
	affinity.Store
	file *sqlite.ReadOnly
}

func (f filePins) Lookup(ctx context.Context, ref affinity.Ref, now time.Time) (affinity.Pin, error) {
	if f.file == nil {
		return affinity.Pin{}, affinity.ErrNotFound
	}
	return f.file.Lookup(ctx, ref, now)
}

type fileAliases struct {
	affinity.Aliases
	file *sqlite.ReadOnly
}

func (f fileAliases) LookupAlias(ctx context.Context, responseID string, now time.Time) (affinity.Alias, error) {
	if f.file == nil {
		return affinity.Alias{}, affinity.ErrNotFound
	}
	return f.file.LookupAlias(ctx, responseID, now)
}

func (c *explainCommand) ask(p process) (gateway.Ask, error) {
	var text []byte
	var err error
	if c.File == "-" {
		text, err = io.ReadAll(p.stdin)
	} else {
		text, err = os.ReadFile(c.File)
	}
	if err != nil {
		return gateway.Ask{}, err
	}
	ask, err := parseAsk(text)
	if err != nil {
		return ask, &configError{fmt.Errorf("%s: %w", c.File, err)}
	}
	if c.Path != "" {
		ask.Path = c.Path
	}
	if c.UserPath != nil {
		path, err := auth.ParseUserPath(*c.UserPath)
		if err != nil {
			return ask, &configError{fmt.Errorf("--user-path is %w", err)}
		}
		ask.UserPath = &path
	}
	return ask, nil
}

// parseAsk reads a request: HTTP as text, with either kind of line end, or a JSON body alone.
func parseAsk(text []byte) (gateway.Ask, error) {
	ask := gateway.Ask{Method: http.MethodPost, Header: http.Header{}}
	if start := bytes.TrimSpace(text); len(start) == 0 || start[0] == '{' {
		ask.Path, ask.Body = guessPath(text), text
		return ask, nil
	}
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	words := strings.Fields(string(line))
	if len(words) < 2 || len(words) > 3 || !(strings.HasPrefix(words[1], "/") || strings.Contains(words[1], "://")) {
		return ask, errors.New("neither a JSON object nor a request that begins like POST /v1/chat/completions")
	}
	ask.Method, ask.Path = words[0], words[1]
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		header := strings.TrimRight(string(line), "\r")
		if header == "" {
			break
		}
		name, value, ok := strings.Cut(header, ":")
		if !ok {
			return ask, errors.New("a header line without a colon; an empty line ends the headers")
		}
		ask.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	ask.Header.Del("Content-Length") // the body is what is there
	ask.Body = rest
	return ask, nil
}

// guessPath tells by the body where it goes.
func guessPath(body []byte) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) == nil && fields["messages"] == nil && fields["input"] != nil {
		return "/v1/responses"
	}
	return "/v1/chat/completions"
}
