// Package proxy calls one target, holds its answer back until first output, copies it to
// the client byte for byte, and says how it ended.
package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/translate"
	"switchboard/internal/wire"
)

// Causes with which a call is cancelled.
var (
	ErrFirstByte = errors.New("no first byte in time")
	ErrIdle      = errors.New("silence in mid-answer")
	ErrDeadline  = errors.New("the deadline of the function is near")
	errDone      = errors.New("done")
	errQuery     = errors.New("the query has a control character in it")
)

const (
	bufferSize  = 32 << 10
	maxError    = 64 << 10  // of an upstream error body
	maxHeld     = 256 << 10 // of a stream's preamble
	maxUnary    = 1 << 20   // of an answer that is kept whole before it is committed
	unaryTail   = 64 << 10  // of a larger one that is kept to read its usage
	drainLimit  = 250 * time.Millisecond
	preambleMax = 15 * time.Second // a preamble without output is held back this long
)

// Target is what a call goes to.
type Target struct {
	Provider *provider.Provider
	Key      provider.Key
	Model    provider.Model
	// As is the surface in which the provider is called; empty: the request's. Request and
	// answer are translated where it is another.
	As wire.Surface
	// Mixed: the session may have been answered through a translation; what that left in its
	// history is taken out for a provider who would refuse it.
	Mixed bool
	// Hint names the session to the provider; empty: nothing does. It is opaque here.
	Hint string
}

// Client calls providers.
type Client struct {
	transport http.RoundTripper
	timeouts  Timeouts
	vendors   map[string]*provider.Vendor
	unknown   *provider.Vendor
	buffers   *sync.Pool // of *[bufferSize]byte
}

// NewTransport returns a transport for upstream calls: no compression of its own, no
// proxy surprises beyond the environment's, no limit but connect's.
func NewTransport(connect time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        4096,
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: connect,
		DisableCompression:  true,
		WriteBufferSize:     64 << 10,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
	}
}

// NewClient returns a client over transport.
func NewClient(transport http.RoundTripper, timeouts Timeouts) *Client {
	vendors := map[string]*provider.Vendor{}
	for _, v := range provider.Vendors() {
		vendors[v.Type] = &v
	}
	return &Client{
		transport: transport, timeouts: timeouts, vendors: vendors, unknown: &provider.Vendor{},
		buffers: &sync.Pool{New: func() any { return new([bufferSize]byte) }},
	}
}

// Failure is an attempt that gave the client nothing.
type Failure struct {
	provider.Failure
	Status int // HTTP status of the answer, or the one an in-band error stands for; 0 for none
	Header http.Header
	Body   []byte // of the answer, redacted, at most 64 KiB
	JSON   bool   // Body is a JSON document
	Cause  error  // for the log
	// Untranslatable: nothing was sent, as the request asks for what the provider's surface does
	// not have. No provider is to blame, and another may serve.
	Untranslatable *wire.Error
	Translated     string // see Answer.Translated
}

// Open calls the target and returns once its answer is worth committing to: the first
// output of a stream has been read, or a whole small answer, or the head of a large one.
// Exactly one of answer and failure is not nil. The caller must Close the answer.
func (c *Client) Open(ctx context.Context, r *wire.Request, to Target) (*Answer, *Failure) {
	var translation *translation
	if to.As != "" && to.As != r.Surface {
		var e *wire.Error
		if r, translation, e = translated(r, to, time.Now().Unix()); e != nil {
			return nil, &Failure{Failure: provider.Failure{Class: health.Request}, Status: e.Status, Untranslatable: e}
		}
	}
	askUsage := r.Surface == wire.Chat && r.Fields.Stream && to.Provider.StreamOptions && !r.Fields.IncludeUsage
	vendor := c.vendor(to.Provider)
	ctx, cancel := context.WithCancelCause(ctx)
	first := c.timeouts.FirstByteUnary
	if r.Fields.Stream {
		first = c.timeouts.FirstByte
	}
	a := &Answer{
		client: c, vendor: vendor, surface: r.Surface, ctx: ctx, cancel: cancel, key: to.Key.Text,
		since: time.Now(), observer: vendor.NewStream(r.Surface), hide: askUsage, billed: r.Billed,
		translation: translation,
	}
	a.timer = time.AfterFunc(first, a.expire)
	opened := false
	defer func() { // also when something below panics
		if !opened {
			a.Close()
		}
	}()
	if failure := a.open(r, to, askUsage); failure != nil {
		return nil, failure
	}
	opened = true
	return a, nil
}

func (a *Answer) open(r *wire.Request, to Target, askUsage bool) *Failure {
	edits := r.Edits(to.Model.Upstream, askUsage)
	if to.Mixed && a.translation == nil && !to.Provider.ExtendedChat() {
		edits = withEdits(edits, translate.Leftovers(r.Surface, r.Body))
	}
	hint := hintOf(a.vendor, r, to)
	if hint.Member != "" {
		edits = withMember(r, edits, hint.Member, to.Hint)
	}
	a.upload.body = wire.Splice(r.Body, edits...)
	request, err := a.client.request(a.ctx, r, to, &a.upload)
	if err == nil && hint.Header != "" {
		request.Header[hint.Header] = []string{to.Hint}
	}
	if err != nil { // no provider is to blame for what cannot be sent
		return &Failure{Failure: provider.Failure{Class: health.Request}, Status: http.StatusBadRequest, Cause: err}
	}
	response, err := a.client.transport.RoundTrip(request)
	if err != nil {
		return a.broken(err)
	}
	a.response, a.body = response, response.Body
	if err := a.decompress(); err != nil {
		return a.broken(err)
	}
	if response.StatusCode/100 != 2 {
		return a.refusal()
	}
	a.Stream = strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream")
	if a.Stream {
		return a.holdPreamble()
	}
	return a.readHead()
}

// request builds the upstream request: allow-listed headers and exactly one credential.
func (c *Client) request(ctx context.Context, r *wire.Request, to Target, up *upload) (*http.Request, error) {
	vendor := c.vendor(to.Provider)
	address, query := vendor.Address(to.Provider, provider.Call{
		Surface: r.Surface, Path: r.Path, Query: r.Query, Model: to.Model.Upstream,
	})
	at, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if hasControl(r.Query) || strings.Contains(r.Query, "\t") {
		return nil, errQuery
	}
	at.RawQuery = query
	header := make(http.Header, len(r.Header))
	copyRequestHeaders(header, r.Header)
	if !to.Provider.NoAuth {
		vendor.Authorize(header, to.Key.Text)
	}
	// An empty value is not sent; it tells the transport that a call which died on a pooled
	// connection before any byte of an answer may be made once more on a fresh one.
	header["X-Idempotency-Key"] = nil
	request := &http.Request{
		Method: http.MethodPost, URL: at, Host: at.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: up.open(), ContentLength: up.body.Len(),
		GetBody: func() (io.ReadCloser, error) { return up.open(), nil },
	}
	return request.WithContext(ctx), nil
}

// decompress undoes a gzip that we did not ask for, so that usage can be read and the
// label matches the bytes. What we cannot undo is passed on with its label.
func (a *Answer) decompress() error {
	switch strings.ToLower(strings.TrimSpace(a.response.Header.Get("Content-Encoding"))) {
	case "", "identity":
		a.plain = true
	case "gzip", "x-gzip":
		reader, err := gzip.NewReader(a.body)
		if err != nil {
			return err
		}
		a.body, a.plain = reader, true
		a.response.ContentLength = -1
		a.response.Header.Del("Content-Encoding")
		a.response.Header.Del("Content-Length")
	}
	return nil
}

// broken is a call that ended without a usable answer.
func (a *Answer) broken(err error) *Failure {
	f := &Failure{Failure: provider.Failure{Class: health.Connection}, Cause: err}
	if a.response != nil {
		f.Status = a.response.StatusCode
	}
	switch cause := context.Cause(a.ctx); {
	case cause == nil:
	case errors.Is(cause, ErrFirstByte), errors.Is(cause, ErrIdle):
		f.Class, f.Cause = health.Timeout, cause
	default:
		f.Class, f.Cause = health.ClientGone, cause
	}
	return f
}

// refusal reads an answer that is not a success.
func (a *Answer) refusal() *Failure {
	body, err := io.ReadAll(io.LimitReader(a.body, maxError))
	if err != nil && context.Cause(a.ctx) != nil {
		return a.broken(err)
	}
	f := &Failure{Status: a.response.StatusCode, Header: a.safeHeader()}
	f.Failure = a.vendor.Classify(f.Status, a.response.Header, body, time.Now())
	if !a.billed && a.vendor.NoCountTokens && (f.Status == http.StatusNotFound || f.Status == http.StatusMethodNotAllowed) {
		f.Failure = provider.Failure{Class: health.Request} // says nothing of the model
	}
	body = a.vendor.ErrorBody(body)
	f.JSON = a.plain && isJSONObject(body)
	if f.JSON {
		body = a.translation.body(f.Status, body)
	}
	f.Body, f.Translated = provider.Redact(body, a.keys()), a.Translated()
	return f
}

func (a *Answer) keys() []string {
	if a.key == "" {
		return nil
	}
	return []string{a.key}
}

func isJSONObject(body []byte) bool {
	body = bytes.TrimSpace(body)
	return len(body) >= 2 && body[0] == '{' && body[len(body)-1] == '}'
}
