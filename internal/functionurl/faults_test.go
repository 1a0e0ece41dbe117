package functionurl

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// script makes what testdata/faults understands.
func script(lines ...string) io.Reader { return strings.NewReader(strings.Join(lines, "\n")) }

func write(text string) string { return "write " + strconv.Quote(text) }

const nul = "\x00\x00\x00\x00\x00\x00\x00\x00"

func well(text string) []string {
	return []string{"open -", write(`{"statusCode":200}` + nul), write(text), "close"}
}

// TestFaults: what the client sees of what a runtime does wrong, and that the next request is
// served, by the same process or by a new one.
func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		name   string
		steps  []string
		status int
		body   string
		cut    bool
		fresh  bool // the next request needs another process
	}{
		{"crash before the response", []string{"exit 3"}, 502, "Internal Server Error", false, true},
		{"clean exit before the response", []string{"exit 0"}, 502, "Internal Server Error", false, true},
		{"crash before the prelude", []string{"open -", "exit 3"}, 502, "Internal Server Error", false, true},
		{"crash in the prelude", []string{"open -", write(`{"statusCode"`), "exit 3"}, 502, "Internal Server Error", false, true},
		{"crash after the prelude", []string{"open -", write(`{"statusCode":201}` + nul), "exit 3"}, 201, "", true, true},
		{"crash in the stream", []string{"open -", write(`{}` + nul + "one"), write("two"), "exit 3"}, 200, "onetwo", true, true},
		{"answer, then crash", append(well("whole"), "exit 3"), 200, "whole", false, true},
		{"connection broken", []string{"open -", write(`{}` + nul + "one"), "abort"}, 200, "one", true, false},
		{"connection broken before output", []string{"open -", "abort"}, 502, "Internal Server Error", false, false},
		{"error trailers", []string{"open -", write(`{}` + nul + "one"), "trailer Some.Error e30="}, 200, "one", true, false},
		{"error trailers before output", []string{"open -", "trailer Some.Error e30="}, 502, "Internal Server Error", false, false},
		{"error report", []string{`error "{\"errorType\":\"X\"}"`}, 502, "Internal Server Error", false, false},
		{"no answer at all", nil, 502, "Internal Server Error", false, false},
		{"empty stream", []string{"open -", "close"}, 502, "Internal Server Error", false, false},
		{"prelude alone", []string{"open -", write(`{"statusCode":204}` + nul), "close"}, 204, "", false, false},
		{"prelude without a separator", []string{"open -", write(`{"statusCode":200}`), "close"}, 502, "Internal Server Error", false, false},
		{"seven zero bytes", []string{"open -", write(`{"statusCode":200}` + nul[:7] + "text"), "close"}, 502, "Internal Server Error", false, false},
		{"prelude of garbage", []string{"open -", write("<html>" + nul + "text"), write("more"), "close"}, 502, "Internal Server Error", false, false},
		{"prelude with a 1xx", []string{"open -", write(`{"statusCode":103}` + nul + "text"), "close"}, 502, "Internal Server Error", false, false},
		{"prelude too long", []string{"open -", write("{" + strings.Repeat(" ", maxPrelude) + "}" + nul + "text"), "close"}, 502, "Internal Server Error", false, false},
		{"prelude of the longest", []string{"open -", write("{" + strings.Repeat(" ", maxPrelude-2) + "}" + nul + "text"), "close"}, 200, "text", false, false},
		{"prelude of the longest, cut in the separator", []string{"open -", write("{" + strings.Repeat(" ", maxPrelude-2) + "}" + nul[:3]), write(nul[3:] + "text"), "close"}, 200, "text", false, false},
		{"prelude without end", []string{"open -", write(strings.Repeat(" ", 3*maxPrelude)), "close"}, 502, "Internal Server Error", false, false},
		{"zero bytes in the body", []string{"open -", write(`{}` + nul + nul + "a" + nul), "close"}, 200, nul + "a" + nul, false, false},
		{"stream without a prelude", []string{"open raw", write("text"), write("more"), "close"}, 200, "textmore", false, false},
		{"stream of JSON without a prelude", []string{"open raw", write(`{"a":`), write("1}"), "close"}, 200, `{"a":1}`, false, false},
		{"stream with a prelude, type unsaid", []string{"open raw", write(`{"statusCode":201}` + nul + "text"), "close"}, 201, "text", false, false},
		{"empty stream without a prelude", []string{"open raw", "close"}, 200, "", false, false},
		{"text for an answer", []string{`post - "text"`}, 200, "text", false, false},
		{"buffered answer of garbage", []string{`post - "{\"statusCode\":\"x\"}"`}, 502, "Internal Server Error", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := start(t, "faults", Options{Timeout: 10 * time.Second})
			status, body, err := f.send(t, "POST", "/", script(tt.steps...))
			if status != tt.status || body != tt.body || (err != nil) != tt.cut {
				t.Errorf("response = %d %q %v, want %d %q, cut %v", status, body, err, tt.status, tt.body, tt.cut)
			}
			status, body, err = f.send(t, "POST", "/", script(well("next")...))
			if status != 200 || body != "next" || err != nil {
				t.Errorf("the next = %d %q %v, want 200 next", status, body, err)
			}
			want := 1
			if tt.fresh {
				want = 2
			}
			if got := f.Stats().ColdStarts; got != want {
				t.Errorf("ColdStarts = %d, want %d", got, want)
			}
		})
	}
}

func TestPreludeCutAnywhere(t *testing.T) {
	f := start(t, "faults", Options{})
	text := `{"statusCode":201,"headers":{"x-a":"é"}}` + nul + "body"
	for i := 1; i < len(text); i++ {
		status, body, err := f.send(t, "POST", "/", script("open -", write(text[:i]), write(text[i:]), "close"))
		if status != 201 || body != "body" || err != nil {
			t.Errorf("cut at %d: %d %q %v, want 201 body", i, status, body, err)
		}
	}
	steps := []string{"open -"}
	for i := range len(text) {
		steps = append(steps, write(text[i:i+1]))
	}
	if status, body, err := f.send(t, "POST", "/", script(append(steps, "close")...)); status != 201 || body != "body" || err != nil {
		t.Errorf("byte by byte: %d %q %v, want 201 body", status, body, err)
	}
}

func TestAnswersOfTheRuntimeAPI(t *testing.T) {
	f := start(t, "faults", Options{})
	f.send(t, "POST", "/", script(append(well("x"), `post - "twice"`, `post nobody "x"`, `error "{}"`)...))
	f.send(t, "POST", "/", script(well("y")...))
	until(t, "four answers", func() bool { return strings.Contains(f.logs.String(), "error: ") })
	for _, want := range []string{"answer: 202 ", "post: 403 ", "post: 400 ", "error: 403 "} {
		if !strings.Contains(f.logs.String(), want) {
			t.Errorf("no %q in the logs", want)
		}
	}
}

func TestErrorReportInTheStreamChangesNothing(t *testing.T) {
	f := start(t, "faults", Options{})
	g := newGate(t)
	resp := f.request(t, "POST", "/", strings.Join([]string{"open -", write("{}" + nul + "one"), "wait " + g.addr(), `error "{}"`, write("two"), "close"}, "\n"))
	g.reached(t).Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "onetwo" || err != nil {
		t.Errorf("body = %q, %v, want onetwo to a clean end", body, err)
	}
}

func TestTimeout(t *testing.T) {
	const limit = 150 * time.Millisecond
	for _, tt := range []struct {
		name   string
		steps  []string
		status int
		body   string
		cut    bool
	}{
		{"before output", []string{"hang"}, 502, "Internal Server Error", false},
		{"in the prelude", []string{"open -", write("{"), "hang"}, 502, "Internal Server Error", false},
		{"in the stream", []string{"open -", write("{}" + nul + "one"), "hang"}, 200, "one", true},
		{"in the tail", append(well("whole"), "hang"), 200, "whole", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := start(t, "faults", Options{Timeout: limit})
			began := time.Now()
			status, body, err := f.send(t, "POST", "/", script(tt.steps...))
			if status != tt.status || body != tt.body || (err != nil) != tt.cut {
				t.Errorf("response = %d %q %v, want %d %q, cut %v", status, body, err, tt.status, tt.body, tt.cut)
			}
			until(t, "timed out", func() bool { return strings.Contains(f.logs.String(), "Task timed out after 0.15 seconds") })
			if took := time.Since(began); took < limit {
				t.Errorf("killed after %v, want at the deadline", took)
			}
			until(t, "empty", func() bool { return f.Stats().Environments[0].State == Empty })
			if status, body, _ := f.send(t, "POST", "/", script(well("next")...)); status != 200 || body != "next" {
				t.Errorf("the next = %d %q, want 200 next", status, body)
			}
		})
	}
}

func TestInitFaults(t *testing.T) {
	for mode, log := range map[string]string{
		"init-exit":  "Runtime exited with error: exit status 7",
		"init-error": "Faults.Init",
		"init-hang":  "Phase: init Status: timeout",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := start(t, "faults", Options{Env: []string{"MODE=" + mode}, InitTimeout: 300 * time.Millisecond})
			for i := range 2 {
				if status, body, err := f.send(t, "POST", "/", nil); status != 502 || body != "Internal Server Error" || err != nil {
					t.Errorf("response = %d %q %v, want 502", status, body, err)
				}
				if s := f.Stats(); s.ColdStarts != i+1 {
					t.Errorf("ColdStarts = %d, want %d", s.ColdStarts, i+1)
				}
			}
			if !strings.Contains(f.logs.String(), log) {
				t.Errorf("no %q in the logs", log)
			}
		})
	}
}

func TestProgramThatCannotRun(t *testing.T) {
	f := start(t, "faults", Options{TaskRoot: "/nonexistent"})
	if status, _, _ := f.get(t, "/"); status != 502 {
		t.Errorf("status = %d, want 502", status)
	}
	if _, err := Start(t.Context(), Options{Bootstrap: "/nonexistent"}); err == nil {
		t.Error("Start() of a missing bootstrap = nil, want an error")
	}
	if _, err := Start(t.Context(), Options{Bootstrap: bin}); err == nil {
		t.Error("Start() of a directory = nil, want an error")
	}
}

// disconnected sends steps, reads the first line of the answer and leaves.
func disconnected(t *testing.T, f *started, steps ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "POST", f.url, script(steps...))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := f.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); line != "one\n" {
		t.Fatalf("first line = %q, %v, want one", line, err)
	}
	cancel()
}

func TestSLAM07DisconnectIsInvisible(t *testing.T) {
	f := start(t, "faults", Options{Queue: true})
	g := newGate(t)
	disconnected(t, f, "open -", write("{}"+nul+"one\n"), "wait "+g.addr(), write(strings.Repeat("more", 100_000)), write("end"), "close", "log written")
	g.reached(t).Close()
	until(t, "all written", func() bool { return strings.Contains(f.logs.String(), "[0] written") })
	if !strings.Contains(f.logs.String(), "answer: 202") {
		t.Errorf("logs = %s, want the runtime answered 202", f.logs)
	}
	if status, body, _ := f.send(t, "POST", "/", script(well("next")...)); status != 200 || body != "next" || f.Stats().ColdStarts != 1 {
		t.Errorf("the next = %d %q, %d cold starts, want 200 next of the same process", status, body, f.Stats().ColdStarts)
	}
}

func TestSLAM07FailWrites(t *testing.T) {
	t.Run("in the stream", func(t *testing.T) {
		f := start(t, "faults", Options{Queue: true, FailWrites: true})
		disconnected(t, f, "open -", write("{}"+nul+"one\n"), "flood", "log heard")
		until(t, "a failed write", func() bool { return strings.Contains(f.logs.String(), "[0] heard") })
		if status, body, _ := f.send(t, "POST", "/", script(well("next")...)); status != 200 || body != "next" || f.Stats().ColdStarts != 1 {
			t.Errorf("the next = %d %q, want 200 next of the same process", status, body)
		}
	})
	t.Run("before the stream", func(t *testing.T) {
		f := start(t, "faults", Options{Queue: true, FailWrites: true})
		g := newGate(t)
		ctx, cancel := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, "POST", f.url, script("wait "+g.addr(), "open -", "flood", "log heard"))
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			f.client.Do(r)
		}()
		conn := g.reached(t)
		cancel()
		<-gone
		// The front sees the end of the connection in its own time; what the function writes
		// before that is swallowed, what it writes after it fails.
		conn.Close()
		until(t, "a failed write", func() bool { return strings.Contains(f.logs.String(), "[0] heard") })
	})
}

// TestCallerGivesUp: a context that ends for another reason than the client's leaving must not
// look like the end of the answer.
func TestCallerGivesUp(t *testing.T) {
	f := start(t, "faults", Options{Queue: true})
	for _, tt := range []struct {
		name  string
		steps []string
	}{
		{"in the stream", []string{"open -", write("{}" + nul + "one\n")}},
		{"before output", nil},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.ServeHTTP(w, r.WithContext(ctx)) }))
		g := newGate(t)
		result := make(chan error, 1)
		go func() {
			resp, err := front.Client().Post(front.URL, "text/plain", script(append(tt.steps, "wait "+g.addr())...))
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			result <- err
		}()
		conn := g.reached(t)
		cancel()
		if err := <-result; err == nil {
			t.Errorf("%s: a clean end, want a cut", tt.name)
		}
		conn.Close()
		front.Close()
	}
}

func TestTailDoesNotDelayTheClient(t *testing.T) {
	f := start(t, "faults", Options{Queue: true})
	g := newGate(t)
	status, body, err := f.send(t, "POST", "/", script(append(well("whole"), "wait "+g.addr(), "log tail done")...))
	if status != 200 || body != "whole" || err != nil {
		t.Errorf("response = %d %q %v, want 200 whole, while the tail waits", status, body, err)
	}
	conn := g.reached(t)
	if state := f.Stats().Environments[0].State; state != Busy {
		t.Errorf("state in the tail = %s, want busy", state)
	}
	next := make(chan string, 1)
	go func() {
		_, body, _ := f.send(t, "POST", "/", script(well("next")...))
		next <- body
	}()
	until(t, "one waits", func() bool { return f.Stats().Waiting == 1 })
	conn.Close()
	if got := <-next; got != "next" || f.Stats().ColdStarts != 1 {
		t.Errorf("the next = %q with %d cold starts, want next after the tail", got, f.Stats().ColdStarts)
	}
}

func TestSlowClientGetsAll(t *testing.T) {
	f := start(t, "faults", Options{})
	piece := strings.Repeat("0123456789", 10_000)
	steps := []string{"open -", write("{}" + nul)}
	for range 40 {
		steps = append(steps, write(piece))
	}
	resp := f.request(t, "POST", "/", strings.Join(append(steps, "close"), "\n"))
	n, err := io.Copy(io.Discard, resp.Body)
	if n != 4_000_000 || err != nil {
		t.Errorf("read %d bytes, %v, want 4000000", n, err)
	}
	// One that never reads does not hold the timeout or Close up.
	slow := start(t, "faults", Options{Timeout: 300 * time.Millisecond})
	stuck := slow.request(t, "POST", "/", strings.Join([]string{"open -", write("{}" + nul), "flood"}, "\n"))
	until(t, "killed", func() bool { return slow.Stats().Environments[0].State == Empty })
	if _, err := io.Copy(io.Discard, stuck.Body); err == nil {
		t.Error("the rest came to a clean end, want a cut")
	}
	if err := slow.Close(); err != nil {
		t.Error(err)
	}
}
