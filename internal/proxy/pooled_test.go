package proxy

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

// S-LAM-06: pooled connections die while a function is frozen. The first call then gets an
// EOF, and the pinned provider was blamed. It is made once more, on a fresh connection.
func TestSLAM06DeadPooledConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var calls, connections atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for range 2 {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					buf := make([]byte, r.ContentLength)
					if _, err := in.Read(buf); err != nil {
						return
					}
					if calls.Add(1) == 2 {
						return // the connection dies under the second call
					}
					if _, err := conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")); err != nil {
						return
					}
				}
			}()
		}
	}()
	transport := NewTransport(time.Second)
	defer transport.CloseIdleConnections()
	client := NewClient(transport, Timeouts{FirstByte: time.Second, FirstByteUnary: time.Second, Idle: time.Second})
	request := decoded(t, wire.Operation{Surface: wire.Chat, Path: "/chat/completions", Billed: true}, `{"model":"m"}`)
	target := Target{Provider: &provider.Provider{Type: "openai", BaseURL: "http://" + listener.Addr().String()}, Key: provider.Key{Text: "k"}, Model: provider.Model{Upstream: "m"}}
	for i := range 2 {
		answer, failure := client.Open(context.Background(), request, target)
		if failure != nil {
			t.Fatalf("call %d failed: %v", i+1, failure.Cause)
		}
		answer.Close()
	}
	if calls.Load() != 3 || connections.Load() != 2 {
		t.Errorf("%d calls on %d connections, want the second call made again on a second one", calls.Load(), connections.Load())
	}
}

func decoded(t testing.TB, op wire.Operation, body string) *wire.Request {
	t.Helper()
	r, err := wire.Decode(op, "", http.Header{}, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
