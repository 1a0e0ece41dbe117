package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/aws/aws-lambda-go/lambdaurl"

	"switchboard/internal/carrier"
	"switchboard/internal/config"
	"switchboard/internal/gateway"
	"switchboard/internal/health"
	"switchboard/internal/mem"
)

// envRole names what this program is when it runs as a function; empty: the benchmark.
const envRole = "BENCH_ROLE"

// answerText is what every function of the comparison answers, about 1 KB.
func answerText() string {
	return `{"id":"chatcmpl-1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("words ", 140) + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":140,"total_tokens":150}}`
}

// play runs the program as a function.
func play(ctx context.Context, role string) error {
	text := answerText()
	bare := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // it is in memory
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, text) //nolint:errcheck // the benchmark sees what is missing
	})
	serve := func(handler http.Handler) error {
		return carrier.Serve(ctx, handler, carrier.Options{Getenv: os.Getenv, Logger: slog.New(slog.DiscardHandler)})
	}
	switch role {
	case "wrap":
		lambdaurl.Start(bare)
		return nil
	case "carrier":
		return serve(bare)
	case "gateway":
		handler, err := instantGateway()
		if err != nil {
			return err
		}
		return serve(handler)
	}
	return fmt.Errorf("unknown role %q", role)
}

// instantGateway is the data plane over a provider and a store that answer at once.
func instantGateway() (*gateway.Gateway, error) {
	file, err := os.CreateTemp("", "bench-*.yaml")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	if _, err := file.WriteString(configText("http://provider.test")); err != nil {
		return nil, err
	}
	cfg, err := config.Load(config.Source{Path: file.Name()})
	if err != nil {
		return nil, err
	}
	logger := slog.New(slog.NewJSONHandler(io.Discard, nil)) //nolint:sloglint // the line is made, as on Lambda
	o, err := cfg.Gateway(logger, nil)
	if err != nil {
		return nil, err
	}
	store := &mem.Store{}
	o.Store, o.Aliases, o.Recorder, o.Board = store, store, forgetful{}, health.NewBoard(cfg.Degrade)
	o.Transport = instantProvider{answerText()}
	return gateway.New(o), nil
}

// instantProvider answers without a network.
type instantProvider struct{ text string }

// RoundTrip implements http.RoundTripper.
func (p instantProvider) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(p.text)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(p.text)),
	}, r.Body.Close()
}
