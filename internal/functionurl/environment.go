package functionurl

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"time"
)

const (
	// drainTime is how long the connections of a dead process may take to give what they hold.
	drainTime = time.Second
	// endTime is what a process that asked for SIGTERM gets before SIGKILL; AWS gives the same.
	endTime = 500 * time.Millisecond
)

// environment is one process and its Runtime API. The fields in the middle are guarded by
// Function.mu.
type environment struct {
	f       *Function
	number  int
	began   time.Time
	conns   connections
	started chan struct{} // closed when process is known
	exited  chan struct{} // closed when the process is reaped
	gone    chan struct{} // closed when nothing of it is left

	process   *process
	doomed    bool // killed or about to be: takes no more events
	ready     bool // has asked for an event
	frozen    bool
	extension bool // has registered one: gets SIGTERM at the end
	served    int  // events handed out
	load      int  // invocations that were given to it and have not ended
	pending   []*invocation
	pollers   []chan *invocation // each waits for one event; never closed
	known     map[string]*invocation
	completed []*invocation // answered, and ended by the next request for an event
}

// launch starts environment i in the background. f.mu is held.
func (f *Function) launch(i int) *environment {
	e := &environment{
		f: f, number: i, began: time.Now(), known: map[string]*invocation{},
		started: make(chan struct{}), exited: make(chan struct{}), gone: make(chan struct{}),
	}
	f.running.Add(1)
	go e.run()
	return e
}

func (e *environment) hasRoom() bool { return !e.doomed && e.load < e.f.options.MaxConcurrency }

// take gives inv to the process: to a poller, or to the next one that comes. f.mu is held.
func (e *environment) take(inv *invocation) {
	e.load++
	e.known[inv.id] = inv
	e.thaw()
	if len(e.pollers) == 0 {
		e.pending = append(e.pending, inv)
		return
	}
	e.pollers[0] <- inv // never blocks: a poller has room for its one event
	e.pollers = e.pollers[1:]
}

// rest freezes a process that has nothing to do: all its pollers are back. f.mu is held.
func (e *environment) rest() {
	idle := e.load == 0 && len(e.pollers) >= e.f.options.MaxConcurrency
	if !e.f.options.Freeze || !idle || e.doomed || e.frozen || e.process == nil {
		return
	}
	e.frozen = true
	e.process.freeze()
}

// thaw undoes rest. f.mu is held.
func (e *environment) thaw() {
	if e.frozen {
		e.frozen = false
		e.process.thaw()
	}
}

// doom kills the process. why is logged unless empty. f.mu is held.
func (e *environment) doom(why string) {
	if e.doomed {
		return
	}
	if e.doomed = true; e.process != nil {
		e.process.kill()
	}
	if why != "" {
		e.f.logs.line(e.number, why)
	}
}

// end lets a process that asked for it hear SIGTERM first. f.mu is held.
func (e *environment) end() {
	if !e.extension || e.doomed || e.process == nil {
		e.doom("")
		return
	}
	e.doomed = true
	e.thaw()
	e.process.terminate()
	e.f.running.Add(1)
	go func() {
		defer e.f.running.Done()
		select {
		case <-e.exited:
		case <-time.After(endTime):
			e.process.kill()
		}
	}()
}

// run owns the process and everything that serves it, from start to end.
func (e *environment) run() {
	defer e.f.running.Done()
	defer close(e.gone)
	// The kernel kills the process when the thread that started it ends (Pdeathsig), so that
	// thread must last as long as this goroutine.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		close(e.exited)
		e.retire(fmt.Errorf("runtime API: %w", err))()
		return
	}
	server := &http.Server{Handler: e.api(), ConnState: e.conns.note, ErrorLog: log.New(io.Discard, "", 0)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	err = e.execute(listener.Addr().String())
	close(e.exited)
	fail := e.retire(err)
	e.drain(listener.Addr().String())
	fail()
	_ = server.Close()
	<-served
	<-e.conns.none()
}

// drain waits until everything has been read that the process had sent before it died: it counts.
func (e *environment) drain(api string) {
	limit := time.Now().Add(drainTime)
	// Connections are accepted in the order they were made: when one from here is answered, the
	// process's last one has been seen.
	if conn, err := net.Dial("tcp", api); err == nil {
		_ = conn.SetDeadline(limit)
		_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}
	select {
	case <-e.conns.none():
	case <-time.After(time.Until(limit)):
	}
}

// execute runs the process and returns how it ended.
func (e *environment) execute(api string) error {
	out := e.f.logs.writer(e.number)
	defer out.flush()
	command := exec.Command(e.f.options.Bootstrap, e.f.options.Args...)
	command.Dir = e.f.options.TaskRoot
	command.Env = e.f.options.environ(api)
	command.Stdout, command.Stderr = out, out
	command.WaitDelay = drainTime // for pipes that a grandchild holds
	prepare(command)
	if err := command.Start(); err != nil {
		return err
	}
	e.f.mu.Lock()
	e.process = &process{command.Process}
	close(e.started)
	if e.doomed {
		e.process.kill()
	}
	e.rest()
	e.f.mu.Unlock()
	slow := time.AfterFunc(e.f.options.InitTimeout, e.initTimeout)
	defer slow.Stop()
	err := command.Wait()
	e.process.kill() // what it has left behind
	return err
}

func (e *environment) initTimeout() {
	e.f.mu.Lock()
	defer e.f.mu.Unlock()
	if !e.ready {
		e.doom(fmt.Sprintf("INIT_REPORT Init Duration: %.2f ms Phase: init Status: timeout", millis(time.Since(e.began))))
	}
}

// timeout kills the process if inv still runs.
func (e *environment) timeout(inv *invocation) {
	e.f.mu.Lock()
	defer e.f.mu.Unlock()
	if _, runs := e.known[inv.id]; !runs || e.doomed {
		return
	}
	inv.timedOut = true
	e.doom(fmt.Sprintf("%s %s Task timed out after %.2f seconds",
		time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), inv.id, e.f.options.Timeout.Seconds()))
}

// retire empties the slot, so that the next request gets another process, and returns what
// fails the invocations that are left.
func (e *environment) retire(err error) (fail func()) {
	f := e.f
	f.mu.Lock()
	defer f.mu.Unlock()
	killed := e.doomed
	e.doomed = true
	if f.slots[e.number].env == e {
		f.slots[e.number].env = nil
	}
	if !killed {
		f.logs.line(e.number, exitText(err))
	}
	for _, inv := range e.known {
		if inv.timer != nil {
			inv.timer.Stop()
		}
	}
	f.dispatch()
	return func() {
		f.mu.Lock()
		left := make([]*invocation, 0, len(e.known))
		for _, inv := range e.known {
			left = append(left, inv)
		}
		f.mu.Unlock()
		for _, inv := range left {
			inv.finish(e.cause(inv))
		}
	}
}

// cause is why an invocation of a dead process failed.
func (e *environment) cause(inv *invocation) error {
	e.f.mu.Lock()
	defer e.f.mu.Unlock()
	if inv.timedOut {
		return errTimeout
	}
	return errExited
}

func exitText(err error) string {
	if err == nil {
		return "Error: Runtime exited without providing a reason Runtime.ExitError"
	}
	return "Error: Runtime exited with error: " + err.Error() + " Runtime.ExitError"
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// environ is the environment of a process, as documented for Lambda (runtimes on provided.al2023).
func (o Options) environ(api string) []string {
	set := []string{
		"PATH=/usr/local/bin:/usr/bin/:/bin:/opt/bin",
		"LANG=en_US.UTF-8",
		"TZ=:UTC",
		"LD_LIBRARY_PATH=/lib64:/usr/lib64:/var/runtime:/var/runtime/lib:/var/task:/var/task/lib:/opt/lib",
		"LAMBDA_TASK_ROOT=" + o.TaskRoot,
		"LAMBDA_RUNTIME_DIR=/var/runtime",
		"_HANDLER=" + o.Handler,
		"AWS_REGION=" + o.Region,
		"AWS_DEFAULT_REGION=" + o.Region,
		"AWS_ACCESS_KEY_ID=local",
		"AWS_SECRET_ACCESS_KEY=local",
		"AWS_SESSION_TOKEN=local",
		"AWS_LAMBDA_FUNCTION_NAME=" + o.Name,
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=" + strconv.Itoa(o.MemoryMB),
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/" + o.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME=local",
	}
	if o.MaxConcurrency > 1 {
		set = append(set, "AWS_LAMBDA_MAX_CONCURRENCY="+strconv.Itoa(o.MaxConcurrency))
	}
	// exec.Cmd lets the last one of a name win.
	return slices.Concat(set, o.Env, []string{"AWS_LAMBDA_RUNTIME_API=" + api})
}
