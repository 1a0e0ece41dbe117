package fleettest

import (
	"context"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"switchboard/internal/functionurl"
)

// Function is a function behind its URL.
type Function struct {
	*functionurl.Function
	URL  string
	Log  *Log
	t    testing.TB
	stop func()
}

// StartFunction runs a function until the test ends, with a folder for temporary files of its
// own. Requests wait for an environment; the timeout is a minute unless o has another.
func StartFunction(t testing.TB, o functionurl.Options) *Function {
	t.Helper()
	f := &Function{Log: &Log{}, t: t}
	o.Logs, o.Queue = f.Log, true
	o.Env = append([]string{"TMPDIR=" + t.TempDir()}, o.Env...)
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	var err error
	// The test's context ends before its cleanups run.
	if f.Function, err = functionurl.Start(context.WithoutCancel(t.Context()), o); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(f.Function)
	f.URL = front.URL
	f.stop = sync.OnceFunc(func() {
		front.CloseClientConnections()
		front.Close()
		if err := f.Function.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if t.Failed() {
			t.Logf("log of the function, its end:\n%s", f.Log.Tail())
		}
	})
	t.Cleanup(f.Stop)
	return f
}

// Stop ends the function; it may be called again.
func (f *Function) Stop() { f.stop() }

// Rest waits until no invocation runs: all that a request leaves is then written.
func (f *Function) Rest() {
	f.t.Helper()
	Eventually(f.t, "rest of all environments", func() bool {
		return !slices.ContainsFunc(f.Stats().Environments, func(e functionurl.Environment) bool {
			return e.State == functionurl.Busy || e.State == functionurl.Starting || e.State == functionurl.Ending
		})
	})
}
