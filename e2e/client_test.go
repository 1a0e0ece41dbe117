//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"
)

// request is what the raw client sends; the zero value is a plain chat without a session.
type request struct {
	board   gateway
	path    string // default /v1/chat/completions
	session string
	model   string // default spread
	stream  bool
	body    string // instead of what model and stream make
	key     string // default clientKey
}

func (r request) open(t *testing.T) (*http.Response, error) {
	t.Helper()
	if r.path == "" {
		r.path = "/v1/chat/completions"
	}
	if r.model == "" {
		r.model = "spread"
	}
	if r.key == "" {
		r.key = clientKey
	}
	if r.body == "" {
		r.body = fmt.Sprintf(`{"model":%q,"stream":%v,"messages":[{"role":"user","content":"hi"}]}`, r.model, r.stream)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.board.url()+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+r.key)
	if r.session != "" {
		req.Header.Set("X-Session-Id", r.session)
	}
	return http.DefaultClient.Do(req)
}

// answer is a whole answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) provider() string { return a.header.Get("X-Switchboard-Provider") }

func (r request) do(t *testing.T) answer {
	t.Helper()
	response, err := r.open(t)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%+v: %v after %q", r, err, body)
	}
	return answer{response.StatusCode, response.Header, body}
}

// ok is do for a request that must be served.
func (r request) ok(t *testing.T) answer {
	t.Helper()
	a := r.do(t)
	if a.status != http.StatusOK {
		t.Fatalf("%s %s: status %d, want 200: %s", r.session, r.path, a.status, a.body)
	}
	return a
}

// running is a stream of which the first output has been read.
type running struct {
	*http.Response
	lines *bufio.Reader
}

func (r request) begin(t *testing.T) *running {
	t.Helper()
	r.stream = true
	response, err := r.open(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	s := &running{response, bufio.NewReader(response.Body)}
	for {
		line, err := s.lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("stream before its first output: %v", err)
		}
		if bytes.Contains(line, []byte("Hello")) {
			return s
		}
	}
}

// all yields the lines to the end.
func (s *running) all(t *testing.T) iter.Seq[[]byte] {
	t.Helper()
	s.lines = bufio.NewReader(s.Body)
	return func(yield func([]byte) bool) {
		for {
			line, err := s.lines.ReadBytes('\n')
			if !yield(line) || err != nil {
				return
			}
		}
	}
}

// rest reads to the end.
func (s *running) rest() (string, error) {
	text, err := io.ReadAll(s.lines)
	return string(text), err
}

// errorType is the type of an error in either shape, and the shape.
func errorType(t *testing.T, body []byte) (kind, shape string) {
	t.Helper()
	var e struct {
		Type  string
		Error struct {
			Type    string
			Message string
		}
	}
	if err := json.Unmarshal(body, &e); err != nil || e.Error.Message == "" {
		t.Errorf("not an error of any surface: %s", body)
	}
	if e.Type == "error" {
		return e.Error.Type, "anthropic"
	}
	return e.Error.Type, "openai"
}
