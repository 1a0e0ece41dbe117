package s3log

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"switchboard/internal/audit"
)

// A question that has nothing to be answered from is an error, and no empty page.
func TestBucketDown(t *testing.T) {
	s := newShelf()
	s.put(hour23+"x", made("A", "2026-02-28 23:30:00"))
	s.listErr = errDown
	r := open(t, Options{Bucket: s, Now: newClock("2026-02-28 23:50:00").Now})
	if _, err := r.Summary(t.Context(), audit.Filter{}); !errors.Is(err, errDown) {
		t.Errorf("Summary without a listing = %v, want %v", err, errDown)
	}
	s.listErr = nil
	s.getErr = func(string) error { return errDown }
	if _, err := r.Summary(t.Context(), audit.Filter{}); !errors.Is(err, errDown) {
		t.Errorf("Summary without an object = %v, want %v", err, errDown)
	}
	s.getErr = nil
	if got, coverage := logOf(t, r, "", ""); got != "A" || !coverage.Complete {
		t.Errorf("Log = %s, %+v", got, coverage)
	}
}

// Objects that cannot be read leave an answer incomplete, and are tried again.
func TestUnreadableObjects(t *testing.T) {
	s := newShelf()
	for i := range 20 {
		s.put(fmt.Sprintf("%s%02d", hour23, i), made(fmt.Sprintf("%02d", i), fmt.Sprintf("2026-02-28 23:%02d:00", i)))
	}
	r := open(t, Options{Bucket: s, Now: newClock("2026-02-28 23:50:00").Now, Parallel: 1})
	s.getErr = func(key string) error {
		if strings.HasSuffix(key, "5") {
			return errDown
		}
		return nil
	}
	half := errors.New("connection reset")
	s.body = func(_ context.Context, key string, r io.Reader) io.Reader {
		if strings.HasSuffix(key, "7") {
			return io.MultiReader(r, strings.NewReader("{"), iotest.ErrReader(half))
		}
		return r
	}
	got, coverage := logOf(t, r, "", "")
	if strings.Contains(got, "05") || !strings.Contains(got, "17") || coverage.Complete || coverage.Pending != 4 || coverage.Unreadable != 0 {
		t.Errorf("Log = %s, %+v, want 4 objects pending", got, coverage)
	}
	s.calls()
	s.getErr, s.body = nil, nil
	got, coverage = logOf(t, r, "", "")
	if _, gets := s.calls(); len(strings.Fields(got)) != 20 || !coverage.Complete || len(gets) != 4 {
		t.Errorf("Log = %s, %+v, read %v", got, coverage, gets)
	}
	// Where nothing can be read a load ends soon.
	for i := range 100 {
		s.put(fmt.Sprintf("%s%03d", hour22, i), made(fmt.Sprintf("N%03d", i), "2026-02-28 22:00:00"))
	}
	s.getErr = func(string) error { return errDown }
	r = open(t, Options{Bucket: s, Now: newClock("2026-02-28 23:50:00").Now, Parallel: 1})
	if _, err := r.Daily(t.Context(), audit.Filter{}); !errors.Is(err, errDown) {
		t.Errorf("Daily = %v", err)
	}
	if _, gets := s.calls(); len(gets) > 2*maxFailures {
		t.Errorf("%d objects tried", len(gets))
	}
}

// A load that takes too long leaves an answer incomplete; the next question goes on.
func TestLoadIsCutShort(t *testing.T) {
	s := newShelf()
	for i := range 30 {
		s.put(fmt.Sprintf("%s%02d", hour23, i), made(fmt.Sprintf("%02d", i), fmt.Sprintf("2026-02-28 23:%02d:00", i)))
	}
	stuck := map[string]bool{}
	s.body = func(ctx context.Context, key string, r io.Reader) io.Reader {
		if i := key[len(key)-2:]; i < "20" && !stuck["open"] {
			return readerFunc(func(p []byte) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
		}
		return r
	}
	r := open(t, Options{Bucket: s, Now: newClock("2026-02-28 23:50:00").Now, Parallel: 2, Patience: 300 * time.Millisecond})
	got, coverage := logOf(t, r, "", "")
	if got != "20 21 22 23 24 25 26 27 28 29" || coverage.Complete || coverage.Pending != 20 {
		t.Errorf("Log = %s, %+v, want the newest ten, and 20 pending", got, coverage)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	answer, err := r.Log(ctx, audit.Filter{}, audit.Page{Limit: 50})
	if err != nil || answer.Total != 10 || answer.Complete {
		t.Errorf("Log within a deadline = %d, %+v, %v, want what there is, in time", answer.Total, answer.Coverage, err)
	}
	stuck["open"] = true
	s.calls()
	got, coverage = logOf(t, r, "", "")
	if _, gets := s.calls(); len(strings.Fields(got)) != 30 || !coverage.Complete || len(gets) != 20 {
		t.Errorf("Log = %s, %+v, read %d, want the other 20", got, coverage, len(gets))
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// What an object takes in memory does not depend on its size, nor on that of its lines.
func TestMemoryIsBounded(t *testing.T) {
	const size = 200 << 20
	pattern := []byte(strings.Repeat("x", 1<<20))
	lines := []byte(strings.Repeat("{\"no\":\"event\"}\n", 1<<12))
	s := newShelf()
	s.put(hour23+"giant", "x")
	s.put(hour23+"lines", "x")
	s.put(hour23+"z", made("A", "2026-02-28 23:30:00"))
	s.body = func(_ context.Context, key string, r io.Reader) io.Reader {
		switch {
		case strings.HasSuffix(key, "giant"):
			return io.LimitReader(repeat(pattern), size)
		case strings.HasSuffix(key, "lines"):
			return io.LimitReader(repeat(lines), size/100)
		}
		return r
	}
	r := open(t, Options{Bucket: s, Now: newClock("2026-02-28 23:50:00").Now, Patience: time.Minute})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, coverage := logOf(t, r, "", "")
	runtime.ReadMemStats(&after)
	if got != "A" || !coverage.Complete || coverage.Unreadable < 100_000 {
		t.Errorf("Log = %s, %+v", got, coverage)
	}
	// Live memory cannot have been more than all that was ever asked for.
	if used := after.TotalAlloc - before.TotalAlloc; used > size/2 {
		t.Errorf("%d MB to read %d MB", used>>20, size>>20)
	}
}

// repeat yields text again and again.
func repeat(text []byte) io.Reader {
	at := 0
	return readerFunc(func(p []byte) (int, error) {
		n := copy(p, text[at:])
		at = (at + n) % len(text)
		return n, nil
	})
}
