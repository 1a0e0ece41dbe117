package functionurl

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// gate decides from a test when a function goes on: it accepts one connection of the function.
type gate struct {
	listener net.Listener
	conn     chan net.Conn
}

func newGate(t testing.TB) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{listener, make(chan net.Conn, 1)}
	go func() {
		defer close(g.conn)
		if conn, err := listener.Accept(); err == nil {
			g.conn <- conn
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		if conn := <-g.conn; conn != nil {
			conn.Close()
		}
	})
	return g
}

func (g *gate) addr() string { return g.listener.Addr().String() }

// reached waits until the function is at the gate.
func (g *gate) reached(t testing.TB) net.Conn {
	t.Helper()
	select {
	case conn := <-g.conn:
		if conn != nil {
			t.Cleanup(func() { conn.Close() })
			return conn
		}
	case <-time.After(10 * time.Second):
	}
	t.Fatal("the function did not come to the gate")
	return nil
}

// request sends one and returns the response, with its body unread.
func (s *started) request(t testing.TB, method, path, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func TestSLAM01EventAsTheOfficialClientReadsIt(t *testing.T) {
	f := start(t, "wrapped", Options{})
	r, _ := http.NewRequestWithContext(t.Context(), "POST", f.url+"/event?a=1&a=2&b=%C3%A9", strings.NewReader(`{"content":"é"}`))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header["X-Many"] = []string{"One", "two"}
	r.AddCookie(&http.Cookie{Name: "c", Value: "1"})
	resp, err := f.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got events.LambdaFunctionURLRequest
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2]string{
		"body":     {got.Body, `{"content":"é"}`},
		"x-many":   {got.Headers["x-many"], "One,two"},
		"cookies":  {strings.Join(got.Cookies, ";"), "c=1"},
		"a":        {got.QueryStringParameters["a"], "1,2"},
		"b":        {got.QueryStringParameters["b"], "é"},
		"domain":   {got.RequestContext.DomainName, strings.TrimPrefix(f.url, "http://")},
		"sourceIp": {got.RequestContext.HTTP.SourceIP, "127.0.0.1"},
		"id":       {got.RequestContext.RequestID, resp.Header.Get("X-Amzn-Requestid")},
		"length":   {got.Headers["content-length"], "16"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s = %q, want %q", name, pair[0], pair[1])
		}
	}
}

func TestSLAM01BodiesArriveAsTheyWereSent(t *testing.T) {
	plain, forced := start(t, "wrapped", Options{}), start(t, "wrapped", Options{Base64: true})
	for name, body := range map[string]string{
		"text": `{"a":"é\u0000\"\\"}`, "binary": "\x00\xff\xfe\r\n", "empty": "", "large": strings.Repeat(`{"a":"b\n"}`, 200_000),
	} {
		for kind, f := range map[string]*started{"plain": plain, "forced": forced} {
			r, _ := http.NewRequestWithContext(t.Context(), "POST", f.url+"/echo", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			resp, err := f.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(got) != body || err != nil {
				t.Errorf("%s, %s: %d bytes came back, %v, want the %d sent", name, kind, len(got), err, len(body))
			}
		}
	}
}

func TestSLAM03ResponsesWithoutABody(t *testing.T) {
	f := start(t, "wrapped", Options{})
	for _, tt := range []struct {
		method, path string
		want         int
	}{
		{"HEAD", "/echo", 200},
		{"GET", "/echo", 200},
		{"GET", "/status?code=204", 204},
		{"GET", "/status?code=304", 304},
		{"OPTIONS", "/status?code=200", 200},
		{"HEAD", "/cookies", 418},
		{"DELETE", "/status?code=599", 599},
		{"GET", "/nope", 404},
		{"GET", "/status?code=103", 502}, // lambdaurl makes it the final one
		{"GET", "/echo", 200},            // and the same process still serves
	} {
		status, body, err := f.send(t, tt.method, tt.path, nil)
		if status != tt.want || err != nil {
			t.Errorf("%s %s = %d %q %v, want %d", tt.method, tt.path, status, body, err, tt.want)
		}
	}
	if s := f.Stats(); s.ColdStarts != 1 {
		t.Errorf("ColdStarts = %d, want 1", s.ColdStarts)
	}
}

func TestCookiesAndHeaders(t *testing.T) {
	resp := start(t, "wrapped", Options{}).request(t, "GET", "/cookies", "")
	if got := resp.Header["Set-Cookie"]; len(got) != 2 || got[0] != "a=1" || got[1] != "b=2; HttpOnly" {
		t.Errorf("Set-Cookie = %q, want both", got)
	}
	if got := resp.Header.Get("X-Two"); got != "one, two" || resp.StatusCode != 418 {
		t.Errorf("X-Two = %q, status %d, want one, two and 418", got, resp.StatusCode)
	}
	if got := resp.Header.Get("Content-Type"); got != "application/octet-stream" {
		t.Errorf("Content-Type = %q, want what the front falls back to", got)
	}
}

// TestNoBuffering has the function send each piece only after the client has read the one before.
func TestNoBuffering(t *testing.T) {
	f := start(t, "wrapped", Options{})
	g := newGate(t)
	answered := make(chan *http.Response, 1)
	go func() { answered <- f.request(t, "GET", "/gate?from="+g.addr(), "") }()
	conn := g.reached(t)
	fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")
	fmt.Fprint(conn, "a")
	lines := bufio.NewReader((<-answered).Body)
	for _, piece := range []string{"a", "b", "c"} {
		if piece != "a" {
			fmt.Fprint(conn, piece)
		}
		for _, want := range []string{"data: " + piece + "\n", "\n"} {
			if got, err := lines.ReadString('\n'); got != want || err != nil {
				t.Fatalf("line = %q, %v, want %q", got, err, want)
			}
		}
	}
	if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
		t.Errorf("end = %q, %v, want a clean end", rest, err)
	}
}

func TestBufferedAnswers(t *testing.T) {
	f := start(t, "wrapped", Options{Env: []string{"MODE=buffered"}})
	resp := f.request(t, "POST", "/any", "body")
	body, err := io.ReadAll(resp.Body)
	var got events.LambdaFunctionURLRequest
	if err := errors.Join(err, json.Unmarshal(body, &got)); err != nil || got.RawPath != "/any" {
		t.Errorf("event = %+v, %v, want that of /any", got, err)
	}
	if resp.StatusCode != 202 || resp.Header.Get("X-Of") != "buffered" || len(resp.Header["Set-Cookie"]) != 2 {
		t.Errorf("response = %d %v, want 202 with headers and two cookies", resp.StatusCode, resp.Header)
	}
	for _, tt := range []struct {
		path   string
		status int
		body   string
	}{
		{"/base64", 201, "\x00\xff"},
		{"/error", 502, "Internal Server Error"},
		{"/big", 502, "Internal Server Error"},
		{"/panic", 502, "Internal Server Error"},
		{"/base64", 201, "\x00\xff"},
	} {
		if status, body, err := f.get(t, tt.path); status != tt.status || body != tt.body || err != nil {
			t.Errorf("GET %s = %d %.50q %v, want %d %q", tt.path, status, body, err, tt.status, tt.body)
		}
	}
}

func TestErrorOfAReaderCutsTheStream(t *testing.T) {
	f := start(t, "wrapped", Options{Env: []string{"MODE=reader"}})
	if status, body, err := f.get(t, "/well"); status != 200 || body != "first\n" || err != nil {
		t.Errorf("GET /well = %d %q %v, want a clean end", status, body, err)
	}
	if status, body, err := f.get(t, "/fail"); status != 200 || body != "first\n" || err == nil {
		t.Errorf("GET /fail = %d %q %v, want a cut after the first line", status, body, err)
	}
	if s := f.Stats(); s.ColdStarts != 1 {
		t.Errorf("ColdStarts = %d, want 1: the runtime lives on", s.ColdStarts)
	}
}

func TestEnvironmentOfTheProcess(t *testing.T) {
	dir := t.TempDir()
	f := start(t, "wrapped", Options{
		TaskRoot: dir, Name: "route", Region: "eu-west-1", MemoryMB: 512, Handler: "main",
		Env: []string{"MINE=1", "AWS_ACCESS_KEY_ID=given", "AWS_LAMBDA_RUNTIME_API=wrong:1"},
	})
	_, body, _ := f.get(t, "/env")
	lines := "\n" + body
	for _, want := range []string{
		"PWD " + dir, "LAMBDA_TASK_ROOT=" + dir, "_HANDLER=main", "AWS_REGION=eu-west-1", "AWS_DEFAULT_REGION=eu-west-1",
		"AWS_LAMBDA_FUNCTION_NAME=route", "AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512",
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand", "AWS_ACCESS_KEY_ID=given", "AWS_SECRET_ACCESS_KEY=local", "MINE=1",
	} {
		if !strings.Contains(lines, "\n"+want+"\n") {
			t.Errorf("no %s in:\n%s", want, body)
		}
	}
	for _, bad := range []string{"wrong:1", "HOME=", "GOCACHE=", "MAX_CONCURRENCY"} {
		if strings.Contains(body, bad) {
			t.Errorf("%s in:\n%s", bad, body)
		}
	}
}

func TestDeadlineIsTold(t *testing.T) {
	f := start(t, "wrapped", Options{Timeout: 7 * time.Second})
	resp := f.request(t, "GET", "/deadline", "")
	var left int
	var id, arn string
	if _, err := fmt.Fscan(resp.Body, &left, &id, &arn); err != nil {
		t.Fatal(err)
	}
	if left <= 0 || left > 7000 || id != resp.Header.Get("X-Amzn-Requestid") || arn != "arn:aws:lambda:us-east-1:000000000000:function:function" {
		t.Errorf("deadline in %d ms, id %s, arn %s, want at most 7000 and those of the request", left, id, arn)
	}
}

func TestLogsLineByLine(t *testing.T) {
	f := start(t, "wrapped", Options{})
	f.get(t, "/log")
	until(t, "three lines", func() bool { return strings.Contains(f.logs.String(), "three") })
	if got, want := f.logs.String(), "[0] one\n[0] two\n[0] three without an end and its end\n"; got != want {
		t.Errorf("logs = %q, want %q", got, want)
	}
}
