package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// function is a process under test and the Runtime API that it polls.
type function struct {
	cmd    *exec.Cmd
	server *http.Server
	events chan []byte
	began  chan time.Time // the event is about to be written
	first  chan time.Time // the first byte of the response is there
	done   chan int64     // bytes of the response
	polled chan time.Time // the process asks for an event
}

// startFunction runs a bootstrap against a Runtime API of its own.
func startFunction(ctx context.Context, bootstrap string, env ...string) (*function, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &function{
		events: make(chan []byte), began: make(chan time.Time, 1), first: make(chan time.Time, 1),
		done: make(chan int64, 1), polled: make(chan time.Time, 16),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", f.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", f.response)
	f.server = &http.Server{Handler: mux}
	go f.server.Serve(listener) //nolint:errcheck // Close ends it
	f.cmd = exec.CommandContext(ctx, bootstrap)
	f.cmd.Env = append([]string{"AWS_LAMBDA_RUNTIME_API=" + listener.Addr().String(), "AWS_LAMBDA_FUNCTION_NAME=bench"}, env...)
	f.cmd.Stderr = os.Stderr
	return f, f.cmd.Start()
}

func (f *function) stop() {
	f.cmd.Process.Kill() //nolint:errcheck // it may have ended
	f.cmd.Wait()         //nolint:errcheck // it was killed
	f.server.Close()     //nolint:errcheck // nobody is left to hear
}

func (f *function) next(w http.ResponseWriter, r *http.Request) {
	select {
	case f.polled <- time.Now():
	default:
	}
	select {
	case event := <-f.events:
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "00000000-0000-4000-8000-000000000000")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10))
		w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:000000000000:function:bench")
		w.Header().Set("Content-Length", strconv.Itoa(len(event)))
		f.began <- time.Now()
		w.Write(event) //nolint:errcheck // the measurement sees what is missing
	case <-r.Context().Done():
	}
}

func (f *function) response(w http.ResponseWriter, r *http.Request) {
	var one [1]byte
	if _, err := io.ReadFull(r.Body, one[:]); err != nil {
		return
	}
	f.first <- time.Now()
	n, _ := io.Copy(io.Discard, r.Body) //nolint:errcheck // the count tells
	w.WriteHeader(http.StatusAccepted)
	f.done <- n
}

// invoke sends one event and returns the time to the first byte of its answer.
func (f *function) invoke(event []byte) (time.Duration, error) {
	timeout := time.After(10 * time.Second)
	select {
	case f.events <- event:
	case <-timeout:
		return 0, errors.New("the function does not ask for events")
	}
	began := <-f.began
	var took time.Duration
	for {
		select {
		case at := <-f.first:
			took = at.Sub(began)
		case n := <-f.done:
			if n < 1000 {
				return 0, fmt.Errorf("the answer has %d bytes", n)
			}
			return took, nil
		case <-timeout:
			return 0, errors.New("the function does not answer")
		}
	}
}

// eventOf is a chat completion of about size bytes as a Function URL delivers it.
func eventOf(size, session int) ([]byte, error) {
	const turn = `{"role":"user","content":"Please rename the variable \"foo\" in a.go.\nThanks!"},{"role":"assistant","content":"Done: it is \"bar\" now."},`
	body := `{"model":"gpt-4o-mini","messages":[` + strings.Repeat(turn, max(0, size-90)/len(turn)) + `{"role":"user","content":"and now?"}]}`
	event := events.LambdaFunctionURLRequest{
		Version: "2.0", RawPath: "/v1/chat/completions", Body: body,
		Headers: map[string]string{
			"content-type": "application/json", "authorization": "Bearer " + clientKey, "x-session-id": fmt.Sprint("session-", session),
			"user-agent": "OpenAI/Python 2.8.0", "accept": "application/json", "host": "x.lambda-url.us-east-1.on.aws", "x-forwarded-proto": "https",
		},
	}
	event.RequestContext.DomainName = "x.lambda-url.us-east-1.on.aws"
	event.RequestContext.HTTP.Method, event.RequestContext.HTTP.Path = http.MethodPost, event.RawPath
	event.RequestContext.HTTP.SourceIP = "192.0.2.1"
	return json.Marshal(event)
}

// insideTheFunction compares the three roles, event to first byte, taking turns.
func (b *bench) insideTheFunction(ctx context.Context) (bars []bar, err error) {
	roles := []string{"wrap", "carrier", "gateway"}
	running := map[string]*function{}
	for _, role := range roles {
		f, err := startFunction(ctx, b.path("roles"), envRole+"="+role)
		if err != nil {
			return nil, err
		}
		defer f.stop()
		running[role] = f
	}
	for _, size := range []struct {
		name  string
		bytes int
	}{{"2 KB", 2 << 10}, {"100 KB", 100 << 10}, {"1 MB", 1 << 20}, {"4.5 MB", 4_500_000}} {
		took := map[string][]time.Duration{}
		rounds := b.rounds
		if size.bytes > 1<<19 {
			rounds = b.rounds/5 + 1
		}
		for n := range rounds + rounds/5 {
			event, err := eventOf(size.bytes, n%40)
			if err != nil {
				return nil, err
			}
			for _, role := range roles {
				one, err := running[role].invoke(event)
				if err != nil {
					return nil, fmt.Errorf("%s at %s: %w", role, size.name, err)
				}
				if n >= rounds/5 { // those before warm up
					took[role] = append(took[role], one)
				}
			}
		}
		wrap, own, all := p50(took["wrap"]), p50(took["carrier"]), p50(took["gateway"])
		if size.bytes <= 1<<17 {
			bars = append(bars, ratio("event to first byte, "+size.name+", against a bare handler on the same carrier", own, all, 1.5))
		} else if size.bytes <= 1<<20 {
			bars = append(bars, ratio("event to first byte, "+size.name+", against lambdaurl.Wrap with a bare handler", wrap, all, 0.5))
		}
		bars = append(bars, bar{
			name: "of which the carrier, " + size.name + ", against lambdaurl.Wrap, both with a bare handler",
			base: wrap.String(), own: own.String(), got: float64(own) / float64(wrap), most: 1, unit: "x",
		})
	}
	return bars, nil
}

func ratio(name string, base, own time.Duration, most float64) bar {
	return bar{name, base.String(), own.String(), float64(own) / float64(base), most, "x"}
}

func p50(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2].Round(time.Microsecond)
}
