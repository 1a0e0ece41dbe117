//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"switchboard/internal/fleettest"
)

// A process that is killed in mid-stream takes nothing with it that another process or the
// next start needs: pins, counts and the file stay right.
func TestKillInMidStream(t *testing.T) {
	s := newStack(t)
	first, second := s.board(), s.board()

	served := request{board: first, session: "k1"}.ok(t).provider()
	other := request{board: second, session: "k2"}.ok(t).provider()
	s.thread("k1", 1)

	for _, u := range s.upstreams() {
		u.control(`{"gap_ms": 20, "chunks": 500}`)
	}
	doomed := request{board: first, session: "k1"}.begin(t)
	survivor := request{board: second, session: "k2"}.begin(t)
	first.Signal(syscall.SIGKILL)
	if text, err := doomed.rest(); err == nil || strings.Contains(text, "[DONE]") {
		t.Errorf("the killed process's stream ended with %v, %q; it must look cut", err, text[max(0, len(text)-40):])
	}
	for _, u := range s.upstreams() {
		u.control(`{}`)
	}
	survivor.Body.Close()
	s.thread("k2", 2)

	// The other process goes on, with the killed one's session too.
	for range 3 {
		if got := (request{board: second, session: "k1"}).ok(t).provider(); got != served {
			t.Errorf("session k1 of the killed process is on %s, want %s", got, served)
		}
		if got := (request{board: second, session: "k2"}).ok(t).provider(); got != other {
			t.Errorf("session k2 is on %s, want %s", got, other)
		}
	}
	// And so does the next start.
	third := s.board()
	if got := (request{board: third, session: "k1"}).ok(t).provider(); got != served {
		t.Errorf("after a restart session k1 is on %s, want %s", got, served)
	}
	for session, events := range map[string]int{"k1": 5, "k2": 5} { // k1: the killed request left none
		thread := s.thread(session, events)
		if n := distinct(thread, "provider_identity", "key_id"); n != 1 {
			t.Errorf("session %s was on %d provider keys, want 1", session, n)
		}
		want(t, session, s.pin(session), "switch_count", "0", "provider_identity", thread[0]["provider_identity"], "key_id", thread[0]["key_id"])
	}
	fleettest.Eventually(t, "usage of k1", func() bool { return s.pin("k1")["total_requests"] == "5" })
	want(t, "usage of k1", s.pin("k1"), "total_input_tokens", "5000", "total_output_tokens", "100")
	if check := s.rows(`PRAGMA integrity_check`); len(check) != 1 || check[0]["integrity_check"] != "ok" {
		t.Errorf("integrity_check: %v", check)
	}
}

// A session that is claimed and never served, because the process died, is no trap for the
// next request.
func TestKillBeforeFirstOutput(t *testing.T) {
	s := newStack(t)
	first, second := s.board(), s.board()
	for _, u := range s.upstreams() {
		u.control(`{"delay_ms": 2000}`)
	}
	go func() {
		if response, err := (request{board: first, session: "claimed"}).open(t); err == nil {
			response.Body.Close()
		}
	}()
	fleettest.Eventually(t, "the claim", func() bool {
		return len(s.pins("claimed")) == 1
	})
	first.Signal(syscall.SIGKILL)
	for _, u := range s.upstreams() {
		u.control(`{}`)
	}
	served := request{board: second, session: "claimed"}.ok(t)
	want(t, "pin", s.pin("claimed"), "provider_identity", served.provider(), "switch_count", "0", "is_active", "1")
}

// Many requests of one session over two processes see its provider fail at once: the
// session moves once, it is counted once, and all are served.
func TestSwitchCountedOnceOverProcesses(t *testing.T) {
	s := newStack(t)
	boards := []*process{s.board(), s.board()}
	const session, parallel = "contended", 24
	served := request{board: boards[0], session: session}.ok(t).provider()
	s.thread(session, 1)

	s.provider(served).control(`{"status": 503}`)
	var group sync.WaitGroup
	for i := range parallel {
		group.Go(func() { request{board: boards[i%2], session: session, stream: i%3 == 0}.ok(t) })
	}
	group.Wait()
	thread := s.thread(session, 1+parallel)
	if n := count(thread, "switched", "1"); n != 1 {
		t.Errorf("%d events say switched, want 1", n)
	}
	if n := distinct(thread[1:], "provider_identity", "key_id"); n != 1 {
		t.Errorf("after the failure the session was on %d provider keys, want 1", n)
	}
	want(t, "pin", s.pin(session), "switch_count", "1", "provider_identity", thread[1]["provider_identity"], "key_id", thread[1]["key_id"])

	// It stays there when the old one has recovered (DESIGN 11.3).
	s.provider(served).control(`{}`)
	for _, board := range boards {
		if got := (request{board: board, session: session}).ok(t).provider(); got == served {
			t.Errorf("the session went back to %s", served)
		}
	}
}

// The first requests of a session come in a burst over two processes: they all meet on one
// provider and key.
func TestFirstBurstOverProcesses(t *testing.T) {
	s := newStack(t)
	boards := []*process{s.board(), s.board()}
	var group sync.WaitGroup
	const sessions, parallel = 6, 6
	for i := range sessions * parallel {
		group.Go(func() { request{board: boards[i%2], session: fmt.Sprintf("burst-%d", i/parallel)}.ok(t) })
	}
	group.Wait()
	for i := range sessions {
		session := fmt.Sprintf("burst-%d", i)
		thread := s.thread(session, parallel)
		if n := distinct(thread, "provider_identity", "key_id"); n != 1 {
			t.Errorf("%s: a burst was served by %d provider keys, want 1", session, n)
		}
		want(t, session, s.pin(session), "switch_count", "0")
	}
}

// One dead key among two is left; the session moves to the other and stays there.
func TestDeadKeyMovesTheSession(t *testing.T) { onEachTarget(t, deadKeyMovesTheSession) }

func deadKeyMovesTheSession(t *testing.T, s *stack, board gateway, _ target) {
	ask := request{board: board, path: "/v1/messages", session: "keys", body: `{"model":"m-ant","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`}
	ask.ok(t)
	before := s.thread("keys", 1)[0]["key_id"]
	dead := upstreamKeys("n")[map[string]int{"one": 0, "two": 1}[before]]
	s.n.control(fmt.Sprintf(`{"status": 401, "key": %q}`, dead))
	ask.ok(t)
	ask.ok(t)
	thread := s.thread("keys", 3)
	want(t, "the move", thread[1], "switched", "1", "decision_reason", "fallback", "outcome", "ok")
	want(t, "after the move", thread[2], "switched", "0", "decision_reason", "affinity", "key_id", thread[1]["key_id"])
	if thread[1]["key_id"] == before {
		t.Errorf("the session is still on the dead key %s", before)
	}
	want(t, "pin", s.pin("keys"), "switch_count", "1")

	s.n.control(`{"status": 401}`) // now all are dead: our credentials, not the client's
	refused := ask.do(t)
	kind, shape := errorType(t, refused.body)
	if refused.status != 502 || shape != "anthropic" {
		t.Errorf("all keys dead: %d %s %s, want 502 in Anthropic's shape: %s", refused.status, shape, kind, refused.body)
	}
}

// SIGTERM finishes a running stream, refuses new connections, and loses no event.
func TestGracefulStop(t *testing.T) {
	s := newStack(t)
	board := s.board()
	const quick = 20
	for i := range quick {
		request{board: board, session: fmt.Sprintf("quick-%d", i)}.ok(t)
	}
	for _, u := range s.upstreams() {
		u.control(`{"gap_ms": 20, "chunks": 50}`)
	}
	stream := request{board: board, session: "last"}.begin(t)
	board.Cmd.Process.Signal(syscall.SIGTERM)
	text, err := stream.rest()
	if err != nil || !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Errorf("the running stream ended with %v, %q; it must be whole\n%s", err, text[max(0, len(text)-60):], board.tail())
	}
	<-board.Exited
	if code := board.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d, want 0\n%s", code, board.tail())
	}
	if n := len(s.kept.events()); n != quick+1 {
		t.Errorf("%d events in the database, want %d", n, quick+1)
	}
	want(t, "the last event", s.thread("last", 1)[0], "outcome", "ok", "usage_quality", "exact", "output_tokens", "20")
	want(t, "the last pin", s.pin("last"), "total_requests", "1", "total_input_tokens", "1000")
}

// Sessions find their provider and key again after a restart, although round robin would
// send them elsewhere.
func TestRestartKeepsSessions(t *testing.T) {
	s := newStack(t)
	board := s.board()
	const sessions = 12
	for i := range sessions {
		request{board: board, session: fmt.Sprintf("s-%d", i)}.ok(t)
	}
	board.Signal(syscall.SIGTERM)
	board = s.board()
	for i := range sessions {
		request{board: board, session: fmt.Sprintf("s-%d", sessions-1-i)}.ok(t)
	}
	providers := map[string]bool{}
	for i := range sessions {
		thread := s.thread(fmt.Sprintf("s-%d", i), 2)
		providers[thread[0]["provider_identity"]] = true
		if n := distinct(thread, "provider_identity", "key_id"); n != 1 {
			t.Errorf("session s-%d moved over a restart: %v", i, thread)
		}
	}
	if len(providers) != 2 {
		t.Errorf("%d providers served, want 2: the test shows nothing otherwise", len(providers))
	}
}

// A damaged database is put aside and the start goes on.
func TestCorruptDatabase(t *testing.T) {
	s := newStack(t)
	garbage := strings.Repeat("this is no database. ", 400)
	if err := os.WriteFile(s.path("sessions.db"), []byte(garbage), 0o600); err != nil {
		t.Fatal(err)
	}
	board := s.board()
	request{board: board, session: "fresh"}.ok(t)
	s.thread("fresh", 1)
	aside, err := filepath.Glob(s.path(".sessions.db.corrupted*"))
	if err != nil || len(aside) == 0 {
		t.Fatalf("nothing is put aside: %v", err)
	}
	if kept, err := os.ReadFile(aside[0]); err != nil || string(kept) != garbage {
		t.Errorf("%s is not the damaged file: %v", aside[0], err)
	}
}

// The first two commands of the README.
func TestDemo(t *testing.T) {
	p := start(t, fleettest.Stderr, fleettest.Listening, "switchboard", "serve", "--demo", "--listen", "127.0.0.1:0")
	waitHealthy(t, p)
	for _, model := range []string{"demo", "smart"} {
		a := request{board: p, session: "demo", model: model, key: "none needed"}.ok(t)
		if a.provider() == "" {
			t.Errorf("%s: no provider header: %v", model, a.header)
		}
	}
	dir, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "switchboard"), "demo").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "fallback") {
		t.Errorf("switchboard demo: %v; no fallback in:\n%s", err, out)
	}
}
