package functionurl

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	runtimePath   = "/2018-06-01/runtime/"
	extensionPath = "/2020-01-01/extension/"

	maxErrorReport = 256 << 10 // bytes of an error report that are read
)

// api is the Runtime API of one process, and as much of the Extensions API as a process needs
// that wants to hear SIGTERM.
func (e *environment) api() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call, runtime := strings.CutPrefix(r.URL.Path, runtimePath)
		rest, about := strings.CutPrefix(call, "invocation/")
		id, verb, _ := strings.Cut(rest, "/")
		switch {
		case runtime && r.Method == http.MethodGet && call == "invocation/next":
			e.next(w, r)
		case runtime && r.Method == http.MethodPost && about && verb == "response":
			e.response(w, r, id)
		case runtime && r.Method == http.MethodPost && about && verb == "error":
			e.failure(w, r, id)
		case runtime && r.Method == http.MethodPost && call == "init/error":
			e.initFailure(w, r)
		case r.Method == http.MethodPost && r.URL.Path == extensionPath+"register":
			e.register(w)
		case r.Method == http.MethodGet && r.URL.Path == extensionPath+"event/next":
			<-r.Context().Done() // it registers for no event, so there is none
		default:
			reply(w, http.StatusNotFound, "NotFound", "no such call of the Runtime API")
		}
	})
}

// reply answers a call of the Runtime API that cannot be served.
func reply(w http.ResponseWriter, status int, kind, message string) {
	body := appendQuoted([]byte(`{"errorType":`), kind)
	body = appendQuoted(append(body, `,"errorMessage":`...), message)
	body = append(body, '}')
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func accept(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`)
}

// next is the long poll for an event. To ask is to say that what was answered before is over.
func (e *environment) next(w http.ResponseWriter, r *http.Request) {
	inv := e.poll(r.Context())
	if inv == nil { // the process is gone, or will be
		panic(http.ErrAbortHandler)
	}
	f := e.f
	f.mu.Lock()
	inv.cold = e.served == 0
	e.served++
	pid := e.process.Pid
	deadline := time.Now().Add(f.options.Timeout)
	inv.timer = time.AfterFunc(f.options.Timeout, func() { e.timeout(inv) })
	f.mu.Unlock()
	if f.options.OnInvoke != nil {
		f.options.OnInvoke(Invocation{ID: inv.id, Environment: e.number, PID: pid, Cold: inv.cold})
	}
	event := inv.event
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(*event))}
	h["Lambda-Runtime-Aws-Request-Id"] = []string{inv.id}
	h["Lambda-Runtime-Deadline-Ms"] = []string{strconv.FormatInt(deadline.UnixMilli(), 10)}
	h["Lambda-Runtime-Invoked-Function-Arn"] = []string{f.options.arn()}
	h["Lambda-Runtime-Trace-Id"] = []string{inv.trace}
	_, err := w.Write(*event)
	inv.event = nil
	f.giveBack(event)
	if err != nil { // nobody took it: nobody will answer
		e.conclude(inv, errExited)
	}
}

func (o Options) arn() string {
	return "arn:aws:lambda:" + o.Region + ":" + account + ":function:" + o.Name
}

// poll waits for an event; nil when there will be none.
func (e *environment) poll(ctx context.Context) *invocation {
	f := e.f
	<-e.started
	f.mu.Lock()
	if !e.ready {
		e.ready = true
		f.slots[e.number].lastInit = time.Since(e.began)
	}
	stray := e.unanswered()
	if stray != nil {
		// The response may be on its way on another connection, if the runtime did not wait for
		// the answer to it.
		f.mu.Unlock()
		select {
		case <-stray.done:
		case <-time.After(breakTime):
			e.conclude(stray, errNoAnswer)
		}
		f.mu.Lock()
	}
	e.release()
	if e.doomed {
		f.mu.Unlock()
		<-ctx.Done()
		return nil
	}
	if len(e.pending) > 0 {
		inv := e.pending[0]
		e.pending = e.pending[1:]
		f.mu.Unlock()
		return inv
	}
	event := make(chan *invocation, 1)
	e.pollers = append(e.pollers, event)
	f.dispatch()
	e.rest()
	f.mu.Unlock()
	select {
	case inv := <-event:
		return inv
	case <-ctx.Done():
		e.unpoll(event)
		return nil
	}
}

// unpoll takes back a poller whose connection is gone, and what it may have got meanwhile.
func (e *environment) unpoll(event chan *invocation) {
	f := e.f
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, other := range e.pollers {
		if other == event {
			e.pollers = append(e.pollers[:i], e.pollers[i+1:]...)
			return
		}
	}
	inv := <-event
	if len(e.pollers) > 0 {
		e.pollers[0] <- inv
		e.pollers = e.pollers[1:]
		return
	}
	e.pending = append(e.pending, inv)
}

// conclude ends the client's response: err is why it failed. The client may come again at once,
// so that its environment will soon be free is noted first.
func (e *environment) conclude(inv *invocation, err error) {
	e.complete(inv)
	inv.finish(err)
}

// complete notes that the runtime has answered inv. Not with f.mu held.
func (e *environment) complete(inv *invocation) {
	e.f.mu.Lock()
	defer e.f.mu.Unlock()
	if !inv.completed {
		inv.completed = true
		e.completed = append(e.completed, inv)
	}
}

// unanswered is the invocation that was handed out and not answered, where there is only one at
// a time. f.mu is held.
func (e *environment) unanswered() *invocation {
	if e.f.options.MaxConcurrency > 1 || len(e.completed) > 0 {
		return nil
	}
	for _, inv := range e.known {
		if inv.timer != nil {
			return inv
		}
	}
	return nil
}

// release ends an invocation that was answered, as the runtime asks for another event. f.mu is held.
func (e *environment) release() {
	if len(e.completed) == 0 {
		return
	}
	inv := e.completed[0]
	e.completed = e.completed[1:]
	delete(e.known, inv.id)
	e.load--
	inv.timer.Stop()
}

// find is the invocation that a call of the runtime is about.
func (e *environment) find(id string) *invocation {
	e.f.mu.Lock()
	defer e.f.mu.Unlock()
	return e.known[id]
}

// failure is the runtime's report that the function has failed.
func (e *environment) failure(w http.ResponseWriter, r *http.Request, id string) {
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxErrorReport))
	inv := e.find(id)
	if inv == nil {
		reply(w, http.StatusBadRequest, "InvalidRequestID", "no such invocation")
		return
	}
	if err := inv.respond(nil, false); err != nil {
		reply(w, http.StatusForbidden, "InvalidStateTransition", err.Error())
		return
	}
	e.conclude(inv, errFunction)
	accept(w)
}

// initFailure is the runtime's report that it cannot start. AWS expects it to exit; here it has to.
func (e *environment) initFailure(w http.ResponseWriter, r *http.Request) {
	report, _ := io.ReadAll(io.LimitReader(r.Body, maxErrorReport))
	accept(w)
	_ = http.NewResponseController(w).Flush()
	e.f.mu.Lock()
	defer e.f.mu.Unlock()
	if e.ready {
		return
	}
	e.doom("INIT_REPORT Phase: init Status: error " + string(report))
}

// register takes a process's internal extension, the way in which aws-lambda-go's
// WithEnableSIGTERM asks for SIGTERM.
func (e *environment) register(w http.ResponseWriter) {
	e.f.mu.Lock()
	e.extension = true
	e.f.mu.Unlock()
	o := &e.f.options
	w.Header().Set("Lambda-Extension-Identifier", newID())
	w.Header().Set("Content-Type", "application/json")
	body := appendQuoted([]byte(`{"functionName":`), o.Name)
	body = appendQuoted(append(body, `,"functionVersion":"$LATEST","handler":`...), o.Handler)
	_, _ = w.Write(append(body, '}'))
}
