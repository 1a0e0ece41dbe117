//go:build linux

package functionurl

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil && stateOf(pid) != "Z" }

// stateOf is the kernel's letter for a process: S sleeping, T stopped, Z waiting to be reaped.
func stateOf(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[:1]
}

// stopped says whether all threads of a process are: a signal reaches them one by one.
func stopped(pid int) bool {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, task := range tasks {
		id, _ := strconv.Atoi(task.Name())
		if stateOf(id) != "T" {
			return false
		}
	}
	return err == nil
}

// busy occupies an environment until the returned function is called, which waits for the end.
func busy(t *testing.T, f *started) (release func()) {
	t.Helper()
	g := newGate(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.send(t, "POST", "/", script(append([]string{"wait " + g.addr()}, well("done")...)...))
	}()
	conn := g.reached(t)
	return func() {
		conn.Close()
		<-done
	}
}

func TestThrottled(t *testing.T) {
	f := start(t, "faults", Options{Environments: 2})
	one, two := busy(t, f), busy(t, f)
	for range 3 {
		resp := f.request(t, "POST", "/", "")
		body, _ := io.ReadAll(resp.Body)
		want := `{"Reason":"ConcurrentInvocationLimitExceeded","Type":"User","message":"Rate Exceeded."}`
		if resp.StatusCode != 429 || string(body) != want || resp.Header.Get("X-Amzn-Errortype") != "TooManyRequestsException" {
			t.Errorf("response = %d %s %v, want 429 %s", resp.StatusCode, body, resp.Header, want)
		}
	}
	one()
	if status, body, _ := f.send(t, "POST", "/", script(well("next")...)); status != 200 || body != "next" {
		t.Errorf("after the end of one = %d %q, want 200 next", status, body)
	}
	two()
	if s := f.Stats(); s.Throttled != 3 || s.ColdStarts != 2 || s.Invocations != 3 {
		t.Errorf("Stats() = %+v, want 3 throttled, 2 cold starts, 3 invocations", s)
	}
}

// TestPatienceEnds: a tail does not hold the next request for ever.
func TestPatienceEnds(t *testing.T) {
	f := start(t, "faults", Options{})
	g := newGate(t)
	f.send(t, "POST", "/", script(append(well("one"), "wait "+g.addr())...))
	conn := g.reached(t)
	if status, _, _ := f.send(t, "POST", "/", script(well("two")...)); status != 429 {
		t.Errorf("during a long tail = %d, want 429", status)
	}
	conn.Close()
	if status, _, _ := f.send(t, "POST", "/", script(well("three")...)); status != 200 || f.Stats().Throttled != 1 {
		t.Errorf("after it = %d, want 200; %+v", status, f.Stats())
	}
}

func TestQueueInOrder(t *testing.T) {
	var mu sync.Mutex
	var order []string
	f := start(t, "faults", Options{Queue: true, OnInvoke: func(i Invocation) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, i.ID)
	}})
	release := busy(t, f)
	ids := make([]string, 6)
	var clients sync.WaitGroup
	for i := range ids {
		clients.Go(func() {
			ids[i] = f.request(t, "POST", "/", strings.Join(well("x"), "\n")).Header.Get("X-Amzn-Requestid")
		})
		until(t, "it waits", func() bool { return f.Stats().Waiting == i+1 })
	}
	// One that leaves the queue is never run.
	ctx, cancel := context.WithCancel(t.Context())
	clients.Go(func() {
		r, _ := http.NewRequestWithContext(ctx, "POST", f.url, script("log never"))
		f.client.Do(r)
	})
	until(t, "it waits", func() bool { return f.Stats().Waiting == 7 })
	cancel()
	until(t, "it has left", func() bool { return f.Stats().Waiting == 6 })
	release()
	clients.Wait()
	if got, want := strings.Join(order[1:], " "), strings.Join(ids, " "); got != want || strings.Contains(f.logs.String(), "never") {
		t.Errorf("order = %s, want %s", got, want)
	}
}

func TestKill(t *testing.T) {
	f := start(t, "faults", Options{Environments: 2})
	for _, i := range []int{-1, 0, 1, 2} {
		if f.Kill(i) == nil {
			t.Errorf("Kill(%d) without a process = nil, want an error", i)
		}
	}
	f.send(t, "POST", "/", script(well("x")...))
	pid := f.Stats().Environments[0].PID
	if err := f.Kill(0); err != nil || alive(pid) {
		t.Errorf("Kill(0) = %v, process alive: %v, want it gone", err, alive(pid))
	}
	if status, _, _ := f.send(t, "POST", "/", script(well("x")...)); status != 200 || f.Stats().Environments[0].ColdStarts != 2 {
		t.Errorf("after Kill = %d, %+v, want 200 of a new process", status, f.Stats())
	}

	// Only what is in flight in the killed one fails.
	until(t, "idle", func() bool { return f.Stats().Environments[0].State == Idle })
	other := busy(t, f)
	g := newGate(t)
	result := make(chan string, 1)
	go func() {
		status, body, err := f.send(t, "POST", "/", script("open -", write("{}"+nul+"one"), "wait "+g.addr()))
		result <- fmt.Sprintf("%d %s %v", status, body, err != nil)
	}()
	g.reached(t)
	if err := f.Kill(1); err != nil {
		t.Fatal(err)
	}
	if got := <-result; got != "200 one true" {
		t.Errorf("in flight = %s, want 200, one and a cut", got)
	}
	other()
	if s := f.Stats(); s.Environments[0].ColdStarts != 2 || s.Environments[1].State != Empty {
		t.Errorf("Stats() = %+v, want the other environment untouched", s)
	}
}

func TestKilledFromOutside(t *testing.T) {
	f := start(t, "faults", Options{})
	f.send(t, "POST", "/", script(well("x")...))
	syscall.Kill(f.Stats().Environments[0].PID, syscall.SIGKILL)
	until(t, "empty", func() bool { return f.Stats().Environments[0].State == Empty })
	if status, _, _ := f.send(t, "POST", "/", script(well("x")...)); status != 200 || !strings.Contains(f.logs.String(), "signal: killed") {
		t.Errorf("after kill -9 = %d, logs %s, want 200 and the reason", status, f.logs)
	}
}

func TestSLAM06FreezeBetweenInvocations(t *testing.T) {
	f := start(t, "wrapped", Options{Freeze: true, Queue: true})
	for range 5 {
		if status, body, err := f.send(t, "POST", "/echo", strings.NewReader("hello")); status != 200 || body != "hello" || err != nil {
			t.Fatalf("POST /echo = %d %q %v, want 200 hello", status, body, err)
		}
		e := f.Stats().Environments[0]
		until(t, "frozen", func() bool {
			e = f.Stats().Environments[0]
			return e.State == Frozen && stopped(e.PID)
		})
	}
	// While an invocation runs, its tail included, nothing is frozen.
	slow := start(t, "faults", Options{Freeze: true})
	g := newGate(t)
	slow.send(t, "POST", "/", script(append(well("x"), "wait "+g.addr(), "log tail done")...))
	conn := g.reached(t)
	if e := slow.Stats().Environments[0]; e.State != Busy || stateOf(e.PID) == "T" {
		t.Errorf("in the tail: %s, %s, want busy and running", e.State, stateOf(e.PID))
	}
	conn.Close()
	until(t, "frozen", func() bool { return slow.Stats().Environments[0].State == Frozen })
	if !strings.Contains(slow.logs.String(), "tail done") {
		until(t, "tail done", func() bool { return strings.Contains(slow.logs.String(), "tail done") })
	}
	// A frozen one can be killed, and closed.
	pid := slow.Stats().Environments[0].PID
	if err := slow.Kill(0); err != nil || alive(pid) {
		t.Errorf("Kill of a frozen process = %v, alive %v", err, alive(pid))
	}
}

func TestSLAM05BackgroundWorkStopsInTheFreeze(t *testing.T) {
	f := start(t, "faults", Options{Freeze: true})
	g := newGate(t)
	f.send(t, "POST", "/", script(append(well("x"), "background "+g.addr())...))
	until(t, "frozen", func() bool { return f.Stats().Environments[0].State == Frozen })
	pid := f.Stats().Environments[0].PID
	until(t, "stopped", func() bool { return stopped(pid) })
	fmt.Fprintln(g.reached(t), "late")
	if strings.Contains(f.logs.String(), "late") {
		t.Error("background work went on in the freeze")
	}
	f.send(t, "POST", "/", script(well("x")...))
	until(t, "late", func() bool { return strings.Contains(f.logs.String(), "late") })
}

func TestCloseLeavesNothing(t *testing.T) {
	f := start(t, "faults", Options{Environments: 3, Freeze: true})
	f.send(t, "POST", "/", script(append([]string{"spawn"}, well("x")...)...))
	child, _ := strconv.Atoi(regexp.MustCompile(`spawned (\d+) end`).FindStringSubmatch(f.logs.String())[1])
	until(t, "frozen", func() bool { return f.Stats().Environments[0].State == Frozen })
	result := make(chan int, 1)
	g := newGate(t)
	release := busy(t, f)
	go func() {
		status, _, _ := f.send(t, "POST", "/", script("wait "+g.addr(), "hang"))
		result <- status
	}()
	g.reached(t)
	pids := []int{child}
	for _, e := range f.Stats().Environments {
		if e.PID != 0 {
			pids = append(pids, e.PID)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		until(t, "process gone", func() bool { return !alive(pid) })
	}
	if got := <-result; got != 502 {
		t.Errorf("in flight at Close = %d, want 502", got)
	}
	release()
	if status, _, _ := f.send(t, "POST", "/", nil); status != 503 {
		t.Errorf("after Close = %d, want 503", status)
	}
	if err := f.Close(); err != nil {
		t.Errorf("second Close() = %v", err)
	}
}

func TestCloseWhileStartingAndWaiting(t *testing.T) {
	f := start(t, "faults", Options{Queue: true, Env: []string{"MODE=init-hang"}})
	var clients sync.WaitGroup
	for range 3 {
		clients.Go(func() {
			if status, _, _ := f.send(t, "POST", "/", nil); status != 502 && status != 503 {
				t.Errorf("status = %d, want 502 of the process or 503 of the queue", status)
			}
		})
	}
	until(t, "two wait", func() bool { return f.Stats().Waiting == 2 })
	f.Close()
	clients.Wait()
}

func TestContextEndsIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f, err := Start(ctx, Options{Bootstrap: bootstrap("faults")})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	until(t, "closed", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.closed })
	f.Close()
}

func TestSIGTERMForThoseWhoAskForIt(t *testing.T) {
	f := start(t, "wrapped", Options{Env: []string{"MODE=sigterm"}, Freeze: true})
	f.get(t, "/echo")
	f.Close()
	if !strings.Contains(f.logs.String(), "heard SIGTERM") {
		t.Errorf("logs = %q, want that SIGTERM was heard", f.logs)
	}
	deaf := start(t, "faults", Options{})
	deaf.send(t, "POST", "/", script(well("x")...))
	deaf.Close()
	if strings.Contains(deaf.logs.String(), "terminated") {
		t.Error("SIGTERM without an extension, want SIGKILL as on AWS")
	}
}

// TestParentDies: when the program with the Function URL is killed, its processes are too.
func TestParentDies(t *testing.T) {
	if os.Getenv("FUNCTIONURL_PARENT") != "" {
		bin = os.Getenv("FUNCTIONURL_PARENT")
		f := start(t, "wrapped", Options{})
		_, pid, _ := f.get(t, "/pid")
		fmt.Printf("pid %s end\n", pid)
		<-time.After(time.Minute) // to be killed
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self, "-test.run", "^TestParentDies$", "-test.v")
	parent.Env = append(os.Environ(), "FUNCTIONURL_PARENT="+bin)
	out := &output{}
	parent.Stdout = out
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`pid (\d+) end`)
	until(t, "a pid", func() bool { return line.MatchString(out.String()) })
	pid, _ := strconv.Atoi(line.FindStringSubmatch(out.String())[1])
	if !alive(pid) {
		t.Fatal("the function does not run")
	}
	parent.Process.Kill()
	parent.Wait()
	until(t, "the function is gone", func() bool { return !alive(pid) })
}
