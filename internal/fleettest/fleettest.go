// Package fleettest is what tests of whole programs stand on: AWS, functions behind their URLs,
// processes, and providers that do as they are told.
package fleettest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience bounds every wait for a process; it is long because it only ends failing tests.
const Patience = 30 * time.Second

// binaries is where this process has what Main has built.
func binaries() string { return filepath.Join(os.TempDir(), fmt.Sprintf("fleettest-%d", os.Getpid())) }

// Main builds programs once, statically as they are deployed except for the machine they are
// for, and runs the tests. Programs are packages of this module: "functions/route". It returns
// the exit code.
func Main(m *testing.M, programs ...string) int {
	dir := binaries()
	defer os.RemoveAll(dir) //nolint:errcheck // of no use any more
	var err error
	for _, program := range programs {
		build := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", filepath.Join(dir, path.Base(program)), "switchboard/"+program)
		build.Env = append(build.Environ(), "CGO_ENABLED=0")
		build.Stderr = os.Stderr
		err = errors.Join(err, build.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		return 1
	}
	return m.Run()
}

// Program is the path of a program that Main has built, by the last part of its package.
func Program(name string) string { return filepath.Join(binaries(), name) }

// Eventually waits for what another process does, and fails the test after Patience.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(Patience); !done(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: did not happen within %v", what, Patience)
		}
	}
}

// Log gathers what programs write, at the same time if need be.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Tail is its last lines.
func (l *Log) Tail() string {
	const most = 8
	lines := strings.Split(strings.TrimSpace(l.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
