package carrier

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// N loops take N invocations at a time, and one more waits.
func TestConcurrency(t *testing.T) {
	for set, want := range map[string]int{"": 1, "x": 1, "0": 1, "-3": 1, "4": 4} {
		api := newRuntimeAPI(t)
		entered, release := make(chan struct{}, 10), make(chan struct{})
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entered <- struct{}{}
			<-release
			io.WriteString(w, r.URL.Path)
		})
		getenv := func(key string) string {
			if key == envConcurrency {
				return set
			}
			return api.getenv(key)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Serve(ctx, handler, Options{Getenv: getenv}) }()
		var calls []*call
		for i := range want {
			wait(t, api.asked)
			calls = append(calls, api.put(functionURL("GET", "/"+strconv.Itoa(i), "")))
		}
		for range calls {
			wait(t, entered)
		}
		select {
		case <-api.asked:
			t.Errorf("%s=%q: more than %d at a time", envConcurrency, set, want)
		default:
		}
		cancel() // what is under way is finished
		close(release)
		for i, c := range calls {
			if got := c.answer(t); got.Body != "/"+strconv.Itoa(i) {
				t.Errorf("%s=%q: answer %q, want /%d", envConcurrency, set, got.Body, i)
			}
		}
		if err := wait(t, ended); err != nil {
			t.Errorf("Serve() = %v, want nil", err)
		}
	}
}

// hang stands for reading on without ever answering.
const hang = "hang"

// runtimeOf answers each connection's requests with the given raw answers in turn and then
// closes the connection; it returns the address and a count of the requests.
func runtimeOf(t *testing.T, answers ...string) (string, *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var asked atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 4096)
			for _, answer := range answers {
				if answer == hang {
					io.Copy(io.Discard, conn)
					break
				}
				if n, _ := conn.Read(buf); n == 0 {
					break
				}
				asked.Add(1)
				io.WriteString(conn, answer)
			}
			conn.Close()
		}
	}()
	return listener.Addr().String(), &asked
}

func TestServeFails(t *testing.T) {
	none := http.NotFoundHandler()
	refusing, _ := runtimeOf(t, "HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\nwell")
	closing, asked := runtimeOf(t, "")
	garbage, _ := runtimeOf(t, "SSH-2.0\r\n\r\n")
	cut, _ := runtimeOf(t, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := listener.Addr().String()
	listener.Close()
	for address, want := range map[string]string{
		refusing: `the Runtime API answered 500 Oh: well`, closing: "EOF", garbage: "malformed", cut: "unexpected EOF", gone: "refused",
		"nonsense": "missing port",
	} {
		err := Serve(t.Context(), none, Options{Getenv: func(key string) string {
			if key == envRuntimeAPI {
				return address
			}
			return ""
		}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Serve() at %s = %v, want an error with %q", address, err, want)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("a fresh connection that closes is asked %d times, want once", n)
	}
	if err := Serve(t.Context(), none, Options{Listen: "127.0.0.1:99999"}); err == nil {
		t.Error("Serve() on port 99999 = nil, want an error")
	}
	if err := Serve(t.Context(), nil, Options{Listen: "127.0.0.1:0"}); err == nil {
		t.Error("Serve() without a handler = nil, want an error")
	}
}

// A kept connection that was closed while nobody used it costs a new one, not the process;
// an event comes in chunks or by length, and a connection may be closed behind it.
func TestConnections(t *testing.T) {
	event := functionURL("GET", "/", strings.Repeat("x", 10_000))
	head := "HTTP/1.1 200 OK\r\nLambda-Runtime-Aws-Request-Id: a\r\n"
	half := len(event) / 2
	chunked := head + "Transfer-Encoding: chunked\r\n\r\n" + strconv.FormatInt(int64(half), 16) + "\r\n" + event[:half] + "\r\n" +
		strconv.FormatInt(int64(len(event)-half), 16) + "\r\n" + event[half:] + "\r\n0\r\n\r\n"
	sized := head + "Content-Length: " + strconv.Itoa(len(event)) + "\r\n\r\n" + event
	const accepted = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
	for name, answers := range map[string][]string{
		"chunked": {chunked, accepted}, "sized": {sized, accepted},
		"closed by name": {sized, "HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"},
		"not accepted":   {sized, "HTTP/1.1 400 Bad\r\nContent-Length: 3\r\n\r\nbad"},
	} {
		address, _ := runtimeOf(t, answers...)
		ctx, cancel := context.WithCancel(t.Context())
		served := 0
		err := Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if served++; served == 3 {
				cancel()
			}
			if b, err := io.ReadAll(r.Body); len(b) != 10_000 || err != nil {
				t.Errorf("%s: body of %d bytes, %v", name, len(b), err)
			}
		}), Options{Getenv: func(key string) string {
			if key == envRuntimeAPI {
				return address
			}
			return ""
		}})
		if err != nil || served != 3 {
			t.Errorf("%s: Serve() = %v after %d requests, want nil after 3", name, err, served)
		}
		cancel()
	}
}

// A response that Lambda never accepts holds up neither the tail nor, after the deadline,
// the next request.
func TestNeverAccepted(t *testing.T) {
	event := functionURL("GET", "/", "")
	sized := "HTTP/1.1 200 OK\r\nLambda-Runtime-Aws-Request-Id: a\r\nLambda-Runtime-Deadline-Ms: " +
		strconv.FormatInt(time.Now().UnixMilli(), 10) + "\r\nContent-Length: " + strconv.Itoa(len(event)) + "\r\n\r\n" + event
	address, _ := runtimeOf(t, sized, hang)
	ctx, cancel := context.WithCancel(t.Context())
	served := 0
	err := Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if served++; served == 2 {
			cancel()
		}
		io.WriteString(w, "x")
		began := time.Now()
		if err := w.(Finisher).FinishResponse(); err != nil || time.Since(began) > 5*finishPatience {
			t.Errorf("FinishResponse() = %v after %v, want nil after about %v", err, time.Since(began), finishPatience)
		}
	}), Options{Getenv: func(key string) string {
		if key == envRuntimeAPI {
			return address
		}
		return ""
	}})
	if err != nil || served != 2 {
		t.Errorf("Serve() = %v after %d requests, want nil after 2", err, served)
	}
	cancel()
}

// A client that does not read is given up when the handler has set a limit, and only it.
func TestWriteDeadline(t *testing.T) {
	api := newRuntimeAPI(t)
	failed := make(chan error, 1)
	api.serve(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if r.URL.Path == "/fine" {
			w.WriteHeader(http.StatusOK)
			failed <- control.SetWriteDeadline(time.Now().Add(patience))
			io.WriteString(w, "fine")
			return
		}
		if err := control.Flush(); err != nil {
			t.Errorf("Flush() = %v, want nil", err)
		}
		var err error
		for chunk := make([]byte, 1<<20); err == nil; _, err = w.Write(chunk) {
			if err := control.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
				t.Errorf("SetWriteDeadline() = %v, want nil", err)
			}
		}
		failed <- err
	})
	stall := make(chan struct{})
	api.put(functionURL("GET", "/", ""), func(c *call) { c.stall = stall })
	if err := wait(t, failed); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Write() = %v, want %v", err, os.ErrDeadlineExceeded)
	}
	close(stall)
	for range 2 {
		if got := api.put(functionURL("GET", "/fine", "")).answer(t); got.Body != "fine" {
			t.Errorf("then %q, want the next request served", got.Body)
		}
		if err := wait(t, failed); err != nil {
			t.Errorf("SetWriteDeadline() = %v, want nil", err)
		}
	}
}

func TestReportInitError(t *testing.T) {
	api := newRuntimeAPI(t)
	if err := ReportInitError(t.Context(), api.getenv, errors.New("config: no \"keys\"")); err != nil {
		t.Fatalf("ReportInitError() = %v", err)
	}
	if got, want := wait(t, api.inits), `{"errorMessage":"config: no \"keys\"","errorType":"Runtime.InitError"}`; got != want {
		t.Errorf("init error %s, want %s", got, want)
	}
	if err := Serve(t.Context(), nil, Options{Getenv: api.getenv}); !errors.Is(err, errNoHandler) {
		t.Errorf("Serve() without a handler = %v, want %v", err, errNoHandler)
	}
	if got := wait(t, api.inits); !strings.Contains(got, "no handler") {
		t.Errorf("init error %s, want the missing handler", got)
	}
	if err := ReportInitError(t.Context(), func(string) string { return "" }, errNoHandler); err != nil {
		t.Errorf("ReportInitError() off Lambda = %v, want nil", err)
	}
}

// On a socket a stop lets running answers finish.
func TestSocketStops(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	entered, release := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-release
		io.WriteString(w, "whole")
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- ServeListener(ctx, listener, handler, slog.New(slog.DiscardHandler)) }()
	body := make(chan string, 1)
	go func() {
		response, err := http.Get("http://" + listener.Addr().String())
		if err != nil {
			body <- err.Error()
			return
		}
		defer response.Body.Close()
		b, _ := io.ReadAll(response.Body)
		body <- string(b)
	}()
	wait(t, entered)
	cancel()
	select {
	case err := <-ended:
		t.Errorf("ServeListener() = %v while a request runs", err)
	default:
	}
	close(release)
	if got := wait(t, body); got != "whole" {
		t.Errorf("answer %q, want it whole", got)
	}
	if err := wait(t, ended); err != nil {
		t.Errorf("ServeListener() = %v, want nil", err)
	}
}
