package awsclient

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Inside a region a connection takes a millisecond or two; what takes a thousand times
	// that will not come.
	dialLimit = 2 * time.Second
	// A backstop: whoever calls has a limit of its own, usually far below.
	headerLimit = 30 * time.Second
	// Below what AWS's front ends keep an idle connection for, so that the one which is
	// picked is alive as a rule.
	idleLimit = 55 * time.Second
	// One environment serves one request at a time, or a few.
	idlePerHost = 16
)

// newClient returns the HTTP client of all AWS calls. Roots are asked for at the first call
// over TLS, so that a local endpoint never pays for them.
func newClient(roots func() (*x509.CertPool, error)) *http.Client {
	t := &transport{plain: newTransport(nil)}
	t.secure = sync.OnceValues(func() (*http.Transport, error) {
		pool, err := roots()
		if err != nil {
			return nil, fmt.Errorf("trusted roots: %w", err)
		}
		made := newTransport(pool)
		t.made.Store(made)
		return made, nil
	})
	return &http.Client{
		Transport: t,
		// A redirected request would not be signed for where it goes.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// transport makes one of its two transports only when it is needed.
type transport struct {
	plain  *http.Transport
	secure func() (*http.Transport, error)
	made   atomic.Pointer[http.Transport] // what secure has returned
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return t.plain.RoundTrip(r)
	}
	secure, err := t.secure()
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	return secure.RoundTrip(r)
}

// CloseIdleConnections is found by http.Client.CloseIdleConnections.
func (t *transport) CloseIdleConnections() {
	t.plain.CloseIdleConnections()
	if secure := t.made.Load(); secure != nil {
		secure.CloseIdleConnections()
	}
}

func newTransport(roots *x509.CertPool) *http.Transport {
	dialer := &net.Dialer{Timeout: dialLimit, KeepAlive: 30 * time.Second}
	var http1 http.Protocols // the services talk no HTTP/2
	http1.SetHTTP1(true)
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		Protocols:             &http1,
		MaxIdleConns:          4 * idlePerHost,
		MaxIdleConnsPerHost:   idlePerHost,
		IdleConnTimeout:       idleLimit,
		TLSHandshakeTimeout:   dialLimit,
		ResponseHeaderTimeout: headerLimit,
		ExpectContinueTimeout: time.Second, // S3 puts ask first
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: roots,
			// A connection that died in a freeze is replaced without checking the
			// certificate's chain again.
			ClientSessionCache: tls.NewLRUClientSessionCache(8),
		},
	}
}
