package s3log

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/audit"
	"switchboard/internal/record"
)

// shelf is a bucket in memory that counts, and fails on demand.
type shelf struct {
	mu      sync.Mutex
	objects map[string][]byte
	version map[string]int
	lists   []string // "prefix" or "prefix after"
	gets    []string
	listErr error
	getErr  func(key string) error
	body    func(ctx context.Context, key string, r io.Reader) io.Reader
}

var _ Bucket = (*shelf)(nil)

func newShelf() *shelf { return &shelf{objects: map[string][]byte{}, version: map[string]int{}} }

func (s *shelf) put(key, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = []byte(text)
	s.version[key]++
}

func (s *shelf) List(ctx context.Context, prefix, after string, limit int) (page []Object, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists = append(s.lists, strings.TrimSpace(prefix+" "+after))
	if err := cmp.Or(ctx.Err(), s.listErr); err != nil {
		return nil, false, err
	}
	var keys []string
	for key := range s.objects {
		if strings.HasPrefix(key, prefix) && key > after {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys[:min(limit, len(keys))] {
		page = append(page, Object{Key: key, ETag: strconv.Itoa(s.version[key]), Size: int64(len(s.objects[key]))})
	}
	return page, len(keys) > limit, nil
}

func (s *shelf) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets = append(s.gets, key)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.getErr != nil {
		if err := s.getErr(key); err != nil {
			return nil, err
		}
	}
	data, ok := s.objects[key]
	if !ok {
		return nil, ErrGone
	}
	var r io.Reader = bytes.NewReader(data)
	if s.body != nil {
		r = s.body(ctx, key, r)
	}
	return io.NopCloser(r), nil
}

// calls returns and forgets what was asked for.
func (s *shelf) calls() (lists, gets []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lists, gets = s.lists, s.gets
	s.lists, s.gets = nil, nil
	slices.Sort(gets)
	return lists, gets
}

// clock is the time of a test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock(text string) *clock { return &clock{now: at(text)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// at reads "2006-01-02 15:04:05".
func at(text string) time.Time {
	t, err := time.Parse(time.DateTime, text)
	if err != nil {
		panic(err)
	}
	return t
}

func open(t testing.TB, o Options) *Reader {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	r, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return r
}

// made is an event of session "s" as a line.
func made(id, created string) string { return madeIn("s", id, created) }

func madeIn(session, id, created string) string {
	return `{"event_id":"` + id + `","created_at":` + strconv.FormatInt(at(created).UnixMilli(), 10) +
		`,"session_id":"` + session + `","session_key":"` + session + `","provider_identity":"p","cost_nano_usd":3,"response_status":200,"outcome":"ok"}` + "\n"
}

// logOf asks for the log of a range; "" is open.
func logOf(t testing.TB, r *Reader, from, to string) (string, audit.Coverage) {
	t.Helper()
	var f audit.Filter
	if from != "" {
		f.From = at(from)
	}
	if to != "" {
		f.To = at(to)
	}
	answer, err := r.Log(t.Context(), f, audit.Page{Limit: audit.MaxLimit})
	if err != nil {
		t.Fatalf("Log(%s, %s) = %v", from, to, err)
	}
	if int64(len(answer.Entries)) != answer.Total {
		t.Errorf("Log(%s, %s) = %d of %d", from, to, len(answer.Entries), answer.Total)
	}
	return idsOf(answer.Entries), answer.Coverage
}

// idsOf are the ids in their order, oldest first.
func idsOf(events []record.Event) string {
	events = slices.Clone(events)
	slices.Reverse(events)
	return ids(events)
}

var errDown = errors.New("service unavailable")
