package carrier

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
)

func TestStream(t *testing.T) {
	api := newRuntimeAPI(t)
	step := make(chan struct{})
	api.serve(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Add("X-Many", "a")
		w.Header().Add("X-Many", `b "quoted" é`)
		w.Header().Add("X-Line", "one\r\ntwo: 3")
		w.Header().Set("Connection", "close")
		w.Header().Add("Set-Cookie", "a=1; Path=/")
		w.Header().Add("Set-Cookie", "b=2")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusCreated)
		w.WriteHeader(http.StatusTeapot)     // too late
		w.Header().Set("X-Late", "too late") // harmless
		for i := range 3 {
			<-step
			fmt.Fprintf(w, "data: %d\n\n", i)
		}
		<-step
		w.Write([]byte(strings.Repeat("x", 100<<10) + "!"))
	})
	c := api.put(functionURL("POST", "/", ""))
	// The prelude leaves at WriteHeader, each Write at once: the handler waits for us.
	prelude := c.until(t, preludeEnd)
	for i := range 3 {
		step <- struct{}{}
		if got, want := c.until(t, "\n\n"), fmt.Sprintf("data: %d\n\n", i); got != want {
			t.Errorf("chunk %d = %q, want %q", i, got, want)
		}
	}
	step <- struct{}{}
	if got := c.until(t, "!"); len(got) != 100<<10+1 {
		t.Errorf("long write of %d bytes arrives as %d", 100<<10+1, len(got))
	}
	got := c.answer(t)
	got.Body = ""
	want := answered{
		Status: 201, Cookies: []string{"a=1; Path=/", "b=2"},
		Headers: map[string]string{"Content-Type": "text/event-stream", "X-Many": `a,b "quoted" é`, "X-Line": "one  two: 3"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("prelude %q (-want +got):\n%s", prelude, diff)
	}
	for name, want := range map[string]string{
		"Content-Type":                          "application/vnd.awslambda.http-integration-response",
		"Lambda-Runtime-Function-Response-Mode": "streaming",
	} {
		if got := c.head.Get(name); got != want {
			t.Errorf("header %s of the POST = %q, want %q", name, got, want)
		}
	}
	if !errors.Is(c.err, io.EOF) || c.trailer.Get(headerErrorType) != "" {
		t.Errorf("response ended with %v, trailers %v, want a clean end", c.err, c.trailer)
	}
}

// S-LAM-01: what a handler reads, by the kind of body and however it reads it.
func TestSLAM01Bodies(t *testing.T) {
	api := newRuntimeAPI(t)
	api.serve(func(w http.ResponseWriter, r *http.Request) {
		if b, ok := r.Body.(Buffered); ok {
			first := make([]byte, 1)
			n, _ := r.Body.Read(first)
			fmt.Fprintf(w, "%d %s", r.ContentLength, append(first[:n], b.Bytes()...))
			return
		}
		b, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprintf(w, "%d %s", r.ContentLength, b)
	})
	is64 := func(e *events.LambdaFunctionURLRequest) { e.IsBase64Encoded = true }
	json := `{"model":"m-oai","messages":[{"role":"user","content":"é \\ud83d\\ude00 \"\n"}]}`
	for _, tt := range []struct {
		name, event string
		status      int
		want        string
	}{
		{"plain", functionURL("POST", "/", json), 200, fmt.Sprintf("%d %s", len(json), json)},
		{"base64", functionURL("POST", "/", base64.StdEncoding.EncodeToString([]byte(json)), is64), 200, fmt.Sprintf("%d %s", len(json), json)},
		{"base64 of bytes that are no text", functionURL("POST", "/", "/wD+", is64), 200, "3 \xff\x00\xfe"},
		{"base64 in lines", functionURL("POST", "/", "aGVs\r\nbG8=", is64), 200, "5 hello"},
		{"empty", functionURL("POST", "/", ""), 200, "0 "},
		{"empty base64", functionURL("POST", "/", "", is64), 200, "0 "},
		{"null", strings.Replace(functionURL("POST", "/", "x"), `"body":"x"`, `"body":null`, 1), 200, "0 "},
		{"broken base64", functionURL("POST", "/", "aGVsbG8", is64), 400, "-1 "},
		{"no base64 at all", functionURL("POST", "/", `{"model":"m"}`, is64), 400, "-1 "},
		{"base64 of the other alphabet", functionURL("POST", "/", "_wD-", is64), 400, "-1 "},
	} {
		got := api.put(tt.event).answer(t)
		if got.Status != tt.status || got.Body != tt.want {
			t.Errorf("%s: %d %q, want %d %q", tt.name, got.Status, got.Body, tt.status, tt.want)
		}
	}
}

// S-LAM-01: names come in lower case and are found by any; values stay as they are.
func TestSLAM01Headers(t *testing.T) {
	api := newRuntimeAPI(t)
	api.serve(func(w http.ResponseWriter, r *http.Request) {
		cookie, _ := r.Cookie("b")
		fmt.Fprint(w, []string{
			r.Header.Get("x-session-id"), r.Header.Get("X-SESSION-ID"), r.Header.Get("Authorization"),
			r.Header.Get("X-Many"), cookie.Value, r.Host, r.RemoteAddr, r.URL.String(),
		})
	})
	got := api.put(functionURL("POST", "/v1/chat/completions", "", func(e *events.LambdaFunctionURLRequest) {
		e.RawQueryString = "beta=true"
		e.Headers["x-session-id"], e.Headers["authorization"], e.Headers["x-many"] = "S1", "Bearer sk-A", "One,tWo, three"
		e.Cookies = []string{"a=1", "b=2"}
	})).answer(t)
	const want = "[S1 S1 Bearer sk-A One,tWo, three 2 x.lambda-url.us-east-1.on.aws 192.0.2.1:0 /v1/chat/completions?beta=true]"
	if got.Body != want {
		t.Errorf("a handler sees %s, want %s", got.Body, want)
	}
}

// However a response is cut into writes, and however long they are, its bytes arrive.
func TestWriteSizes(t *testing.T) {
	api := newRuntimeAPI(t)
	sizes := []int{1, 0, 15, 16, 17, 255, 256, copied - 1, copied, copied + 1, 3, 1 << 20, 0, 2}
	pattern := []byte(strings.Repeat("0123456789abcdef!", 1<<16))
	api.serve(func(w http.ResponseWriter, r *http.Request) {
		for i, size := range sizes {
			if n, err := w.Write(pattern[i : i+size]); n != size || err != nil {
				t.Errorf("Write(%d bytes) = %d, %v", size, n, err)
			}
		}
	})
	var want strings.Builder
	for i, size := range sizes {
		want.Write(pattern[i : i+size])
	}
	for range 2 {
		if got := api.put(functionURL("GET", "/", "")).answer(t); got.Body != want.String() {
			t.Errorf("%d bytes arrive, want the %d that were written", len(got.Body), want.Len())
		}
	}
}

// S-LAM-02: whatever a handler panics with, before output the client is told, after output
// Lambda is, and the same environment serves the next request.
func TestSLAM02Panic(t *testing.T) {
	api := newRuntimeAPI(t)
	type named struct{ A int }
	causes := map[string]any{
		"error": errors.New("broken \"pipe\"\n"), "text": "text", "abort": http.ErrAbortHandler, "value": named{1},
		"long": strings.Repeat("é", 5000), "unnamed": struct{ A int }{1},
	}
	api.serve(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Before", "1")
		if r.URL.Path == "/fine" {
			io.WriteString(w, "fine")
			return
		}
		for range len(r.URL.Query().Get("writes")) {
			io.WriteString(w, "data: x\n\n")
		}
		if r.URL.Query().Get("finish") != "" {
			w.(Finisher).FinishResponse()
		}
		if r.URL.Path == "/nil" {
			var none *events.LambdaFunctionURLRequest
			io.WriteString(w, none.Body)
		}
		panic(causes[r.URL.Path[1:]])
	})
	query := func(q string) func(*events.LambdaFunctionURLRequest) {
		return func(e *events.LambdaFunctionURLRequest) { e.RawQueryString = q }
	}
	causes["nil"] = nil
	for name := range causes {
		got := api.put(functionURL("POST", "/"+name, "")).answer(t)
		want := answered{Status: 500, Headers: map[string]string{"Content-Type": "application/json"}, Body: internalError}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("panic with %s before output (-want +got):\n%s", name, diff)
		}

		c := api.put(functionURL("POST", "/"+name, "", query("writes=xx")))
		if got := c.answer(t); got.Status != 200 || got.Body != "data: x\n\ndata: x\n\n" {
			t.Errorf("panic with %s after output: %d %q, want what was written", name, got.Status, got.Body)
		}
		if c.trailer.Get(headerErrorType) == "" {
			t.Errorf("panic with %s after output: trailers %v, want the error's type", name, c.trailer)
		}
		body, err := base64.StdEncoding.DecodeString(c.trailer.Get(headerErrorBody))
		if err != nil || !strings.HasPrefix(string(body), `{"errorMessage":"`) || len(body) > 2*longestMessage {
			t.Errorf("panic with %s after output: error body %q, %v", name, body, err)
		}

		c = api.put(functionURL("POST", "/"+name, "", query("writes=x&finish=1")))
		if got := c.answer(t); got.Body != "data: x\n\n" || c.trailer.Get(headerErrorType) != "" {
			t.Errorf("panic with %s in the tail: %q, trailers %v, want a clean end", name, got.Body, c.trailer)
		}

		if got := api.put(functionURL("GET", "/fine", "")).answer(t); got.Status != 200 || got.Body != "fine" {
			t.Errorf("after a panic with %s: %d %q, want the next request served", name, got.Status, got.Body)
		}
	}
}

// S-LAM-03: responses without a body end at once, with a prelude.
func TestSLAM03NoBody(t *testing.T) {
	api := newRuntimeAPI(t)
	var wrote error
	api.serve(func(w http.ResponseWriter, r *http.Request) {
		wrote = nil
		switch r.URL.Path {
		case "/silent":
		case "/status":
			w.WriteHeader(http.StatusNotFound)
		case "/empty":
			w.Write(nil)
		case "/flush":
			w.(http.Flusher).Flush()
		case "/nocontent", "/notmodified":
			w.WriteHeader(map[string]int{"/nocontent": 204, "/notmodified": 304}[r.URL.Path])
			_, wrote = io.WriteString(w, "body")
		case "/early":
			w.WriteHeader(http.StatusProcessing)
		default:
			w.Header().Set("Content-Length", "4")
			_, wrote = io.WriteString(w, "body")
		}
	})
	for _, tt := range []struct {
		method, path string
		status       int
		body         string
		wrote        error
	}{
		{"GET", "/silent", 200, "", nil},
		{"HEAD", "/silent", 200, "", nil},
		{"GET", "/status", 404, "", nil},
		{"HEAD", "/status", 404, "", nil},
		{"GET", "/empty", 200, "", nil},
		{"GET", "/flush", 200, "", nil},
		{"DELETE", "/nocontent", 204, "", http.ErrBodyNotAllowed},
		{"GET", "/notmodified", 304, "", http.ErrBodyNotAllowed},
		{"GET", "/early", 200, "", nil},
		{"HEAD", "/", 200, "", nil},
		{"HEAD", "/api/hello", 200, "", nil},
		{"OPTIONS", "/", 200, "body", nil},
	} {
		began := time.Now()
		got := api.put(functionURL(tt.method, tt.path, "")).answer(t)
		if took := time.Since(began); got.Status != tt.status || got.Body != tt.body || took > time.Second {
			t.Errorf("%s %s: %d %q after %v, want %d %q in under a second", tt.method, tt.path, got.Status, got.Body, took, tt.status, tt.body)
		}
		if !errors.Is(wrote, tt.wrote) {
			t.Errorf("%s %s: Write fails with %v, want %v", tt.method, tt.path, wrote, tt.wrote)
		}
	}
}
