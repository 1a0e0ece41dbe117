package s3log

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/audit"
)

// threadsOf asks for the threads of a range: "session:count session:count".
func threadsOf(t testing.TB, r *Reader, f audit.Filter) (string, audit.Coverage) {
	t.Helper()
	answer, err := r.Threads(t.Context(), f, audit.Page{Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, thread := range answer.Sessions {
		list = append(list, fmt.Sprintf("%s:%d", thread.SessionID, thread.RequestCount))
	}
	return strings.Join(list, " "), answer.Coverage
}

// S-AUD-02: the count is the whole session's, also of what lies outside of the asked range.
func TestSAUD02CountReachesBeyondTheRange(t *testing.T) {
	s := newShelf()
	for day := 20; day <= 28; day++ {
		key := fmt.Sprintf("events/dt=2026-02-%d/hour=10/x", day)
		text := madeIn("other", fmt.Sprint("O", day), fmt.Sprintf("2026-02-%d 10:10:00", day))
		if day >= 24 && day <= 27 {
			text += madeIn("long", fmt.Sprint("L", day), fmt.Sprintf("2026-02-%d 10:20:00", day))
		}
		s.put(key, text)
	}
	of26 := audit.Filter{From: at("2026-02-26 00:00:00"), To: at("2026-02-27 00:00:00")}
	var mu sync.Mutex
	var asked []string
	window := func(_ context.Context, userPath, sessionID string) (from, to time.Time, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, userPath+"|"+sessionID)
		if sessionID == "long" {
			return at("2026-02-24 10:20:00"), at("2026-02-27 10:20:00"), true
		}
		return at("2026-02-26 10:10:00"), at("2026-02-26 10:10:00"), true // a new pin
	}
	now := newClock("2026-02-28 23:00:00")
	for _, tt := range []struct {
		name    string
		o       Options
		f       audit.Filter
		want    string
		objects int
	}{
		{"windows", Options{Window: window}, of26, "long:4 other:4", 4},
		{"around", Options{Around: 30 * time.Hour}, of26, "long:3 other:3", 3},
		{"a filter that chooses none", Options{Window: window}, audit.Filter{From: of26.From, To: of26.To, Status: 500}, "", 1},
		{"as far as questions go back", Options{Window: window, Lookback: 84 * time.Hour}, of26, "long:3 other:3", 3},
		{"open", Options{Window: window}, audit.Filter{}, "other:8 long:4", 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Bucket, tt.o.Now = s, now.Now
			r := open(t, tt.o)
			s.calls()
			if got, coverage := threadsOf(t, r, tt.f); got != tt.want || !coverage.Complete {
				t.Errorf("Threads = %s, %+v, want %s", got, coverage, tt.want)
			}
			if _, gets := s.calls(); len(gets) != tt.objects {
				t.Errorf("read %v, want %d objects", gets, tt.objects)
			}
			if got, _ := threadsOf(t, r, tt.f); got != tt.want {
				t.Errorf("Threads again = %s, want %s", got, tt.want)
			}
			if _, gets := s.calls(); len(gets) != 0 {
				t.Errorf("a warm question read %v", gets)
			}
		})
	}
	slices.Sort(asked)
	if diff := cmp.Diff([]string{"|long", "|other"}, slices.Compact(asked)); diff != "" {
		t.Errorf("windows asked for: %s", diff)
	}
}

// One session's events are looked for only when it was in use.
func TestWindowOfASession(t *testing.T) {
	s := newShelf()
	for h := range 24 {
		s.put(fmt.Sprintf("events/dt=2026-02-28/hour=%02d/x", h), madeIn("s", fmt.Sprintf("%02d", h), fmt.Sprintf("2026-02-28 %02d:30:00", h)))
	}
	o := Options{Bucket: s, Now: newClock("2026-02-28 23:50:00").Now, Window: func(_ context.Context, userPath, id string) (time.Time, time.Time, bool) {
		return at("2026-02-28 10:30:00"), at("2026-02-28 11:30:00"), userPath == "" && id == "s"
	}}
	for _, tt := range []struct {
		f       audit.Filter
		objects int
	}{
		{audit.Filter{SessionID: "s", PathOnly: true}, 3}, // 10 and 11, and an hour for those that arrive late
		{audit.Filter{SessionID: "s", PathOnly: true, From: at("2026-02-28 11:10:00")}, 2},
		{audit.Filter{SessionID: "s", PathOnly: true, From: at("2026-02-28 20:00:00")}, 3}, // an instant, and late ones
		{audit.Filter{SessionID: "s"}, 24},                                                 // of any tenant
		{audit.Filter{SessionID: "s", UserPath: "/a", PathOnly: true}, 24},
		{audit.Filter{SessionID: "../../hour=05", PathOnly: true}, 24},
	} {
		r := open(t, o)
		s.calls()
		if _, err := r.Log(t.Context(), tt.f, audit.Page{Limit: 50}); err != nil {
			t.Fatal(err)
		}
		if _, gets := s.calls(); len(gets) != tt.objects {
			t.Errorf("Log(%+v) read %v, want %d objects", tt.f, gets, tt.objects)
		}
	}
}

// S-AUD-05: nothing that a client has chosen becomes part of a key.
func TestSAUD05KeysAreOurs(t *testing.T) {
	s := newShelf()
	for i, id := range []string{"host/BLAH|x", "a%2Fb", "a/b", "会话-1", "../admin", "dt=2026-01-01"} {
		s.put(fmt.Sprintf("%s%d", hour23, i), strings.ReplaceAll(madeIn("ID", fmt.Sprint(i), "2026-02-28 23:30:00"), `"ID"`, `"`+id+`"`))
	}
	r := open(t, Options{Bucket: s, Now: newClock("2026-02-28 23:50:00").Now})
	for i, id := range []string{"host/BLAH|x", "a%2Fb", "a/b", "会话-1", "../admin", "dt=2026-01-01"} {
		answer, err := r.Log(t.Context(), audit.Filter{SessionID: id, UserPath: "/../" + id, Model: id}, audit.Page{Limit: 50})
		if err != nil || answer.Total != 0 {
			t.Errorf("Log of another tenant = %+v, %v", answer, err)
		}
		answer, err = r.Log(t.Context(), audit.Filter{SessionID: id}, audit.Page{Limit: 50})
		if err != nil || answer.Total != 1 || answer.Entries[0].EventID != fmt.Sprint(i) || answer.Entries[0].SessionID != id {
			t.Errorf("Log(%s) = %+v, %v", id, answer, err)
		}
	}
	lists, gets := s.calls()
	for _, key := range append(lists, gets...) {
		if strings.ContainsAny(key, "%|会.") || strings.Contains(key, "admin") || strings.Contains(key, "2026-01") {
			t.Errorf("asked the bucket for %q", key)
		}
	}
}

// While one question loads, those that have what they need are answered, and one that waits
// for what the load brings goes on when that is there.
func TestReadersGoOnDuringALoad(t *testing.T) {
	s := newShelf()
	s.put(hour23+"x", made("A", "2026-02-28 23:30:00"))
	for i := range 2 * commitObjects {
		s.put(fmt.Sprintf("events/dt=2026-02-25/hour=10/%04d", 9999-i), made(fmt.Sprint("B", i), "2026-02-25 10:30:00"))
	}
	s.put("events/dt=2026-02-20/hour=10/stuck", made("C", "2026-02-20 10:30:00"))
	reached, release := make(chan struct{}), make(chan struct{})
	s.body = func(_ context.Context, key string, r io.Reader) io.Reader {
		if !strings.HasSuffix(key, "stuck") {
			return r
		}
		return io.MultiReader(readerFunc(func([]byte) (int, error) { close(reached); <-release; return 0, io.EOF }), r)
	}
	now := newClock("2026-02-28 23:50:00")
	r := open(t, Options{Bucket: s, Now: now.Now})
	logOf(t, r, "2026-02-28 23:00:00", "")
	now.add(time.Minute) // it would be listed again
	var long sync.WaitGroup
	long.Go(func() {
		if answer, err := r.Summary(t.Context(), audit.Filter{From: at("2026-02-01 00:00:00")}); err != nil || answer.Requests != 2*commitObjects+2 || !answer.Complete {
			t.Errorf("the long question = %+v, %v", answer, err)
		}
	})
	<-reached
	if got, coverage := logOf(t, r, "2026-02-28 23:00:00", ""); got != "A" || !coverage.Complete {
		t.Errorf("Log = %s, %+v", got, coverage)
	}
	answer, err := r.Summary(t.Context(), audit.Filter{From: at("2026-02-25 10:00:00"), To: at("2026-02-25 11:00:00")})
	if err != nil || answer.Requests != 2*commitObjects || !answer.Complete {
		t.Errorf("Summary of what the load has brought = %+v, %v", answer, err)
	}
	close(release)
	long.Wait()
}

// Many questions at once load every object once.
func TestOneLoadsForAll(t *testing.T) {
	s := newShelf()
	for i := range 50 {
		s.put(fmt.Sprintf("%s%02d", hour23, i), made(fmt.Sprint(i), "2026-02-28 23:30:00"))
	}
	r := open(t, Options{Bucket: s, Now: newClock("2026-02-28 23:50:00").Now})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			answer, err := r.Summary(t.Context(), audit.Filter{})
			if err != nil || answer.Requests != 50 || !answer.Complete {
				t.Errorf("Summary = %+v, %v", answer, err)
			}
		})
	}
	all.Wait()
	if _, gets := s.calls(); len(gets) != 50 {
		t.Errorf("%d GETs for 50 objects", len(gets))
	}
}

// A cache over its limit makes room for what is asked; what is asked alone may be too much.
func TestCacheIsBounded(t *testing.T) {
	s := newShelf()
	const lines = 3000
	for day := range 3 {
		var other strings.Builder
		for i := range lines {
			other.WriteString(madeIn(fmt.Sprint("s", i%500), fmt.Sprintf("%d-%d", day, i), fmt.Sprintf("2026-02-%02d 10:10:00", 10+day)))
		}
		s.put(fmt.Sprintf("events/dt=2026-02-%02d/hour=10/x", 10+day), other.String())
	}
	const limit = 700 << 10
	dir := t.TempDir()
	r := open(t, Options{Bucket: s, Now: newClock("2026-03-04 10:00:00").Now, Dir: dir, MaxBytes: limit, Parallel: 1})
	r.commitEvents = 2000
	ask := func(from, to string) (int64, audit.Coverage) {
		t.Helper()
		answer, err := r.Summary(t.Context(), audit.Filter{From: at(from), To: at(to)})
		if err != nil {
			t.Fatal(err)
		}
		return answer.Requests, answer.Coverage
	}
	for range 2 {
		for day := range 3 {
			date := fmt.Sprintf("2026-02-%02d", 10+day)
			if n, coverage := ask(date+" 00:00:00", date+" 23:00:00"); n != lines || !coverage.Complete {
				t.Errorf("day %d = %d, %+v, want %d", day, n, coverage, lines)
			}
		}
	}
	info, err := os.Stat(filepath.Join(dir, cacheName))
	if _, gets := s.calls(); err != nil || info.Size() > 3*limit || len(gets) <= 3 {
		t.Errorf("the file has %d bytes, %v, after %d GETs", info.Size(), err, len(gets))
	}
	if n, coverage := ask("2026-02-01 00:00:00", "2026-03-01 00:00:00"); n == 0 || n > 3*lines || coverage.Complete {
		t.Errorf("all days = %d, %+v, want what there is room for", n, coverage)
	}
}

func TestHours(t *testing.T) {
	for text, want := range map[string]string{
		"2026-02-28 23:59:59": "events/dt=2026-02-28/hour=23/",
		"2026-03-01 00:00:00": "events/dt=2026-03-01/hour=00/",
		"1969-12-31 23:30:00": "events/dt=1969-12-31/hour=23/",
	} {
		h := hourOf(at(text))
		if got := h.prefix("events/"); got != want {
			t.Errorf("prefix(%s) = %s, want %s", text, got, want)
		}
		if back, ok := hourOfKey("events/", want+"x"); back != h || !ok {
			t.Errorf("hourOfKey(%s) = %d, %v, want %d", want, back, ok, h)
		}
	}
	if h := hourOf(at("2026-02-28 23:30:00").In(time.FixedZone("", 9*3600))); h.prefix("") != "dt=2026-02-28/hour=23/" {
		t.Errorf("prefix in another zone = %s", h.prefix(""))
	}
	for _, key := range []string{"", "events/", "events/x", "events/dt=2026-02-30/hour=01/x", "events/dt=2026-02-28/hour=24/x", "dt=2026-02-28/hour=01/x", "events/dt=2026-02-28/hour=1/xx"} {
		if h, ok := hourOfKey("events/", key); ok {
			t.Errorf("hourOfKey(%q) = %d, want none", key, h)
		}
	}
	list := []hour{hourOf(at("2026-02-28 21:00:00")), hourOf(at("2026-02-28 22:00:00")), hourOf(at("2026-02-28 23:00:00")), hourOf(at("2026-03-01 00:00:00")), hourOf(at("2026-03-01 02:00:00"))}
	if got := runs(list); len(got) != 3 || got[0].to-got[0].from != 2 || got[1].from != got[1].to {
		t.Errorf("runs = %v", got)
	}
}

// A listing of many pages, among keys that are none of ours.
func TestListingInPages(t *testing.T) {
	s := newShelf()
	for i := range 2*listPage + 500 {
		s.put(fmt.Sprintf("events/dt=2026-02-28/hour=%02d/%04d", i%24, i), "")
	}
	s.put("events/dt=2026-02-28/hour=05/real", made("A", "2026-02-28 05:30:00"))
	s.put("events/dt=2026-02-28/hour=05x/other", "x")
	s.put("events/dt=2026-02-28/readme", "x")
	s.put("events/.keep", "x")
	s.put("events/dt=2/junk", "x")
	r := open(t, Options{Bucket: s, Now: newClock("2026-03-02 12:00:00").Now})
	if got, coverage := logOf(t, r, "2026-02-28 00:10:00", "2026-02-28 22:00:00"); got != "A" || !coverage.Complete || coverage.Unreadable != 0 {
		t.Errorf("Log = %s, %+v", got, coverage)
	}
	lists, gets := s.calls()
	if len(gets) != 1 || len(lists) != 5 {
		t.Errorf("listed %v, read %v, want 3 pages, and 2 for where the bucket begins", lists, gets)
	}
}

// Nothing is left behind by a load, however it ends.
func TestParallelJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		taken := 0
		err := parallel(ctx, 3, slices.Values([]int{1, 2, 3, 4, 5, 6, 7, 8}), func(ctx context.Context, i int, emit func(int) bool) {
			for emit(i) {
			}
		}, func(int) error {
			if taken++; taken == 5 {
				return errDown
			}
			return nil
		})
		if !errors.Is(err, errDown) || taken != 5 {
			t.Errorf("parallel = %v after %d, want %v after 5", err, taken, errDown)
		}
	})
}
