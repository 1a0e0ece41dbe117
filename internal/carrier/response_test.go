package carrier

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// S-LAM-05: the client sees the end before the tail is over, and the environment is not
// given back before it is.
func TestSLAM05Tail(t *testing.T) {
	api := newRuntimeAPI(t)
	tail, finished, late := make(chan struct{}), make(chan error, 2), make(chan error, 1)
	api.serve(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/silent" {
			io.WriteString(w, "data: [DONE]\n\n")
		}
		finished <- w.(Finisher).FinishResponse()
		finished <- w.(Finisher).FinishResponse()
		w.WriteHeader(http.StatusTeapot)
		w.(http.Flusher).Flush()
		_, err := io.WriteString(w, "too late")
		late <- err
		<-tail
	})
	for path, want := range map[string]string{"/": "data: [DONE]\n\n", "/silent": ""} {
		wait(t, api.asked)
		c := api.put(functionURL("POST", path, ""))
		if got := c.answer(t); got.Status != 200 || got.Body != want {
			t.Errorf("%s: %d %q before the tail ends, want 200 %q", path, got.Status, got.Body, want)
		}
		for range 2 {
			if err := wait(t, finished); err != nil {
				t.Errorf("FinishResponse() = %v, want nil", err)
			}
		}
		if err := wait(t, late); err == nil {
			t.Error("Write() after FinishResponse() = nil, want an error")
		}
		select {
		case <-api.asked:
			t.Error("the next invocation is asked for while the tail runs")
		case <-time.After(20 * time.Millisecond): // nothing to wait for: it must not come
		}
		tail <- struct{}{}
	}
	wait(t, api.asked)
}

// S-LAM-07: a handler learns that nobody listens, whichever way Lambda shows it.
func TestSLAM07FrontGone(t *testing.T) {
	api := newRuntimeAPI(t)
	failed := make(chan error, 1)
	more := make(chan struct{})
	api.serve(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/fine" {
			io.WriteString(w, "fine")
			return
		}
		io.WriteString(w, "data: 0\n\n")
		<-more
		until := time.Now().Add(patience)
		for time.Now().Before(until) {
			if _, err := io.WriteString(w, "data: 1\n\n"); err != nil {
				_, again := io.WriteString(w, "data: 2\n\n")
				finish := w.(Finisher).FinishResponse()
				if again == nil || finish == nil {
					t.Errorf("after %v: Write() = %v, FinishResponse() = %v, want errors", err, again, finish)
				}
				failed <- err
				return
			}
		}
		failed <- nil
	})
	for name, leave := range map[string]func(*call){
		"connection closed": nil,
		"refused":           func(c *call) { c.refuse = http.StatusRequestEntityTooLarge },
		"accepted early":    func(c *call) { c.refuse = http.StatusAccepted },
	} {
		c := api.put(functionURL("POST", "/", ""), func(c *call) {
			if leave != nil {
				leave(c)
			}
		})
		if leave == nil {
			c.until(t, "data: 0\n\n")
			close(c.hangUp)
		} else {
			wait(t, c.done)
		}
		more <- struct{}{}
		if err := wait(t, failed); err == nil {
			t.Errorf("%s: Write() = %v, want an error", name, err)
		}
		if got := api.put(functionURL("GET", "/fine", "")).answer(t); got.Body != "fine" {
			t.Errorf("%s: then %q, want the next request served", name, got.Body)
		}
	}
}

func TestContext(t *testing.T) {
	api := newRuntimeAPI(t)
	var deadline time.Time
	var limited, found bool
	var inv Invocation
	var after context.Context
	api.serve(func(w http.ResponseWriter, r *http.Request) {
		after = r.Context()
		deadline, limited = r.Context().Deadline()
		if i, ok := InvocationOf(r.Context()); ok {
			inv, found = *i, true
		}
		if r.Context().Err() != nil {
			w.WriteHeader(http.StatusGatewayTimeout)
		}
	})
	want := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	c := api.put(functionURL("GET", "/", ""), func(c *call) { c.deadline = want })
	if got := c.answer(t); got.Status != 200 || !limited || !deadline.Equal(want) {
		t.Errorf("status %d, deadline %v (%v), want 200, %v", got.Status, deadline, limited, want)
	}
	wantInv := Invocation{RequestID: c.id, TraceID: "trace-" + c.id, FunctionARN: "arn:aws:lambda:us-east-1:1:function:f"}
	if !found || inv != wantInv {
		t.Errorf("InvocationOf() = %v, %v, want %v", inv, found, wantInv)
	}
	api.put(functionURL("GET", "/", ""), func(c *call) { c.deadline = time.Time{} }).answer(t)
	if limited {
		t.Error("a deadline, though Lambda named none")
	}
	wait(t, after.Done()) // as on a socket, when the handler has returned
	if _, ok := InvocationOf(t.Context()); ok {
		t.Error("InvocationOf() off Lambda = true")
	}
}

// An event that is none of a Function URL is refused and the environment lives on.
func TestNotOurs(t *testing.T) {
	api := newRuntimeAPI(t)
	api.serve(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "fine") })
	for _, event := range []string{``, `{}`, `null`, `"x"`, `[]`, `{"key":"value"}`, `{"Records":[{"body":"{}"}]}`, `{"body":`, `{"requestContext":{"http":{}}}`} {
		c := api.put(event)
		wait(t, c.done)
		if !strings.Contains(c.failure, `"errorType":"Runtime.InvalidEvent"`) || c.head.Get(headerErrorType) != "Runtime.InvalidEvent" {
			t.Errorf("event %q: %q posted, want an InvalidEvent", event, c.failure)
		}
	}
	if got := api.put(functionURL("GET", "/", "")).answer(t); got.Body != "fine" {
		t.Errorf("then %q, want the next request served", got.Body)
	}
}

// A body read after its handler has returned must not show the next request's.
func TestBodyAfterReturn(t *testing.T) {
	api := newRuntimeAPI(t)
	var kept io.ReadCloser
	api.serve(func(w http.ResponseWriter, r *http.Request) {
		kept = r.Body
		r.Body = nil
	})
	api.put(functionURL("POST", "/", "secret")).answer(t)
	wait(t, api.asked)
	wait(t, api.asked)
	if n, err := kept.Read(make([]byte, 10)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("Read() after the handler = %d, %v, want 0, %v", n, err, http.ErrBodyReadAfterClose)
	}
}
