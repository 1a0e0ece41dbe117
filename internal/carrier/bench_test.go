package carrier

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdaurl"
)

// envChild makes the test binary a function, with the carrier it names.
const envChild = "CARRIER_BENCH_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(envChild) {
	case "ours":
		err := Serve(context.Background(), http.HandlerFunc(bare), Options{Getenv: os.Getenv, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
		io.WriteString(os.Stderr, err.Error()+"\n")
		os.Exit(1)
	case "lambdaurl":
		lambdaurl.Start(http.HandlerFunc(bare))
	}
	os.Exit(m.Run())
}

// bare reads the body and answers at once: what is left is the carrier.
func bare(w http.ResponseWriter, r *http.Request) {
	if b, ok := r.Body.(Buffered); ok {
		b.Bytes()
	} else {
		io.Copy(io.Discard, r.Body)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, "data: x\n\n")
}

// conversation is a chat request of about size bytes: JSON with a few escapes in each line.
func conversation(size int) string {
	var b strings.Builder
	b.WriteString(`{"model":"m-oai","stream":true,"messages":[`)
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"role":"user","content":"Look at this:\n\tfunc main() { fmt.Println(\"h\u00e9llo, wörld\") }\nand tell me why it prints what it prints, in one sentence."}`)
	}
	b.WriteString(`]}`)
	return b.String()
}

// conversationEvent is the event of a conversation, with the headers a client library sends.
func conversationEvent(size int) []byte {
	return []byte(functionURL("POST", "/v1/chat/completions", conversation(size), func(e *events.LambdaFunctionURLRequest) {
		for _, name := range []string{
			"accept", "accept-encoding", "authorization", "user-agent", "x-amzn-trace-id", "x-forwarded-for", "x-forwarded-port", "x-forwarded-proto",
			"x-stainless-arch", "x-stainless-lang", "x-stainless-os", "x-stainless-package-version", "x-stainless-retry-count", "x-stainless-runtime",
		} {
			e.Headers[name] = "a value of ordinary length for " + name
		}
	}))
}

func eachSize(b *testing.B, f func(b *testing.B, raw []byte)) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"2KB", 2 << 10}, {"100KB", 100 << 10}, {"1MB", 1 << 20}, {"4.5MB", 4500 << 10}} {
		b.Run(size.name, func(b *testing.B) { f(b, conversationEvent(size.bytes)) })
	}
}

// function is a child process behind a Runtime API.
type function struct {
	next  chan []byte
	first chan time.Time
	done  chan struct{}
}

// start runs the test binary as a function with the given carrier.
func start(b *testing.B, carrier string) *function {
	b.Helper()
	f := &function{next: make(chan []byte), first: make(chan time.Time, 1), done: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(b.Context())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		select {
		case event := <-f.next:
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", "id")
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10))
			w.Header().Set("Content-Length", strconv.Itoa(len(event)))
			w.Write(event)
		case <-r.Context().Done(): // the function was killed
		}
	})
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/{what}", func(w http.ResponseWriter, r *http.Request) {
		r.Body.Read(make([]byte, 1))
		f.first <- time.Now()
		rest, _ := io.ReadAll(r.Body)
		if r.PathValue("what") != "response" || !strings.HasSuffix(string(rest), "data: x\n\n") {
			b.Errorf("%s: %s %q", carrier, r.PathValue("what"), rest)
		}
		w.WriteHeader(http.StatusAccepted)
		f.done <- struct{}{}
	})
	server := httptest.NewServer(mux)
	child := exec.CommandContext(ctx, os.Args[0])
	child.Env = []string{envChild + "=" + carrier, envRuntimeAPI + "=" + server.Listener.Addr().String()}
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cancel()
		child.Wait()
		server.Close()
	})
	return f
}

// invoke returns the time from the event to the first byte of the response.
func (f *function) invoke(event []byte) time.Duration {
	f.next <- event
	began := time.Now()
	took := (<-f.first).Sub(began)
	<-f.done
	return took
}

// BenchmarkFirstByte is the time from the event to the first byte of the response, by our
// loop and by lambdaurl, each in a process of its own with a bare handler, in turn so that
// both see the same machine. The issue asks for at most half at 1 MB. Medians; compare runs
// with benchstat -col /carrier off, by the unit of each metric.
func BenchmarkFirstByte(b *testing.B) {
	eachSize(b, func(b *testing.B, raw []byte) {
		ours, theirs := start(b, "ours"), start(b, "lambdaurl")
		for range 5 { // connections, buffers, heaps
			ours.invoke(raw)
			theirs.invoke(raw)
		}
		var a, c []time.Duration
		for b.Loop() {
			a = append(a, ours.invoke(raw))
			c = append(c, theirs.invoke(raw))
		}
		slices.Sort(a)
		slices.Sort(c)
		mine, wrap := a[len(a)/2], c[len(c)/2]
		ratio := float64(mine) / float64(wrap)
		b.ReportMetric(float64(mine.Microseconds()), "ours-µs")
		b.ReportMetric(float64(wrap.Microseconds()), "lambdaurl-µs")
		b.ReportMetric(ratio, "ratio")
		if len(raw) >= 1<<20 && len(a) > 20 && ratio > 0.5 {
			b.Errorf("first byte in %v, lambdaurl in %v: more than half", mine, wrap)
		}
	})
}

// BenchmarkDecode is the event alone, to a request whose body is at hand.
func BenchmarkDecode(b *testing.B) {
	eachSize(b, func(b *testing.B, raw []byte) {
		b.ReportAllocs()
		b.SetBytes(int64(len(raw)))
		buf := make([]byte, len(raw))
		var e event
		for b.Loop() {
			copy(buf, raw) // decoding changes it; a hundredth of the time
			if err := e.decode(buf); err != nil {
				b.Fatal(err)
			}
			e.request(b.Context())
		}
	})
}

// BenchmarkDecodeOracle is what encoding/json takes for the same, without the request.
func BenchmarkDecodeOracle(b *testing.B) {
	eachSize(b, func(b *testing.B, raw []byte) {
		b.ReportAllocs()
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			var e events.LambdaFunctionURLRequest
			if err := json.Unmarshal(raw, &e); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkWrite is one chunk of a stream.
func BenchmarkWrite(b *testing.B) {
	client, server := pipe(b)
	go io.Copy(io.Discard, server)
	w := &response{ctx: b.Context(), link: &link{conn: client}, pen: new(pen), asking: true, status: 200}
	w.pen.answer = make(chan answer, 1)
	chunk := []byte(strings.Repeat("x", 310))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Write(chunk); err != nil {
			b.Fatal(err)
		}
	}
}

func pipe(b *testing.B) (client, server net.Conn) {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	if client, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		b.Fatal(err)
	}
	if server, err = listener.Accept(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}
