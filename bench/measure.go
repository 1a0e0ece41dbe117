package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

const clientKey = "ck-bench-00112233445566778899aabbccddeeff"

// result is the part of load's JSON line that the bars read. Times are microseconds,
// memory is bytes.
type result struct {
	Name     string  `json:"name"`
	Scenario string  `json:"scenario"`
	Rep      int     `json:"rep"`
	Errors   int     `json:"errors"`
	Error    string  `json:"error"`
	PerSec   float64 `json:"per_second"`
	Total50  float64 `json:"total_p50"`
	Lag99    float64 `json:"lag_p99"`
	CPU      float64 `json:"cpu_us"`
	RSSPeak  int64   `json:"rss_peak"`
}

// measurement is everything a run has found.
type measurement struct {
	reps       int
	results    []result
	report     string             // load's own tables
	cold       map[string]float64 // milliseconds from start to first answer, by name
	rssIdle    int64
	binary     int64
	sent, kept int  // requests to switchboard, events in its database
	partial    bool // ONLY left scenarios out
}

func (b *bench) measure(ctx context.Context) (m measurement, err error) {
	m.reps, m.cold, m.partial = b.reps, map[string]float64{}, os.Getenv("ONLY") != ""
	info, err := os.Stat(b.path("switchboard"))
	if err != nil {
		return m, err
	}
	m.binary = info.Size()
	mock, err := b.start(ctx, "mock", freeAddress(), "-addr", "ADDRESS", "-models", "gpt-4o-mini,gpt-4o")
	if err != nil {
		return m, err
	}
	defer mock.stop()
	floor, err := b.start(ctx, "floor", freeAddress(), "-addr", "ADDRESS", "-upstreams", mock.url(), "-parse=false")
	if err != nil {
		return m, err
	}
	defer floor.stop()
	if err := b.configure(mock); err != nil {
		return m, err
	}
	os.Remove(b.path("sessions.db"))
	os.Remove(b.path("sessions.db-wal"))
	os.Remove(b.path("sessions.db-shm"))
	board, err := b.start(ctx, "switchboard", freeAddress(), b.serve("ADDRESS", "sessions.db")...)
	if err != nil {
		return m, err
	}
	defer board.stop()
	if err := b.idle(ctx, board, &m); err != nil {
		return m, err
	}
	if err := b.matrix(ctx, mock, floor, board, &m); err != nil {
		return m, err
	}
	board.stop()
	if m.kept, err = countEvents(b.path("sessions.db")); err != nil {
		return m, err
	}
	return m, b.coldStarts(ctx, mock, &m)
}

func (b *bench) configure(mock *program) error {
	digest := sha256.Sum256([]byte(clientKey))
	text := fmt.Sprintf(`auth:
  keys: [{name: bench, sha256: "%x", user_path: /bench}]
providers:
  mock:
    type: openai
    base_url: %s/v1
    api_keys: [sk-mock-one-0001, sk-mock-two-0002]
    models:
      - {id: gpt-4o-mini, pricing: {input_per_mtok: 0.15, cached_input_per_mtok: 0.075, output_per_mtok: 0.60}}
      - {id: gpt-4o, pricing: {input_per_mtok: 2.50, cached_input_per_mtok: 1.25, output_per_mtok: 10.00}}
`, digest, mock.url())
	return os.WriteFile(b.path("bench.yaml"), []byte(text), 0o600)
}

func (b *bench) serve(address, db string) []string {
	return []string{"serve", "--config", b.path("bench.yaml"), "--session-db", b.path(db), "--listen", address}
}

// idle reads the memory of a process that has answered once and rests.
func (b *bench) idle(ctx context.Context, board *program, m *measurement) error {
	out, err := exec.CommandContext(ctx, b.path("load"), "run", "-url", board.url()+"/v1/chat/completions", "-body", b.path("plain-2k.json"),
		"-n", "1", "-warm", "0", "-c", "1", "-H", "Authorization: Bearer "+clientKey).Output()
	if err != nil {
		return fmt.Errorf("first request: %w", err)
	}
	var one result
	if err := json.Unmarshal(out, &one); err != nil || one.Errors > 0 {
		return fmt.Errorf("first request: %s", out)
	}
	m.sent++
	time.Sleep(2 * time.Second)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", board.cmd.Process.Pid))
	if err != nil {
		return err
	}
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return errors.New("no VmRSS")
	}
	kib, err := strconv.ParseInt(string(found[1]), 10, 64)
	m.rssIdle = kib << 10
	return err
}

// matrix runs bench.sh, which takes every scenario through all targets before the next.
func (b *bench) matrix(ctx context.Context, mock, floor, board *program, m *measurement) error {
	const path = "/v1/chat/completions"
	targets := "direct\t" + mock.url() + path + "\t0\n" +
		fmt.Sprintf("floor\t%s%s\t%d\n", floor.url(), path, floor.cmd.Process.Pid) +
		fmt.Sprintf("switchboard\t%s%s\t%d\tAuthorization: Bearer %s\n", board.url(), path, board.cmd.Process.Pid, clientKey)
	if err := os.WriteFile(b.path("targets.tsv"), []byte(targets), 0o600); err != nil {
		return err
	}
	os.Remove(b.path("bench.jsonl"))
	script := b.tools + "/bench.sh"
	env := []string{"LOAD=" + b.path("load"), "WORK=" + b.keep, "MOCK=" + mock.url()}
	if err := command(ctx, b.keep, env, "bash", script, b.path("targets.tsv"), b.path("bench.jsonl"), strconv.Itoa(b.reps)); err != nil {
		return err
	}
	text, err := os.ReadFile(script)
	if err != nil {
		return err
	}
	for _, s := range scenarios(string(text), os.Getenv("ONLY")) {
		m.sent += s.sent * b.reps
	}
	lines, err := os.ReadFile(b.path("bench.jsonl"))
	if err != nil {
		return err
	}
	for scanner := bufio.NewScanner(bytes.NewReader(lines)); scanner.Scan(); {
		var one result
		if err := json.Unmarshal(scanner.Bytes(), &one); err != nil {
			return err
		}
		m.results = append(m.results, one)
	}
	report, err := exec.CommandContext(ctx, b.path("load"), "report", b.path("bench.jsonl")).Output()
	m.report = string(report)
	return err
}

// scenarios reads what bench.sh sends out of its own text.
func scenarios(script, only string) (list []scenario) {
	filter := regexp.MustCompile(only)
	for _, found := range regexp.MustCompile(`(?m)^\s*each (\S+) \S+ (\d+) \d+ (\d+)`).FindAllStringSubmatch(script, -1) {
		n, _ := strconv.Atoi(found[2])
		warm, _ := strconv.Atoi(found[3])
		if filter.MatchString(found[1]) {
			list = append(list, scenario{found[1], n + warm})
		}
	}
	return list
}

func (b *bench) coldStarts(ctx context.Context, mock *program, m *measurement) error {
	for _, name := range []string{"floor", "switchboard"} {
		address := freeAddress()
		args := []string{"cold", "-name", name, "-times", "15", "-url", "http://" + address + "/v1/chat/completions", "-body", b.path("plain-2k.json")}
		if name == "floor" {
			args = append(args, "--", b.path(name), "-addr", address, "-upstreams", mock.url(), "-parse=false")
		} else {
			args = append(args, "-H", "Authorization: Bearer "+clientKey, "--", b.path(name))
			args = append(args, b.serve(address, "sessions.db")...)
		}
		out, err := exec.CommandContext(ctx, b.path("load"), args...).Output()
		if err != nil {
			return fmt.Errorf("cold start of %s: %w", name, err)
		}
		var one struct {
			Milliseconds float64 `json:"cold_ms"`
		}
		if err := json.Unmarshal(out, &one); err != nil {
			return err
		}
		m.cold[name] = one.Milliseconds
	}
	return nil
}

func countEvents(path string) (n int, err error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	err = sqlitex.Execute(conn, `SELECT count(*) FROM routing_events`, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		n = stmt.ColumnInt(0)
		return nil
	}})
	return n, err
}

// program is one running process of the measurement.
type program struct {
	cmd     *exec.Cmd
	address string
}

func (p *program) url() string { return "http://" + p.address }

// start runs a program until stop; ADDRESS in its arguments is where it listens.
func (b *bench) start(ctx context.Context, name, address string, args ...string) (*program, error) {
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "ADDRESS", address)
	}
	log, err := os.Create(b.path(name + ".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &program{cmd: exec.CommandContext(ctx, b.path(name), args...), address: address}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for range 500 {
		if response, err := http.Get(p.url() + "/"); err == nil {
			io.Copy(io.Discard, response.Body) //nolint:errcheck // it is up
			response.Body.Close()
			return p, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	p.stop()
	return nil, fmt.Errorf("%s does not answer; see %s", name, b.path(name+".log"))
}

// stop ends the process the way that finishes its work; a second call does nothing.
func (p *program) stop() {
	if p.cmd.ProcessState != nil {
		return
	}
	p.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	p.cmd.Wait()                          //nolint:errcheck // mock and floor know no clean end
}

// freeAddress is a loopback address that nobody listens on.
func freeAddress() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:9001"
	}
	defer listener.Close()
	return listener.Addr().String()
}
