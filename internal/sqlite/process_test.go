package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/record/recordtest"
	"switchboard/internal/sqlite"
)

// The tests of this file start the test binary again as other processes on the same file.
// A child's job and arguments are in its environment.
const childEnv = "SWITCHBOARD_SQLITE_TEST_CHILD"

func TestMain(m *testing.M) {
	if job := os.Getenv(childEnv); job != "" {
		if err := child(strings.Split(job, "\n")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	processes = 4
	rounds    = 25
	eachUsage = 50
)

// child does one process's part. It waits for a line on stdin, so that all start at once,
// and prints what it won.
func child(args []string) error {
	job, path, id := args[0], args[1], args[2]
	if job == "fresh" { // the file itself is what they race for
		fmt.Println("ready")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		return err
	}
	if job != "fresh" {
		fmt.Println("ready")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	}
	claims, switches := 0, 0
	for round := range rounds {
		session := fmt.Sprint("round-", round)
		got, err := db.Assign(ctx, pin(session, "provider-"+id), nil, now, idle)
		if err == nil {
			claims++
		} else if !errors.Is(err, affinity.ErrConflict) {
			return err
		}
		if got, err = db.Confirm(ctx, got, now, idle); err != nil && !errors.Is(err, affinity.ErrConflict) {
			return err
		}
		// Everybody wants to leave the pin as it was first confirmed: one may.
		read := got
		read.Epoch = 1
		move := affinity.Move{To: affinity.Target{Provider: "next", KeyID: id, Model: "real"}, RequestID: session + id, CostNanoUSD: 7}
		switch _, err = db.IncrementSwitch(ctx, read, move, now, idle); {
		case err == nil:
			switches++
		case !errors.Is(err, affinity.ErrConflict):
			return err
		}
		event := recordtest.Full(1000*round + len(id))
		event.EventID = fmt.Sprint(id, "-", round)
		if err := db.Record(ctx, &event); err != nil {
			return err
		}
		// The same event from every process is one event.
		shared := recordtest.Full(round)
		if err := db.Record(ctx, &shared); err != nil {
			return err
		}
	}
	for range eachUsage {
		if err := db.AddUsage(ctx, pin("shared", "").Ref, affinity.Usage{InputTokens: 10, OutputTokens: 1}, now, idle); err != nil {
			return err
		}
	}
	if job == "forever" {
		if err := db.Flush(ctx); err != nil {
			return err
		}
		return forever(ctx, db, id)
	}
	if err := db.Close(ctx); err != nil {
		return err
	}
	fmt.Println("claims", claims)
	fmt.Println("switches", switches)
	return nil
}

// forever writes until it is killed, and says what it has been told is committed.
func forever(ctx context.Context, db *sqlite.DB, id string) error {
	for n := 0; ; n++ {
		session := fmt.Sprintf("%s-%d", id, n)
		p := pin(session, "a")
		p.Served = true
		got, err := db.Assign(ctx, p, nil, now, idle)
		if err != nil {
			return err
		}
		move := affinity.Move{To: affinity.Target{Provider: "b", KeyID: "k", Model: "real"}, RequestID: session}
		if _, err := db.IncrementSwitch(ctx, got, move, now, idle); err != nil {
			return err
		}
		event := recordtest.Full(n)
		event.EventID = session
		if err := db.Record(ctx, &event); err != nil {
			return err
		}
		fmt.Println("switched", session)
	}
}

// process is a running child.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, job, path, id string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join([]string{job, path, id}, "\n"))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &process{cmd: cmd, in: in, out: bufio.NewScanner(out)}
}

// expect reads lines until one with this prefix and returns the rest of it.
func (p *process) expect(t *testing.T, prefix string) string {
	t.Helper()
	for p.out.Scan() {
		if rest, ok := strings.CutPrefix(p.out.Text(), prefix); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("process ended before it said %q: %v", prefix, p.cmd.Wait())
	return ""
}

func (p *process) number(t *testing.T, prefix string) int {
	t.Helper()
	n, err := strconv.Atoi(p.expect(t, prefix))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// together starts the processes at once and lets them do job until they end.
func together(t *testing.T, job, path string) (claims, switches int) {
	t.Helper()
	var all []*process
	for id := range processes {
		all = append(all, start(t, job, path, fmt.Sprint("p", id)))
	}
	for _, p := range all {
		p.expect(t, "ready")
	}
	for _, p := range all {
		fmt.Fprintln(p.in)
	}
	for _, p := range all {
		claims += p.number(t, "claims")
		switches += p.number(t, "switches")
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("process: %v", err)
		}
	}
	return claims, switches
}

// verify checks what any interleaving of n processes' parts must leave behind.
func verify(t *testing.T, db *sqlite.DB, n int) {
	t.Helper()
	for round := range rounds {
		session := fmt.Sprint("round-", round)
		got, err := db.Lookup(t.Context(), pin(session, "").Ref, now)
		if err != nil || got.SwitchCount != 1 || got.SwitchCostNanoUSD != 7 || got.Epoch != 2 || got.Provider != "next" {
			t.Errorf("Lookup(%q) = %+v, %v, want one switch", session, got, err)
		}
	}
	got, err := db.Lookup(t.Context(), pin("shared", "").Ref, now)
	if want := int64(n * eachUsage); err != nil || got.Requests != want || got.InputTokens != 10*want || got.OutputTokens != want {
		t.Errorf("Lookup(shared) = %+v, %v, want %d requests", got, err, want)
	}
	if found, want := len(readEvents(t, db.Path())), rounds*(n+1); found < want {
		t.Errorf("%d events, want at least %d", found, want)
	}
}

func TestSDB02SDB03ProcessesShareOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := open(t, path, nil)
	claim(t, db, "shared", "a")
	claims, switches := together(t, "work", path)
	if claims != rounds || switches != rounds {
		t.Errorf("%d claims and %d switches won over all processes, want %d of each", claims, switches, rounds)
	}
	verify(t, db, processes)
	if found, want := len(readEvents(t, path)), rounds*(processes+1); found != want {
		t.Errorf("%d events, want %d", found, want)
	}
}

// All processes meet a path where there is nothing yet, or only damage.
func TestProcessesOpenAFreshFileAtOnce(t *testing.T) {
	for _, content := range []string{"", "damaged, not a database"} {
		for range 3 {
			dir := t.TempDir()
			path := filepath.Join(dir, "state", "sessions.db")
			if content != "" {
				if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				write(t, path, []byte(content))
			}
			if claims, switches := together(t, "fresh", path); claims != rounds || switches != rounds {
				t.Errorf("%q: %d claims and %d switches won over all processes, want %d of each", content, claims, switches, rounds)
			}
		}
	}
}

// One process is killed in the middle of its writes. Whatever it was told is there, the
// others' work is whole, and the file is sound.
func TestKilledProcessTakesNothingWithIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := open(t, path, nil)
	claim(t, db, "shared", "a")
	victim := start(t, "forever", path, "victim")
	victim.expect(t, "ready")
	fmt.Fprintln(victim.in)
	done := make(chan struct{})
	var told []string
	go func() {
		defer close(done)
		for victim.out.Scan() {
			if session, ok := strings.CutPrefix(victim.out.Text(), "switched "); ok {
				if told = append(told, session); len(told) == 200 {
					_ = victim.cmd.Process.Kill()
				}
			}
		}
	}()
	together(t, "work", path)
	<-done
	_ = victim.cmd.Wait()
	if len(told) < 200 {
		t.Fatalf("the victim ended after %d switches", len(told))
	}

	check := func(db *sqlite.DB) {
		t.Helper()
		for _, session := range told {
			got, err := db.Lookup(t.Context(), pin(session, "").Ref, now)
			if err != nil || got.Provider != "b" || got.SwitchCount != 1 {
				t.Errorf("Lookup(%q) = %+v, %v, want the committed switch", session, got, err)
			}
		}
		verify(t, db, processes+1)
	}
	check(db)
	if rows := sql(t, rawConn(t, path), "PRAGMA integrity_check"); rows[0]["integrity_check"] != "ok" {
		t.Errorf("integrity_check = %v", rows)
	}
	check(open(t, path, nil))
}
