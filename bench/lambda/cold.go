package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"time"

	"switchboard/internal/emulator"
)

// account is AWS on this machine with what the functions use.
func account() (*emulator.Cloud, *httptest.Server, error) {
	cloud := emulator.New(emulator.Options{})
	server := httptest.NewServer(cloud)
	return cloud, server, seed(cloud)
}

// routeEnv is the environment of a deployed route function.
func (b *bench) routeEnv(file, endpoint, upstream string) ([]string, error) {
	if err := os.WriteFile(b.path(file), []byte(configText(upstream)), 0o600); err != nil {
		return nil, err
	}
	return []string{
		"SWITCHBOARD_CONFIG=" + b.path(file), "SESSION_TABLE=session_affinity", "STATE_TABLE=switchboard_state",
		"EVENTS_STREAM=events", "AWS_ENDPOINT_URL=" + endpoint, "AWS_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
	}, nil
}

// coldStarts compares exec to first /next of the route function, with its stores there, and of
// a function that does nothing; and the size of what is deployed.
func (b *bench) coldStarts(ctx context.Context) ([]bar, error) {
	_, server, err := account()
	if err != nil {
		return nil, err
	}
	defer server.Close()
	plain, err := b.routeEnv("plain.yaml", server.URL, "http://127.0.0.1:9")
	if err != nil {
		return nil, err
	}
	secure, err := b.routeEnv("secure.yaml", server.URL, "https://127.0.0.1:9")
	if err != nil {
		return nil, err
	}
	took := map[string][]time.Duration{}
	for range b.starts {
		for _, one := range []struct {
			name, path string
			env        []string
		}{{"bare", b.path("bare"), nil}, {"route", b.path("route/bootstrap"), plain}, {"secure", b.path("route/bootstrap"), secure}} {
			began := time.Now()
			f, err := startFunction(ctx, one.path, one.env...)
			if err != nil {
				return nil, err
			}
			select {
			case at := <-f.polled:
				took[one.name] = append(took[one.name], at.Sub(began))
			case <-time.After(10 * time.Second):
				err = errors.New(one.name + " does not start")
			}
			f.stop()
			if err != nil {
				return nil, err
			}
		}
	}
	info, err := os.Stat(b.path("route/bootstrap"))
	if err != nil {
		return nil, err
	}
	return []bar{
		ratio("exec to first /next, against a bare aws-lambda-go function", p50(took["bare"]), p50(took["route"]), 2),
		ratio("the same with a provider over TLS, whose roots are loaded as well", p50(took["bare"]), p50(took["secure"]), 0),
		{name: "route bootstrap", got: float64(info.Size()) / 1e6, most: 9, unit: "MB"},
	}, nil
}
