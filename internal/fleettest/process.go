package fleettest

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Process is a running program that has said where it listens.
type Process struct {
	*exec.Cmd
	Address string        // host:port
	Log     *Log          // its standard error
	Exited  chan struct{} // closed when it has ended
	t       testing.TB
}

// Output says on what a program says where it listens; the other output is its log, or nothing.
type Output int

const (
	Stderr Output = iota
	Stdout
)

// StartProcess runs a program until the test ends. found takes the address out of a line of out.
func StartProcess(t testing.TB, command *exec.Cmd, out Output, found func(line []byte) string) *Process {
	t.Helper()
	p := &Process{Cmd: command, Log: &Log{}, Exited: make(chan struct{}), t: t}
	reader, writer := io.Pipe()
	p.Stdout, p.Stderr = io.Discard, io.MultiWriter(p.Log, writer)
	if out == Stdout {
		p.Stdout, p.Stderr = writer, p.Log
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	go func() {
		lines := bufio.NewReader(reader)
		for {
			line, err := lines.ReadBytes('\n')
			if at := found(line); at != "" {
				address <- at
				break
			}
			if err != nil {
				break
			}
		}
		io.Copy(io.Discard, lines) //nolint:errcheck // a pipe in memory
	}()
	go func() {
		p.Wait()       //nolint:errcheck // ProcessState says how it ended
		writer.Close() //nolint:errcheck // a pipe in memory
		close(p.Exited)
	}()
	t.Cleanup(p.stop)
	select {
	case p.Address = <-address:
	case <-p.Exited:
		t.Fatalf("%s ended: %v\n%s", p.Path, p.ProcessState, p.Log)
	case <-time.After(Patience):
		t.Fatalf("%s says no address\n%s", p.Path, p.Log)
	}
	return p
}

// Listening takes the address out of switchboard's log.
func Listening(line []byte) string {
	var entry struct{ Msg, Address string }
	if json.Unmarshal(line, &entry) != nil || entry.Msg != "listening" {
		return ""
	}
	return entry.Address
}

// URL is its address for a client.
func (p *Process) URL() string { return "http://" + p.Address }

// Signal sends a signal and waits for the end; it returns the exit code.
func (p *Process) Signal(s os.Signal) int {
	p.t.Helper()
	p.Process.Signal(s) //nolint:errcheck // it may have ended already
	select {
	case <-p.Exited:
	case <-time.After(Patience):
		p.Process.Kill() //nolint:errcheck // the test has failed
		p.t.Errorf("%s did not end within %v of %v\n%s", p.Path, Patience, s, p.Log.Tail())
	}
	return p.ProcessState.ExitCode()
}

// stop ends it in order, and looks for what must not be in its log.
func (p *Process) stop() {
	select {
	case <-p.Exited:
	default:
		// net/http's Shutdown waits up to 5 s for a connection that was dialled and never used.
		http.DefaultClient.CloseIdleConnections()
		p.Signal(syscall.SIGTERM)
	}
	if log := p.Log.String(); strings.Contains(log, "DATA RACE") || strings.Contains(log, `"msg":"panic"`) {
		p.t.Errorf("%s: race or panic\n%s", p.Path, log)
	}
}
