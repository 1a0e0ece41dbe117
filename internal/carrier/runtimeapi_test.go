package carrier

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// patience is how long a test waits for what has to come.
const patience = 10 * time.Second

// runtimeAPI is Lambda's side of the protocol: it hands out the events a test puts in, and
// the test reads the answers as they arrive.
type runtimeAPI struct {
	t      *testing.T
	server *httptest.Server
	events chan *call
	asked  chan struct{} // one for each GET next
	inits  chan string

	mu    sync.Mutex
	calls map[string]*call
}

// call is one invocation.
type call struct {
	id, event string
	deadline  time.Time
	header    http.Header // more headers of the answer to next

	reads  chan string // what one Read of the response gave
	head   http.Header // of the POST; set when reads delivers
	hangUp chan struct{}
	refuse int           // status to answer the response with at once
	stall  chan struct{} // closed when the response may be read

	done    chan struct{}
	rest    []byte      // what came in all
	err     error       // how reading it ended
	trailer http.Header // after done
	failure string      // what was posted to error
}

func newRuntimeAPI(t *testing.T) *runtimeAPI {
	t.Helper()
	a := &runtimeAPI{t: t, events: make(chan *call), asked: make(chan struct{}, 100), inits: make(chan string, 1), calls: map[string]*call{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", a.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", a.response)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", a.failure)
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		a.inits <- string(b)
		w.WriteHeader(http.StatusAccepted)
	})
	a.server = httptest.NewServer(mux)
	t.Cleanup(a.server.Close)
	return a
}

func (a *runtimeAPI) getenv(key string) string {
	if key == envRuntimeAPI {
		return a.server.Listener.Addr().String()
	}
	return ""
}

// serve runs Serve until the test is over and fails it when Serve does.
func (a *runtimeAPI) serve(handler http.HandlerFunc) {
	a.t.Helper()
	ctx, cancel := context.WithCancel(a.t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, handler, Options{Getenv: a.getenv, Logger: slog.New(slog.NewTextHandler(a.t.Output(), nil))})
	}()
	a.t.Cleanup(func() {
		cancel()
		if err := wait(a.t, ended); err != nil {
			a.t.Errorf("Serve() = %v, want nil", err)
		}
	})
}

func (a *runtimeAPI) next(w http.ResponseWriter, r *http.Request) {
	a.asked <- struct{}{}
	select {
	case c := <-a.events:
		for name, values := range c.header {
			w.Header()[name] = values
		}
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", c.id)
		w.Header().Set("Lambda-Runtime-Trace-Id", "trace-"+c.id)
		w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:1:function:f")
		if !c.deadline.IsZero() {
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(c.deadline.UnixMilli(), 10))
		}
		io.WriteString(w, c.event)
	case <-r.Context().Done():
	}
}

func (a *runtimeAPI) response(w http.ResponseWriter, r *http.Request) {
	c := a.find(r)
	defer close(c.done)
	c.head = r.Header
	if c.refuse != 0 {
		http.Error(w, "refused", c.refuse)
		return
	}
	go func() { // the front that leaves
		select {
		case <-c.hangUp:
			conn, _, _ := http.NewResponseController(w).Hijack()
			conn.Close()
		case <-c.done:
		}
	}()
	if c.stall != nil {
		<-c.stall
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Body.Read(buf)
		if n > 0 {
			c.rest = append(c.rest, buf[:n]...)
			c.reads <- string(buf[:n])
		}
		if c.err = err; err == io.EOF {
			break
		}
		if err != nil {
			return
		}
	}
	c.trailer = r.Trailer
	w.WriteHeader(http.StatusAccepted)
}

func (a *runtimeAPI) failure(w http.ResponseWriter, r *http.Request) {
	c := a.find(r)
	b, _ := io.ReadAll(r.Body)
	c.failure, c.head = string(b), r.Header
	close(c.done)
	w.WriteHeader(http.StatusAccepted)
}

func (a *runtimeAPI) find(r *http.Request) *call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls[r.PathValue("id")]
}

// put hands an event out; it returns when the function has taken it.
func (a *runtimeAPI) put(event string, change ...func(*call)) *call {
	a.t.Helper()
	a.mu.Lock()
	c := &call{
		id: fmt.Sprintf("invocation-%d", len(a.calls)), event: event, deadline: time.Now().Add(time.Minute),
		reads: make(chan string, 1000), done: make(chan struct{}), hangUp: make(chan struct{}),
	}
	for _, f := range change {
		f(c)
	}
	a.calls[c.id] = c
	a.mu.Unlock()
	select {
	case a.events <- c:
	case <-time.After(patience):
		a.t.Fatal("the function does not ask for the next invocation")
	}
	return c
}

// answered is a response as a client would see it.
type answered struct {
	Status  int               `json:"statusCode"`
	Headers map[string]string `json:"headers"`
	Cookies []string          `json:"cookies"`
	Body    string            `json:"-"`
}

// answer waits for the whole response.
func (c *call) answer(t *testing.T) answered {
	t.Helper()
	wait(t, c.done)
	if c.failure != "" {
		t.Fatalf("error posted: %s", c.failure)
	}
	return c.parse(t, c.rest)
}

func (c *call) parse(t *testing.T, b []byte) answered {
	t.Helper()
	prelude, body, found := bytes.Cut(b, []byte(preludeEnd))
	if !found {
		t.Fatalf("response %q has no prelude", b)
	}
	var got answered
	if err := json.Unmarshal(prelude, &got); err != nil {
		t.Fatalf("prelude %q: %v", prelude, err)
	}
	got.Body = string(body)
	return got
}

// until reads the response until what has arrived ends in suffix.
func (c *call) until(t *testing.T, suffix string) string {
	t.Helper()
	var got strings.Builder
	for {
		got.WriteString(wait(t, c.reads))
		if strings.HasSuffix(got.String(), suffix) {
			return got.String()
		}
	}
}

func wait[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// functionURL is an event as Lambda makes it.
func functionURL(method, path, body string, change ...func(*events.LambdaFunctionURLRequest)) string {
	e := events.LambdaFunctionURLRequest{
		Version: "2.0", RawPath: path, Headers: map[string]string{"host": "x.lambda-url.us-east-1.on.aws", "content-type": "application/json"}, Body: body,
	}
	e.RequestContext.DomainName = "x.lambda-url.us-east-1.on.aws"
	e.RequestContext.HTTP.Method, e.RequestContext.HTTP.Path, e.RequestContext.HTTP.SourceIP = method, path, "192.0.2.1"
	for _, f := range change {
		f(&e)
	}
	b, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return string(b)
}
