package sse

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// got is an event with its end as an offset in the stream, and its slices copied.
type got struct {
	Name, Data string
	HasData    bool
	Comment    bool
	TooLong    bool
	Tail       string
	End        int // -1: by Close
}

// reporter is what scan needs of a *testing.T or *rapid.T.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// scan feeds the chunks and collects the events.
func scan(t reporter, chunks ...string) []got {
	t.Helper()
	var s Scanner
	var events []got
	fed, ended := 0, 0
	take := func(e Event, end int) {
		events = append(events, got{
			string(e.Name), string(e.Data), e.Data != nil, e.Comment, e.TooLong, string(e.Tail), end,
		})
		if e.Name != nil && e.TooLong && len(e.Data) != 0 {
			t.Errorf("TooLong event has data")
		}
	}
	for _, c := range chunks {
		b := []byte(c)
		s.Feed(b)
		for {
			e, ok := s.Next()
			if !ok {
				break
			}
			ended = fed + e.End
			take(e, ended)
			if s.Partial() != 0 {
				t.Errorf("Partial() after an event = %d, want 0", s.Partial())
			}
		}
		fed += len(c)
		if s.Partial() != fed-ended {
			t.Errorf("Partial() = %d, want %d", s.Partial(), fed-ended)
		}
		for i := range b { // nothing of the chunk may be used any more
			b[i] = '#'
		}
	}
	if e, ok := s.Close(); ok {
		if e.End != 0 {
			t.Errorf("Close: End = %d, want 0", e.End)
		}
		take(e, -1)
	}
	if _, ok := s.Close(); ok {
		t.Errorf("second Close returned an event")
	}
	return events
}

func data(d string, end int) got { return got{Data: d, HasData: true, End: end} }

func TestScanner(t *testing.T) {
	tests := []struct {
		name, stream string
		want         []got
	}{
		{"empty", "", nil},
		{"LF", "data: a\n\ndata: b\n\n", []got{data("a", 9), data("b", 18)}},
		{"S-SSE-01 CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []got{data("a", 11), data("b", 22)}},
		{"CR", "data: a\r\rdata: b\r\r", []got{data("a", 9), data("b", -1)}},
		{"mixed", "data: a\r\n\ndata: b\n\r\ndata: c\r\n\r", []got{data("a", 10), data("b", 20), data("c", -1)}},
		{"S-SSE-04 comment", ": OPENROUTER PROCESSING\n\n", []got{{Comment: true, End: 25}}},
		{"S-SSE-04 no space", "data:{\"a\":1}\n\n", []got{data(`{"a":1}`, 14)}},
		{"S-SSE-04 one space only", "data:  x\n\n", []got{data(" x", 10)}},
		{"S-SSE-04 data lines", "data: a\ndata:b\ndata\ndata: d\n\n", []got{data("a\nb\n\nd", 29)}},
		{"comment within", ": c\ndata: a\n:\n\n", []got{data("a", 15)}},
		{"name", "event: ping\ndata: {}\n\n", []got{{Name: "ping", Data: "{}", HasData: true, End: 22}}},
		{"last name", "event: a\nevent:b\n\n", []got{{Name: "b", End: 18}}},
		{"other fields", "id: 7\nretry: 10\ndatas: x\ndata\n\n", []got{data("", 31)}},
		{"stray blank lines", "\n\r\n\rdata: a\n\n", []got{{End: 1}, {End: 3}, {End: 4}, data("a", 13)}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", []got{data("a", 12), {End: 24}}},
		{"no blank line", "data: a\n\ndata: b\n", []got{data("a", 9), data("b", -1)}},
		{"no line end", "data: [DONE]", []got{data("[DONE]", -1)}},
		{"S-SSE-02 characters", "data: 北京\n\n", []got{data("北京", 14)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, scan(t, tt.stream)); diff != "" {
				t.Errorf("whole (-want +got):\n%s", diff)
			}
			for cut := range tt.stream {
				if diff := cmp.Diff(tt.want, scan(t, tt.stream[:cut], tt.stream[cut:])); diff != "" {
					t.Errorf("cut at %d (-want +got):\n%s", cut, diff)
				}
			}
			if diff := cmp.Diff(tt.want, scan(t, strings.Split(tt.stream, "")...)); diff != "" {
				t.Errorf("byte by byte (-want +got):\n%s", diff)
			}
		})
	}
}

// S-SSE-03: an event above the cap costs its data, not the events after it.
func TestSSE03EventsOfMegabytes(t *testing.T) {
	payload := func(size int) string {
		return fmt.Sprintf("event: big\ndata: {\"a\":\"%s\"}\n\n", strings.Repeat("x", size))
	}
	for _, size := range []int{300_000, MaxEvent - 27, MaxEvent - 26, MaxEvent, 5 << 20} {
		big := payload(size)
		for _, chunk := range []int{100, 310, 4096, 70_000, len(big)} {
			if chunk == 100 && size > 2<<20 {
				continue
			}
			t.Run(fmt.Sprintf("%d in %d", size, chunk), func(t *testing.T) {
				stream := "data: first\n\n" + big + "data: last\n\n"
				events := scan(t, cut(stream, chunk)...)
				if len(events) != 3 {
					t.Fatalf("events = %d, want 3", len(events))
				}
				if diff := cmp.Diff(data("first", 13), events[0]); diff != "" {
					t.Errorf("first (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(data("last", len(stream)), events[2]); diff != "" {
					t.Errorf("last (-want +got):\n%s", diff)
				}
				want := got{Name: "big", End: 13 + len(big)}
				if len(big) > MaxEvent {
					want.TooLong, want.Tail = true, big[len(big)-tailKept:]
				} else {
					want.Data, want.HasData = big[17:len(big)-2], true
				}
				if events[1] != want {
					t.Errorf("big = %.60q…, want %.60q…", fmt.Sprint(events[1]), fmt.Sprint(want))
				}
			})
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	var s Scanner
	chunk := bytes.Repeat([]byte("y"), 10_000)
	for range 1000 {
		s.Feed(chunk)
		if e, ok := s.Next(); ok {
			t.Fatalf("Next() = %v, want nothing", e)
		}
	}
	if kept := cap(s.held) + cap(s.head) + cap(s.join); kept > 2*MaxEvent {
		t.Errorf("kept = %d bytes of a line of 10 MB, want at most %d", kept, 2*MaxEvent)
	}
	if s.Partial() != 10_000_000 {
		t.Errorf("Partial() = %d, want 10000000", s.Partial())
	}
}

// cut splits a text in chunks of n bytes.
func cut(s string, n int) []string {
	var chunks []string
	for len(s) > n {
		chunks, s = append(chunks, s[:n]), s[n:]
	}
	return append(chunks, s)
}

func TestNoAllocation(t *testing.T) {
	whole := []byte("event: x\ndata: {\"a\":1}\n\n: c\n\ndata: [DONE]\r\n\r\n")
	var s Scanner
	feed := func(chunk []byte) {
		s.Feed(chunk)
		for {
			if _, ok := s.Next(); !ok {
				return
			}
		}
	}
	if n := testing.AllocsPerRun(100, func() { feed(whole) }); n != 0 {
		t.Errorf("allocations of whole events = %v, want 0", n)
	}
	feed(whole[:12])
	feed(whole[12:])
	if n := testing.AllocsPerRun(100, func() { feed(whole[:12]); feed(whole[12:30]); feed(whole[30:]) }); n != 0 {
		t.Errorf("allocations of cut events, buffers warm = %v, want 0", n)
	}
}
