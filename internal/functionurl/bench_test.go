package functionurl

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkFirstByte is what the way through the front, the Runtime API and a process adds to a
// handler: compare function/ with direct/ of the same size. It includes the official client's
// own time, which for large bodies is most of it.
func BenchmarkFirstByte(b *testing.B) {
	direct := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "data")
	}))
	defer direct.Close()
	function := start(b, "wrapped", Options{Queue: true})
	raw := start(b, "faults", Options{Queue: true})
	for _, size := range []int{2 << 10, 100 << 10, 1 << 20} {
		body := strings.Repeat(" ", size)
		b.Run("direct/"+sizeName(size), func(b *testing.B) { firstByte(b, direct.URL, body) })
		b.Run("function/"+sizeName(size), func(b *testing.B) { firstByte(b, function.url+"/first", body) })
	}
	b.Run("raw/echo", func(b *testing.B) { firstByte(b, raw.url, "post - \"text\"") })
}

func firstByte(b *testing.B, url, body string) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	b.ReportAllocs()
	one := make([]byte, 1)
	for b.Loop() {
		resp, err := client.Post(url, "application/json", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(resp.Body, one); err != nil || resp.StatusCode != http.StatusOK {
			b.Fatal(resp.Status, err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}
