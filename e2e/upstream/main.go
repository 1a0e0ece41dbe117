// Command upstream is a stand-in for a provider in end-to-end tests: OpenAI's chat
// completions, responses, embeddings and models, Anthropic's messages and count_tokens, on
// a loopback socket, with the faults that a test asks for.
//
// It is strict where a real provider is: it answers 401 to a key it does not know and
// "previous response not found" to a response of another account.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// behaviour is what happens to a request; POST /ctl replaces it.
type behaviour struct {
	Status     int    `json:"status"`      // the error to answer with; 0 is none
	RetryAfter string `json:"retry_after"` // sent with the error when set
	Key        string `json:"key"`         // only for requests with this key
	FailNext   int    `json:"fail_next"`   // only that many requests fail; 0 is all
	Cut        int    `json:"cut"`         // break the connection after that many pieces of a stream
	Chunks     int    `json:"chunks"`      // pieces of an answer; 0 is the default
	PieceBytes int    `json:"piece_bytes"` // what pads each piece but the first
	GapMillis  int    `json:"gap_ms"`      // between the pieces
	DelayMS    int    `json:"delay_ms"`    // before the first byte
}

// logged is how much of a body is kept.
const logged = 64 << 10

// seen is one request as it came.
type seen struct {
	Method    string      `json:"method"`
	Path      string      `json:"path"`
	Key       string      `json:"key"`
	Model     string      `json:"model"`
	Stream    bool        `json:"stream"`
	Status    int         `json:"status"`
	Header    http.Header `json:"header"`
	Body      string      `json:"body"`      // at most logged bytes of it
	Size      int         `json:"size"`      // of the whole body
	Cancelled bool        `json:"cancelled"` // the caller left before the end
}

type server struct {
	name string
	keys []string

	mu        sync.Mutex
	do        behaviour
	log       []*seen
	responses map[string]string // response id -> key it was made with
}

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "listen address")
	name := flag.String("name", "upstream", "name in the answers")
	keys := flag.String("keys", "", "accepted keys, comma-separated")
	flag.Parse()
	s := &server{name: *name, keys: strings.Split(*keys, ","), responses: map[string]string{}}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr()) // for the test that started it
	fmt.Fprintln(os.Stderr, http.Serve(listener, s.routes()))
	os.Exit(1)
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.serve(s.chat))
	mux.HandleFunc("POST /v1/responses", s.serve(s.response))
	mux.HandleFunc("POST /v1/embeddings", s.serve(s.embeddings))
	mux.HandleFunc("POST /v1/messages", s.serve(s.messages))
	mux.HandleFunc("POST /v1/messages/count_tokens", s.serve(s.countTokens))
	mux.HandleFunc("POST /ctl", s.control)
	mux.HandleFunc("GET /log", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		writeJSON(w, s.log)
	})
	return mux
}

func (s *server) control(w http.ResponseWriter, r *http.Request) {
	var do behaviour
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&do); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.do = do
	writeJSON(w, do)
}

// call is one request with its script.
type call struct {
	w    http.ResponseWriter
	r    *http.Request
	do   behaviour
	key  string
	body body
	seen *seen
}

// body is what any of the surfaces says that matters here.
type body struct {
	Model          string            `json:"model"`
	Stream         bool              `json:"stream"`
	Tools          []json.RawMessage `json:"tools"`
	Messages       []message         `json:"messages"`
	Input          json.RawMessage   `json:"input"`
	Previous       string            `json:"previous_response_id"`
	MaxTokens      json.RawMessage   `json:"max_tokens"`
	Thinking       json.RawMessage   `json:"thinking"`
	Effort         json.RawMessage   `json:"reasoning_effort"`
	EncodingFormat string            `json:"encoding_format"`
	StreamOptions  struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`

	members map[string]json.RawMessage
}

// serve reads a request, logs it, applies the faults, and hands the rest to answer.
func (s *server) serve(answer func(*call)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// As the front of a real provider does; it is about our connection, not the client's.
		w.Header().Set("Set-Cookie", "__cf_bm=of-the-provider; path=/; HttpOnly")
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		c := &call{w: w, r: r, key: credential(r)}
		c.seen = &seen{Method: r.Method, Path: r.URL.Path, Key: c.key, Header: r.Header, Body: string(text[:min(len(text), logged)]), Size: len(text)}
		if err := json.Unmarshal(text, &c.body); err != nil {
			s.fail(c, http.StatusBadRequest, "invalid_request_error", "not JSON: "+err.Error())
			return
		}
		c.seen.Model, c.seen.Stream = c.body.Model, c.body.Stream
		status := s.admit(c)
		if c.do.DelayMS > 0 {
			time.Sleep(time.Duration(c.do.DelayMS) * time.Millisecond)
		}
		switch {
		case !slices.Contains(s.keys, c.key):
			s.fail(c, http.StatusUnauthorized, "authentication_error", "Incorrect API key provided: "+c.key)
		case status != 0:
			s.fail(c, status, "injected_error", fmt.Sprintf("injected %d", status))
		case strings.Contains(string(text), "far too long"):
			s.fail(c, http.StatusBadRequest, "invalid_request_error", "context_length_exceeded: the prompt is too long")
		default:
			answer(c)
		}
		if r.Context().Err() != nil {
			s.mu.Lock()
			c.seen.Cancelled = true
			s.mu.Unlock()
		}
	}
}

// admit logs the call and takes its script; it returns the status of a scripted failure.
func (s *server) admit(c *call) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, c.seen)
	c.do = s.do
	status := c.do.Status
	if c.do.Key != "" && c.do.Key != c.key {
		status = 0
	}
	if status != 0 && s.do.FailNext > 0 {
		if s.do.FailNext--; s.do.FailNext == 0 {
			s.do.Status = 0
		}
	}
	c.seen.Status = http.StatusOK
	if status != 0 {
		c.seen.Status = status
	}
	return status
}

func credential(r *http.Request) string {
	if key := r.Header.Get("X-Api-Key"); key != "" {
		return key
	}
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// fail answers as OpenAI and Anthropic both can be read.
func (s *server) fail(c *call, status int, kind, text string) {
	if c.do.RetryAfter != "" {
		c.w.Header().Set("Retry-After", c.do.RetryAfter)
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(status)
	code := strings.SplitN(text, ":", 2)[0]
	json.NewEncoder(c.w).Encode(object{"type": "error", "error": object{"message": text, "type": kind, "code": code, "param": nil}}) //nolint:errcheck // a test notices
}

// object is a JSON object.
type object map[string]any

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(value) //nolint:errcheck // a test notices
}

// stream sends frames at once, with the script's gaps and cut.
type stream struct {
	c    *call
	sent int
}

func (c *call) stream() *stream {
	c.w.Header().Set("Content-Type", "text/event-stream")
	return &stream{c: c}
}

func (s *stream) frame(text string) {
	if s.c.do.Cut > 0 && s.sent == s.c.do.Cut {
		panic(http.ErrAbortHandler)
	}
	s.sent++
	io.WriteString(s.c.w, text)  //nolint:errcheck // the caller may have gone
	s.c.w.(http.Flusher).Flush() //nolint:forcetypeassert // net/http's writer is one
	select {
	case <-time.After(time.Duration(s.c.do.GapMillis) * time.Millisecond):
	case <-s.c.r.Context().Done():
	}
}

// data sends one event without a name, as OpenAI's chat completions do.
func (s *stream) data(value any) { s.frame("data: " + encode(value) + "\n\n") }

// event sends one event under its type.
func (s *stream) event(kind string, value object) {
	value["type"] = kind
	s.frame("event: " + kind + "\ndata: " + encode(value) + "\n\n")
}

func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// pieces is the text of an answer as a stream cuts it.
func (c *call) pieces(name string) []string {
	n := c.do.Chunks
	if n == 0 {
		n = 4
	}
	padding := strings.Repeat("x", c.do.PieceBytes)
	list := []string{"Hello from " + name + "."}
	for i := 1; i < n; i++ {
		list = append(list, fmt.Sprintf(" Größe %d %s👋", i, padding))
	}
	return list
}
