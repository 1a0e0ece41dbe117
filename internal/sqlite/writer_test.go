package sqlite_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/record"
	"switchboard/internal/record/recordtest"
	"switchboard/internal/sqlite"
)

// syncBuffer is a log that the writer's goroutine may write while the test reads.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// undelivered returns the events that the log says were not written.
func (b *syncBuffer) undelivered(t *testing.T) map[string]record.Event {
	t.Helper()
	events := make(map[string]record.Event)
	for line := range strings.Lines(b.String()) {
		var entry struct {
			Level, Msg string
			Event      record.Event `json:"routing_event"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if entry.Msg == "undelivered_event" && entry.Level == "ERROR" {
			events[entry.Event.EventID] = entry.Event
		}
	}
	return events
}

func rec(t *testing.T, db *sqlite.DB, n int) {
	t.Helper()
	event := recordtest.Full(n)
	if err := db.Record(t.Context(), &event); err != nil {
		t.Fatalf("Record: %v", err)
	}
}

// Another process holds the write lock: reads go on, writes wait, callers keep their own
// time limits, and nothing is lost.
func TestLockedByAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := open(t, path, nil)
	old := claim(t, db, "s", "a")
	raw := rawConn(t, path)
	sql(t, raw, "BEGIN IMMEDIATE")

	if _, err := db.Lookup(t.Context(), old.Ref, now); err != nil {
		t.Errorf("Lookup beside a writer: %v", err)
	}
	rec(t, db, 1)
	if err := db.AddUsage(t.Context(), old.Ref, affinity.Usage{InputTokens: 10}, now, idle); err != nil {
		t.Errorf("AddUsage: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	alias := affinity.Alias{ResponseID: "r", SessionKey: "s", ExpiresAt: now.Add(idle)}
	if err := db.PutAlias(ctx, alias); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("PutAlias error = %v, want %v", err, context.DeadlineExceeded)
	}
	if _, err := db.Assign(ctx, pin("late", "a"), nil, now, idle); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Assign error = %v, want %v", err, context.DeadlineExceeded)
	}

	sql(t, raw, "COMMIT")
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := db.Lookup(t.Context(), old.Ref, now); err != nil || got.InputTokens != 10 {
		t.Errorf("Lookup = %+v, %v, want the usage added", got, err)
	}
	if events := readEvents(t, path); len(events) != 1 {
		t.Errorf("%d events, want 1", len(events))
	}
	claim(t, db, "late", "b") // nobody waited for the first attempt any more
}

// A full queue makes callers wait, each until its own context ends; what was accepted
// is delivered.
func TestFullQueueHoldsCallersBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := open(t, path, nil)
	raw := rawConn(t, path)
	sql(t, raw, "BEGIN IMMEDIATE")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	accepted := 0
	for {
		event := recordtest.Full(accepted)
		err := db.Record(ctx, &event)
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("Record: %v", err)
			}
			break
		}
		accepted++
	}
	if accepted < 256 || accepted > 4096 {
		t.Errorf("%d events accepted while the file was locked, want a bounded queue", accepted)
	}
	sql(t, raw, "COMMIT")
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := len(readEvents(t, path)); got != accepted {
		t.Errorf("%d events delivered, want the %d accepted", got, accepted)
	}
}

// A write that cannot be made takes no other with it, and is logged whole.
func TestOneBadWriteInABatch(t *testing.T) {
	var log syncBuffer
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := open(t, path, slog.New(slog.NewJSONHandler(&log, nil)))
	raw := rawConn(t, path)
	sql(t, raw, `CREATE TRIGGER refuse BEFORE INSERT ON event WHEN NEW.request_id IN ('req-7', 'req-9')
		BEGIN SELECT RAISE(ABORT, 'refused'); END`)
	for n := range 20 {
		rec(t, db, n)
	}
	claim(t, db, "s", "a") // rides along
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := len(readEvents(t, path)); got != 18 {
		t.Errorf("%d events, want 18", got)
	}
	if _, err := db.Lookup(t.Context(), pin("s", "").Ref, now); err != nil {
		t.Errorf("Lookup: %v", err)
	}
	lost := log.undelivered(t)
	for _, n := range []int{7, 9} {
		want := recordtest.Full(n)
		if got, ok := lost[want.EventID]; !ok || got.UserPath != want.UserPath || len(got.Attempts) != 2 || *got.CostNanoUSD != *want.CostNanoUSD {
			t.Errorf("undelivered %s = %+v, %t, want it whole", want.EventID, got, ok)
		}
	}
	if len(lost) != 2 {
		t.Errorf("%d events logged as undelivered, want 2", len(lost))
	}
}

// Close that runs out of time logs what it could not write.
func TestCloseOutOfTime(t *testing.T) {
	var log syncBuffer
	path := filepath.Join(t.TempDir(), "sessions.db")
	db, err := sqlite.Open(t.Context(), path, slog.New(slog.NewJSONHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	raw := rawConn(t, path)
	sql(t, raw, "BEGIN IMMEDIATE")
	for n := range 300 {
		rec(t, db, n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	started := time.Now()
	if err := db.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close error = %v, want %v", err, context.DeadlineExceeded)
	}
	if took := time.Since(started); took > 2*time.Second {
		t.Errorf("Close took %v", took)
	}
	if lost := log.undelivered(t); len(lost) != 300 {
		t.Errorf("%d events logged as undelivered, want 300", len(lost))
	}
}

func TestAfterClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	db, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	read := claim(t, db, "s", "a")
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			if err := db.Close(context.Background()); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	group.Wait()
	event := recordtest.Full(1)
	_, assign := db.Assign(t.Context(), pin("t", "a"), nil, now, idle)
	_, lookup := db.Lookup(t.Context(), read.Ref, now)
	_, alias := db.LookupAlias(t.Context(), "r", now)
	for op, err := range map[string]error{
		"Assign": assign, "Lookup": lookup, "LookupAlias": alias,
		"Record":   db.Record(t.Context(), &event),
		"AddUsage": db.AddUsage(t.Context(), read.Ref, affinity.Usage{}, now, idle),
		"PutAlias": db.PutAlias(t.Context(), affinity.Alias{ResponseID: "r"}),
	} {
		if err == nil || errors.Is(err, affinity.ErrNotFound) {
			t.Errorf("%s after Close: error = %v, want a fault", op, err)
		}
	}
}

// Whoever gets nil from Record while Close runs finds the event in the file.
func TestCloseBesideRecord(t *testing.T) {
	for range 4 {
		path := filepath.Join(t.TempDir(), "sessions.db")
		db, err := sqlite.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		var accepted [4]int
		var group sync.WaitGroup
		for w := range accepted {
			group.Go(func() {
				for n := 0; ; n++ {
					event := recordtest.Full(w*1_000_000 + n)
					if db.Record(t.Context(), &event) != nil {
						return
					}
					accepted[w]++
				}
			})
		}
		if err := db.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		group.Wait()
		want := 0
		for _, n := range accepted {
			want += n
		}
		if got := len(readEvents(t, path)); got != want {
			t.Fatalf("%d events, want the %d accepted", got, want)
		}
	}
}

// Rows that have long expired go away in passing; live ones and events stay.
func TestExpiredRowsAreSweptUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := open(t, path, nil)
	for n := range 2500 {
		p := pin("old", "a")
		p.Ref.Model = string(rune('a'+n%26)) + time.Duration(n).String()
		if n%2 == 0 {
			p.SessionKey = "old" + p.Ref.Model
		}
		if _, err := db.Assign(t.Context(), p, nil, now, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	put(t, db, affinity.Alias{ResponseID: "old", ExpiresAt: now.Add(time.Minute)})
	put(t, db, affinity.Alias{ResponseID: "young", ExpiresAt: now.Add(48 * time.Hour)})
	rec(t, db, 1)
	p := pin("young", "a")
	p, err := db.Assign(t.Context(), p, nil, now, 48*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for minute := range 10 {
		later := now.Add(3*time.Hour + time.Duration(minute)*2*time.Minute)
		if err := db.AddUsage(t.Context(), p.Ref, affinity.Usage{}, later, idle); err != nil {
			t.Fatal(err)
		}
		if err := db.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// The sweep follows the batch whose caller has been answered; the next one is behind it.
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]int64{"session_affinity": 1, "response_alias": 1, "routing_events": 1} {
		if rows := sql(t, rawConn(t, path), "SELECT count(*) AS n FROM "+table); rows[0]["n"] != want {
			t.Errorf("%s has %v rows, want %d", table, rows[0]["n"], want)
		}
	}
}
