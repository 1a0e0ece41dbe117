package s3log

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/internal/audit"
)

// Hours of the tests: "now" is in the last of them.
const (
	hour22 = "events/dt=2026-02-28/hour=22/"
	hour23 = "events/dt=2026-02-28/hour=23/"
	hour00 = "events/dt=2026-03-01/hour=00/"
	hour01 = "events/dt=2026-03-01/hour=01/"
)

// S-AUD-01: the three objects of the case, and one with nothing in it.
func TestSAUD01ObjectsOfTheCase(t *testing.T) {
	s := newShelf()
	e1, e2, e3 := made("E1", "2026-02-28 23:10:00"), made("E2", "2026-02-28 23:20:00"), made("E3", "2026-02-28 23:30:00")
	s.put(hour23+"1", e1+e2+e2)
	s.put(hour23+"2", strings.TrimSpace(e2)+strings.TrimSpace(e3)+"\n\n"+`{"event_id":"E4","session_`)
	s.put(hour23+"3.gz", string(zipped([]byte(e3))))
	s.put(hour23+"4", "")
	s.put(hour23+"5.gz", string(zipped(nil)))
	s.put(hour23+"6.gz", string(zipped([]byte(e1)))+string(zipped([]byte(e2[:30]+"\n"))))
	r := open(t, Options{Bucket: s, Now: newClock("2026-03-01 00:10:00").Now})
	got, coverage := logOf(t, r, "", "")
	if got != "E1 E2 E3" || coverage.Unreadable != 2 || !coverage.Complete || coverage.Pending != 0 {
		t.Errorf("Log = %s, %+v, want E1 E2 E3 once each, 2 unreadable, complete", got, coverage)
	}
	usage, err := r.Sessions(t.Context(), audit.Filter{}, audit.Page{Limit: 50})
	if err != nil || len(usage.Entries) != 1 || usage.Entries[0].Requests != 3 || usage.Entries[0].CostNanoUSD != 9 {
		t.Errorf("Sessions = %+v, %v, want one with 3 requests", usage, err)
	}
}

// S-AUD-01: what is no gzip, or is cut, is read as far as it goes.
func TestSAUD01DamagedObjects(t *testing.T) {
	lines := made("E1", "2026-02-28 23:10:00") + strings.Repeat(made("E2", "2026-02-28 23:20:00"), 300) + string(eventLines(400))
	gz := string(zipped([]byte(lines)))
	broken := []byte(gz)
	broken[len(broken)/2] ^= 0xff
	for name, text := range map[string]string{
		"cut":                gz[:len(gz)-len(gz)/4],
		"cut before its sum": gz[:len(gz)-4],
		"a bit":              string(broken),
		"magic alone":        "\x1f\x8b",
		"not gzip":           "\x1f\x8bhello" + lines,
		"with a tail":        gz + "tail",
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			s.put(hour23+"1.gz", text)
			s.put(hour23+"2", made("OTHER", "2026-02-28 23:59:00"))
			r := open(t, Options{Bucket: s, Now: newClock("2026-03-01 00:10:00").Now})
			got, coverage := logOf(t, r, "2026-02-28 23:00:00", "2026-02-28 23:59:30")
			if !strings.HasSuffix(got, "OTHER") || coverage.Unreadable == 0 || !coverage.Complete {
				t.Errorf("Log = %s, %+v, want OTHER, and something unreadable", got, coverage)
			}
			if _, err := r.Summary(t.Context(), audit.Filter{}); err != nil {
				t.Error(err)
			}
			if _, gets := s.calls(); len(gets) != 2 {
				t.Errorf("%d objects read, want each once: damage stays", len(gets))
			}
		})
	}
}

// S-AUD-04: an event of the last second of a day lies under the next one.
func TestSAUD04AcrossMidnight(t *testing.T) {
	s := newShelf()
	s.put(hour00+"late", made("LAST", "2026-02-28 23:59:58"))
	s.put(hour23+"early", made("EARLY", "2026-03-01 00:00:20")) // named after the first event in it
	s.put(hour22+"x", made("BEFORE", "2026-02-28 22:30:00"))
	s.put(hour01+"long", made("LONG", "2026-02-28 23:58:00")) // a request of an hour
	for _, tt := range []struct{ from, to, want string }{
		{"2026-02-28 00:00:00", "2026-03-01 00:00:00", "BEFORE LONG LAST"},
		{"2026-02-28 23:00:00", "2026-03-01 00:00:00", "LONG LAST"},
		{"2026-03-01 00:00:00", "2026-03-01 01:00:00", "EARLY"},
		{"2026-03-01 00:00:00", "", "EARLY"},
		{"2026-02-28 23:59:58", "2026-02-28 23:59:59", "LAST"},
		{"2026-02-28 22:30:00", "2026-02-28 22:30:01", "BEFORE"},
		{"2026-02-28 22:30:01", "2026-02-28 22:40:00", ""},
		{"2026-03-02 00:00:00", "2026-03-03 00:00:00", ""}, // tomorrow
		{"", "2026-02-28 23:59:00", "BEFORE LONG"},
	} {
		r := open(t, Options{Bucket: s, Now: newClock("2026-03-01 01:30:00").Now}) // cold for every question
		if got, coverage := logOf(t, r, tt.from, tt.to); got != tt.want || !coverage.Complete {
			t.Errorf("Log[%s, %s) = %q, %+v, want %q", tt.from, tt.to, got, coverage, tt.want)
		}
	}
}

// A cold start loads what the question needs, and no more.
func TestColdStartLoadsOnlyTheRange(t *testing.T) {
	s := newShelf()
	for day := 1; day <= 28; day++ {
		for h := range 24 {
			s.put(fmt.Sprintf("events/dt=2026-02-%02d/hour=%02d/x", day, h), made(fmt.Sprintf("%02d-%02d", day, h), fmt.Sprintf("2026-02-%02d %02d:30:00", day, h)))
		}
	}
	now := newClock("2026-02-28 23:50:00")
	r := open(t, Options{Bucket: s, Now: now.Now})
	if got, _ := logOf(t, r, "2026-02-10 10:00:00", "2026-02-10 12:00:00"); got != "10-10 10-11" {
		t.Errorf("Log = %s", got)
	}
	lists, gets := s.calls()
	want := []string{"events/dt=2026-02-10/hour=09/x", "events/dt=2026-02-10/hour=10/x", "events/dt=2026-02-10/hour=11/x", "events/dt=2026-02-10/hour=12/x", "events/dt=2026-02-10/hour=13/x"}
	if !slices.Equal(gets, want) || len(lists) != 2 {
		t.Errorf("read %v, listed %v, want %v and 2 lists", gets, lists, want)
	}
	// Another question reads only what it does not have.
	if got, _ := logOf(t, r, "2026-02-10 10:00:00", "2026-02-10 14:00:00"); got != "10-10 10-11 10-12 10-13" {
		t.Errorf("Log = %s", got)
	}
	if _, gets := s.calls(); len(gets) != 2 {
		t.Errorf("read %v, want the two hours that are new", gets)
	}
	// Without a range it goes back for so long, and says so.
	got, coverage := logOf(t, open(t, Options{Bucket: s, Now: now.Now, Lookback: 24 * time.Hour}), "", "")
	if !strings.HasPrefix(got, "27-00 27-01") || !strings.HasSuffix(got, "28-23") || !coverage.Since.Equal(at("2026-02-27 00:00:00")) || !coverage.Complete {
		t.Errorf("Log = %s, %+v, want all since the 27th", got, coverage)
	}
	// Where nothing is older there is nothing to say.
	all, err := open(t, Options{Bucket: s, Now: now.Now, Lookback: 40 * 24 * time.Hour}).Summary(t.Context(), audit.Filter{})
	if err != nil || !all.Since.IsZero() || all.Requests != 28*24 {
		t.Errorf("Summary = %d requests since %v, %v, want all", all.Requests, all.Since, err)
	}
}

// What is here of older days does not change an answer that begins later.
func TestSinceIsABound(t *testing.T) {
	s := newShelf()
	s.put("events/dt=2026-02-01/hour=10/x", made("OLD", "2026-02-01 10:30:00"))
	s.put(hour23+"x", made("NEW", "2026-02-28 23:30:00"))
	r := open(t, Options{Bucket: s, Now: newClock("2026-02-28 23:50:00").Now})
	for range 2 {
		if got, coverage := logOf(t, r, "", ""); got != "NEW" || !coverage.Since.Equal(at("2026-02-21 00:00:00")) {
			t.Errorf("Log = %s, %+v", got, coverage)
		}
		if got, coverage := logOf(t, r, "2026-02-01 00:00:00", "2026-02-02 00:00:00"); got != "OLD" || !coverage.Since.IsZero() {
			t.Errorf("Log of the 1st = %s, %+v", got, coverage)
		}
	}
}

// A question that has been asked costs no GET; one over sealed hours costs nothing.
func TestWarmQuestions(t *testing.T) {
	s := newShelf()
	s.put("events/dt=2026-02-26/hour=10/x", made("A", "2026-02-26 10:30:00"))
	s.put(hour23+"x", made("B", "2026-02-28 23:30:00"))
	now := newClock("2026-02-28 23:50:00")
	dir := t.TempDir()
	r, err := Open(t.Context(), Options{Bucket: s, Now: now.Now, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	logOf(t, r, "", "")
	s.calls()
	ask := func(from, to, want string, wantLists int) {
		t.Helper()
		got, coverage := logOf(t, r, from, to)
		if got != want || !coverage.Complete {
			t.Errorf("Log = %s, %+v, want %s", got, coverage, want)
		}
		if lists, gets := s.calls(); len(gets) != 0 || len(lists) != wantLists {
			t.Errorf("Log[%s, %s) read %v and listed %v, want %d lists", from, to, gets, lists, wantLists)
		}
	}
	ask("", "", "A B", 0)                                     // within the refresh interval
	now.add(4 * time.Second)                                  // after it
	ask("2026-02-26 10:10:00", "2026-02-26 12:00:00", "A", 0) // sealed
	ask("2026-02-28 23:00:00", "", "B", 1)                    // this hour and the one before
	ask("2026-02-28 23:00:00", "", "B", 0)                    // fresh again
	ask("", "", "A B", 1)                                     // where the bucket begins is asked for again
	for _, call := range []func() error{
		func() error { _, err := r.Threads(t.Context(), audit.Filter{}, audit.Page{Limit: 50}); return err },
		func() error { _, err := r.Sessions(t.Context(), audit.Filter{}, audit.Page{Limit: 50}); return err },
		func() error { _, err := r.Summary(t.Context(), audit.Filter{}); return err },
		func() error { _, err := r.Daily(t.Context(), audit.Filter{}); return err },
	} {
		if err := call(); err != nil {
			t.Error(err)
		}
	}
	if lists, gets := s.calls(); len(lists)+len(gets) != 0 {
		t.Errorf("warm questions listed %v and read %v", lists, gets)
	}
	// The next process on the same disk goes on with what is there.
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = open(t, Options{Bucket: s, Now: now.Now, Dir: dir})
	got, _ := logOf(t, r, "", "")
	if lists, gets := s.calls(); got != "A B" || len(gets) != 0 || len(lists) != 1 {
		t.Errorf("after a restart: Log = %s, read %v, listed %v", got, gets, lists)
	}
}

// Objects that come late are found, also a day late: a stream that cannot reach the bucket
// tries for so long.
func TestLateObjects(t *testing.T) {
	s := newShelf()
	s.put(hour22+"a", made("A", "2026-02-28 22:30:00"))
	now := newClock("2026-02-28 23:50:00")
	r := open(t, Options{Bucket: s, Now: now.Now})
	see := func(want string) {
		t.Helper()
		if got, coverage := logOf(t, r, "2026-02-28 00:00:00", "2026-03-01 00:00:00"); got != want || !coverage.Complete {
			t.Errorf("at %v: Log = %s, %+v, want %s", now.Now(), got, coverage, want)
		}
	}
	see("A")
	s.put(hour23+"b", made("B", "2026-02-28 23:40:00"))
	now.add(5 * time.Second)
	see("A B")
	s.put(hour22+"c", made("C", "2026-02-28 22:31:00")) // a minute after its hour's end and more
	now.add(5 * time.Second)
	see("A C B")
	s.put(hour22+"0", made("0", "2026-02-28 22:01:00"))
	s.put("events/dt=2026-02-28/hour=03/x", made("NIGHT", "2026-02-28 03:01:00")) // before all others
	now.add(12 * time.Hour)
	see("NIGHT 0 A C B")
	s.put(hour22+"d", made("D", "2026-02-28 22:32:00"))
	now.add(11 * time.Hour)
	see("NIGHT 0 A C D B")
	s.calls()
	now.add(5 * time.Hour) // all hours of the day are sealed at the next listing
	see("NIGHT 0 A C D B")
	s.calls()
	now.add(300 * time.Hour)
	if got, _ := logOf(t, r, "2026-02-28 03:30:00", "2026-03-01 00:00:00"); got != "0 A C D B" {
		t.Errorf("Log = %s", got)
	}
	if lists, gets := s.calls(); len(lists)+len(gets) != 0 {
		t.Errorf("sealed hours are listed again: %v, %v", lists, gets)
	}
}

// An object that is put again is read again; one that is deleted keeps its events.
func TestChangedObjects(t *testing.T) {
	s := newShelf()
	s.put(hour23+"x", made("A", "2026-02-28 23:30:00")+"cut\n")
	now := newClock("2026-02-28 23:50:00")
	r := open(t, Options{Bucket: s, Now: now.Now})
	logOf(t, r, "", "")
	s.put(hour23+"x", made("A", "2026-02-28 23:30:00")+made("B", "2026-02-28 23:31:00"))
	now.add(time.Minute)
	if got, coverage := logOf(t, r, "", ""); got != "A B" || coverage.Unreadable != 0 {
		t.Errorf("Log = %s, %+v", got, coverage)
	}
	s.put(hour23+"y", made("C", "2026-02-28 23:32:00"))
	s.getErr = func(key string) error { s.objects = map[string][]byte{}; return nil } // between LIST and GET
	now.add(time.Minute)
	if got, coverage := logOf(t, r, "", ""); got != "A B" || !coverage.Complete {
		t.Errorf("Log = %s, %+v", got, coverage)
	}
}

// AsOf is how far the bucket has been looked at, less what events take to get there.
func TestAsOf(t *testing.T) {
	s := newShelf()
	s.put(hour23+"x", made("A", "2026-02-28 23:30:00"))
	now := newClock("2026-02-28 23:50:00")
	r := open(t, Options{Bucket: s, Now: now.Now, Buffer: time.Minute, Delay: 10 * time.Second})
	see := func(want string, complete bool) {
		t.Helper()
		got, coverage := logOf(t, r, "2026-02-28 00:00:00", "")
		if got != "A" || !coverage.AsOf.Equal(at(want)) || coverage.Complete != complete {
			t.Errorf("Log = %s, %+v, want as of %s, %v", got, coverage, want, complete)
		}
	}
	see("2026-02-28 23:48:50", true)
	now.add(2 * time.Second)
	see("2026-02-28 23:48:50", true)
	now.add(2 * time.Second)
	see("2026-02-28 23:48:54", true)
	s.listErr = errDown // what is here is what was here then
	now.add(time.Minute)
	see("2026-02-28 23:48:54", true)
	now.add(time.Hour) // an hour has never been listed
	see("2026-02-28 23:48:54", false)
	s.listErr = nil
	see("2026-03-01 00:49:54", true)
}

func mustDo(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
