package upstreamtest

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
)

// ServeHTTP plays a call on a real connection.
func (n *Network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reply, err := n.arrive(r, r.Context().Done())
	if err != nil || reply.head(r.Context()) != nil {
		panic(http.ErrAbortHandler)
	}
	for name, values := range reply.Header {
		w.Header()[name] = values
	}
	if length := reply.length(); length >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(length, 10))
	}
	flush := http.NewResponseController(w).Flush
	w.WriteHeader(reply.status())
	_ = flush()
	err = reply.play(r.Context(), func(b []byte) error {
		if _, err := w.Write(b); err != nil {
			return err
		}
		return flush()
	})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// Listen puts the network behind a socket for the length of the test and returns a
// transport, made over base, that finds it under every host name. Replies with Fail break
// the connection.
func (n *Network) Listen(t testing.TB, base *http.Transport) http.RoundTripper {
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	base.Proxy = nil
	base.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}
	t.Cleanup(base.CloseIdleConnections)
	return base
}

// encode compresses what is written when the header says so, each chunk readable at once.
func (r Reply) encode(write func([]byte) error) (func([]byte) error, func() error) {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return write, func() error { return nil }
	}
	var buffer bytes.Buffer
	zip := gzip.NewWriter(&buffer)
	send := func(err error) error {
		defer buffer.Reset()
		return errors.Join(err, write(buffer.Bytes()))
	}
	return func(b []byte) error {
			if _, err := zip.Write(b); err != nil {
				return err
			}
			return send(zip.Flush())
		}, func() error {
			return send(zip.Close())
		}
}
