package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"text/tabwriter"
	"time"

	"switchboard/internal/config"
	"switchboard/internal/demo"
	"switchboard/internal/record"
	"switchboard/internal/sqlite"
)

type demoCommand struct{}

// demoTurns is how many turns the conversation has; its provider fails from demoFailure on.
const (
	demoTurns   = 6
	demoFailure = 4
)

// Run holds a conversation through a real switchboard whose provider fails half-way, and
// prints the thread as the routing events tell it.
func (demoCommand) Run(ctx context.Context, p process) (err error) {
	dir, providers, stop, err := startDemo()
	if err != nil {
		return err
	}
	defer stop()
	cfg, err := loadDemo(dir, "127.0.0.1:0", providers, p)
	if err != nil {
		return err
	}
	logger := slog.New(slog.DiscardHandler)
	db, err := sqlite.Open(ctx, filepath.Join(dir, "sessions.db"), logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(context.WithoutCancel(ctx))) }()
	thread := &tee{to: db}
	handler, err := newHandler(cfg, db, thread, logger)
	if err != nil {
		return err
	}
	return converse(ctx, handler, providers, thread, p.stdout)
}

// startDemo makes a folder for the demo's files and starts its providers; stop ends both.
func startDemo() (dir string, providers *demo.Providers, stop func(), err error) {
	if dir, err = os.MkdirTemp("", "switchboard-demo-"); err != nil {
		return "", nil, nil, fmt.Errorf("demo: %w", err)
	}
	if providers, err = demo.Start(); err != nil {
		return "", nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, providers, func() {
		providers.Close()
		os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	}, nil
}

// loadDemo loads the demo's configuration through the same door as any other.
func loadDemo(dir, listen string, providers *demo.Providers, p process) (*config.Config, error) {
	path := filepath.Join(dir, "switchboard.yaml")
	if err := os.WriteFile(path, []byte("listen: "+listen+"\nauth: {mode: none}\n"+providers.YAML()), 0o600); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	cfg, err := config.Load(config.Source{Path: path, Getenv: func(name string) string {
		if name == "SWITCHBOARD_LISTEN" || name == "SWITCHBOARD_CONFIG" {
			return ""
		}
		return p.getenv(name)
	}})
	if err != nil {
		return nil, &configError{err}
	}
	return cfg, nil
}

func converse(ctx context.Context, handler http.Handler, providers *demo.Providers, thread *tee, out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		server.Serve(listener) //nolint:errcheck // always ErrServerClosed
	}()
	defer func() { <-stopped }()
	defer server.Close() //nolint:errcheck // nothing of it is needed any more

	fmt.Fprintf(out, "A conversation of %d turns with the model \"smart\"; from turn %d on its provider answers 429.\n\n", demoTurns, demoFailure)
	messages := []map[string]string{{"role": "system", "content": string(bytes.Repeat([]byte("You help with a long program. "), 120))}}
	for turn := 1; turn <= demoTurns; turn++ {
		if turn == demoFailure {
			providers.Fail(thread.last().Provider)
		}
		messages = append(messages, map[string]string{"role": "user", "content": fmt.Sprintf("Question %d.", turn)})
		answer, err := ask(ctx, "http://"+listener.Addr().String(), messages)
		if err != nil {
			return err
		}
		messages = append(messages, map[string]string{"role": "assistant", "content": answer})
	}
	if err := server.Shutdown(ctx); err != nil { // every event is in
		return fmt.Errorf("demo: %w", err)
	}
	return thread.print(out)
}

func ask(ctx context.Context, base string, messages []map[string]string) (string, error) {
	body, err := json.Marshal(map[string]any{"model": "smart", "messages": messages})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("X-Session-Id", "demo-conversation")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("demo: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || len(answer.Choices) == 0 {
		return "", fmt.Errorf("demo: status %d: %w", response.StatusCode, err)
	}
	return answer.Choices[0].Message.Content, nil
}

// tee keeps the events that pass to a recorder.
type tee struct {
	to     record.Recorder
	mu     sync.Mutex
	events []record.Event
}

var _ record.Recorder = (*tee)(nil)

// Record passes the event on and keeps a copy.
func (t *tee) Record(ctx context.Context, event *record.Event) error {
	t.mu.Lock()
	t.events = append(t.events, *event)
	t.mu.Unlock()
	return t.to.Record(ctx, event)
}

func (t *tee) last() record.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.events) == 0 {
		return record.Event{}
	}
	return t.events[len(t.events)-1]
}

func (t *tee) print(out io.Writer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "turn\tprovider\tdecision\tattempts\tinput\tcached\tcost USD\tswitched\tswitches\tswitch cost USD")
	for i, e := range t.events {
		fmt.Fprintf(table, "%d\t%s\t%s\t%d\t%s\t%s\t%s\t%t\t%s\t%s\n", i+1, e.Provider, e.DecisionReason, len(e.Attempts),
			number(e.InputTokens), number(e.CachedInputTokens), usd(e.CostNanoUSD), e.Switched, number(e.SwitchCount), usd(e.SwitchCostNanoUSD))
	}
	return table.Flush()
}

func number(n *int64) string {
	if n == nil {
		return "---"
	}
	return fmt.Sprint(*n)
}

func usd(nano *int64) string {
	if nano == nil {
		return "---"
	}
	return fmt.Sprintf("%d.%09d", *nano/1e9, *nano%1e9)
}
