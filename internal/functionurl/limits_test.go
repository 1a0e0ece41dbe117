package functionurl

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestSLAM07EventLimit(t *testing.T) {
	f := start(t, "wrapped", Options{})
	post := func(kind, text string, chunked bool) (int, string, int) {
		var body io.Reader = strings.NewReader(text)
		if chunked {
			body = io.MultiReader(body)
		}
		r, err := http.NewRequestWithContext(t.Context(), "POST", f.url+"/echo", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		resp, err := f.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(got[:min(len(got), 200)]), len(got)
	}
	for _, tt := range []struct {
		name, kind string
		unit       string
		size       int
		want       int
	}{
		{"text just under", "text/plain", "a", EventLimit - 8<<10, 200},
		{"text of the limit", "text/plain", "a", EventLimit, 413},
		{"far over", "text/plain", "a", 20 << 20, 413},
		{"escapes count", "text/plain", "\"", EventLimit/2 + 1, 413},
		{"escapes under", "text/plain", "\"", EventLimit/2 - 8<<10, 200},
		{"binary under", "application/octet-stream", "\xff", 4_700_000, 200},
		{"binary over", "application/octet-stream", "\xff", 4_730_000, 413},
	} {
		for _, chunked := range []bool{false, true} {
			if chunked && tt.unit == "\"" {
				continue // slow, and the same
			}
			status, body, n := post(tt.kind, strings.Repeat(tt.unit, tt.size), chunked)
			if status != tt.want || status == 200 && n != tt.size {
				t.Errorf("%s, chunked %v = %d, %d bytes, want %d", tt.name, chunked, status, n, tt.want)
			}
			if status == 413 && !strings.Contains(body, "6291456") {
				t.Errorf("%s: body = %s, want the number", tt.name, body)
			}
		}
	}
	if s := f.Stats(); s.Invocations != 5 {
		t.Errorf("Invocations = %d, want only the 5 that fit", s.Invocations)
	}
}

func TestUploadThatBreaksOff(t *testing.T) {
	f := start(t, "wrapped", Options{})
	body := io.MultiReader(bytes.NewReader(make([]byte, 1000)), failing{})
	if status, _, err := f.send(t, "POST", "/echo", body); err == nil {
		t.Errorf("status = %d, want an error", status)
	}
	if s := f.Stats(); s.Invocations != 0 {
		t.Errorf("Invocations = %d, want 0: half a request is none", s.Invocations)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }
