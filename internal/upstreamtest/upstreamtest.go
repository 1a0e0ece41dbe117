// Package upstreamtest plays providers that answer as scripted, chunk by chunk.
//
// A Network is an http.RoundTripper to a set of Upstreams, named by the first label of the
// host (a.test is A). In memory it needs no sockets, so that a test in a testing/synctest
// bubble owns the time; Listen puts the same upstreams behind real ones. Every call is
// recorded in the order it arrived.
package upstreamtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Failures that are no answer.
var (
	ErrRefused    = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	ErrTLS        = errors.New("remote error: tls: handshake failure")
	ErrReset      = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	ErrUnscripted = errors.New("upstreamtest: a call that the script does not foresee")
)

// Reply is one answer.
type Reply struct {
	Fail   error         // instead of an answer
	Wait   time.Duration // before the header
	Silent bool          // no header ever: the caller must give up
	Status int           // 0 is 200
	Header http.Header
	Steps  []Step // the body
}

// Step is one thing that happens to a body, in the order Wait, Bytes, ending.
type Step struct {
	Wait  time.Duration // silence before
	Bytes []byte        // written and flushed at once: the caller reads them by themselves
	Cut   bool          // the connection breaks
	Hang  bool          // silence until the caller gives up
}

// Text is a reply of status with a body that comes at once.
func Text(status int, contentType, body string) Reply {
	return Reply{Status: status, Header: http.Header{"Content-Type": {contentType}}, Steps: []Step{{Bytes: []byte(body)}}}
}

// JSON is Text of application/json.
func JSON(status int, body string) Reply { return Text(status, "application/json", body) }

// Stream is a 200 of server-sent events, each chunk flushed by itself.
func Stream(chunks ...string) Reply {
	r := Reply{Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}}
	for _, c := range chunks {
		r.Steps = append(r.Steps, Step{Bytes: []byte(c)})
	}
	return r
}

// Then returns r with further steps.
func (r Reply) Then(steps ...Step) Reply {
	r.Steps = append(append([]Step(nil), r.Steps...), steps...)
	return r
}

// With returns r with one header more.
func (r Reply) With(name, value string) Reply {
	r.Header = r.Header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Add(name, value)
	return r
}

// length is the Content-Length a server would send, or -1.
func (r Reply) length() int64 {
	if said := r.Header.Get("Content-Length"); said != "" {
		var n int64
		if _, err := fmt.Sscan(said, &n); err == nil {
			return n
		}
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
		return -1
	}
	switch {
	case len(r.Steps) == 0:
		return 0
	case len(r.Steps) == 1 && !r.Steps[0].Cut && !r.Steps[0].Hang:
		return int64(len(r.Steps[0].Bytes))
	}
	return -1
}

// Call is a request as an upstream received it.
type Call struct {
	Upstream string
	N        int // of this upstream, from 1
	Method   string
	Path     string
	Query    string
	Host     string
	Header   http.Header
	Body     []byte
	At       time.Time
	// Unscripted tells that nobody foresaw the call.
	Unscripted bool
	done       <-chan struct{}
}

// Credential is the key that the call carries, without "Bearer ".
func (c Call) Credential() string {
	if key := c.Header.Get("X-Api-Key"); key != "" {
		return key
	}
	return strings.TrimPrefix(c.Header.Get("Authorization"), "Bearer ")
}

// Cancelled tells whether the caller has ended the call or its context.
func (c Call) Cancelled() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Answer decides what an upstream says to a call.
type Answer func(Call) Reply

// Ended is closed when the caller has ended the call or its context.
func (c Call) Ended() <-chan struct{} { return c.done }

// Always answers every call alike.
func Always(r Reply) Answer { return func(Call) Reply { return r } }

// InTurn answers the n-th call with the n-th reply; further calls are unscripted.
func InTurn(replies ...Reply) Answer {
	return func(c Call) Reply {
		if c.N > len(replies) {
			return Reply{Fail: ErrUnscripted}
		}
		return replies[c.N-1]
	}
}

// Network is a set of upstreams. Safe for concurrent use once built.
type Network struct {
	mu        sync.Mutex
	upstreams map[string]Answer
	calls     []Call
	counts    map[string]int
}

// NewNetwork returns a network without upstreams.
func NewNetwork() *Network {
	return &Network{upstreams: map[string]Answer{}, counts: map[string]int{}}
}

// Set makes answer the upstream called name; it may replace one between calls.
func (n *Network) Set(name string, answer Answer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.upstreams[name] = answer
}

// Calls returns what arrived so far, in order.
func (n *Network) Calls() []Call {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]Call(nil), n.calls...)
}

// Order returns the names of the upstreams called since the first skip calls: "A,B".
func (n *Network) Order(skip int) string {
	var names []string
	for _, c := range n.Calls()[skip:] {
		names = append(names, c.Upstream)
	}
	return strings.Join(names, ",")
}

// arrive records a request and returns what it is answered.
func (n *Network) arrive(r *http.Request, done <-chan struct{}) (Reply, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return Reply{}, fmt.Errorf("upstreamtest: read body: %w", err)
		}
	}
	name := nameOf(r.Host)
	if r.Host == "" {
		name = nameOf(r.URL.Host)
	}
	n.mu.Lock()
	n.counts[name]++
	call := Call{
		Upstream: name, N: n.counts[name], Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Host: r.Host,
		Header: r.Header.Clone(), Body: bytes.Clone(body), At: time.Now(), done: done,
	}
	at := len(n.calls)
	n.calls = append(n.calls, call)
	answer := n.upstreams[name]
	n.mu.Unlock()
	reply := Reply{Fail: ErrUnscripted}
	if answer != nil {
		reply = answer(call)
	}
	if errors.Is(reply.Fail, ErrUnscripted) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.calls[at].Unscripted = true
	}
	return reply, nil
}

func nameOf(host string) string {
	label, _, _ := strings.Cut(host, ".")
	return strings.ToUpper(label)
}
