package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"switchboard/internal/affinity"
	"switchboard/internal/audit"
	"switchboard/internal/audit/audittest"
	"switchboard/internal/record"
	"switchboard/internal/record/recordtest"
)

func TestAuditKeepsTheContract(t *testing.T) {
	audittest.Run(t, func(t *testing.T, events []record.Event) audit.Reader {
		db := open(t, filepath.Join(t.TempDir(), "sessions.db"), nil)
		for i := range events {
			if err := db.Record(t.Context(), &events[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Flush(t.Context()); err != nil { // thousands may take longer than a question waits
			t.Fatal(err)
		}
		return db
	})
}

// What one process has recorded, another one's question finds; and its own at once.
func TestAuditSeesWhatWasRecordedBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	db, peer := open(t, path, nil), open(t, path, nil)
	for n := range 50 {
		recorder, reader := db, db
		if n%2 == 0 {
			recorder = peer
		}
		rec(t, recorder, n)
		if n%2 == 0 {
			if err := peer.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		got, err := reader.Log(t.Context(), audit.Filter{}, audit.Page{Limit: 1})
		if want := recordtest.Full(n).EventID; err != nil || got.Total != int64(n+1) || got.Entries[0].EventID != want {
			t.Fatalf("Log after event %d = %+v, %v", n, got, err)
		}
	}
	summary, err := db.Summary(t.Context(), audit.Filter{})
	if err != nil || summary.Requests != 50 || summary.Sessions != 50 || len(summary.Groups) != 1 {
		t.Errorf("Summary of two processes' events = %+v, %v, want 50 requests of 50 sessions", summary, err)
	}
}

// An event that the database refuses leaves nothing in the sums, nor do others suffer.
func TestAuditSumsOnlyWhatIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := open(t, path, nil)
	sql(t, rawConn(t, path), `CREATE TRIGGER refuse BEFORE INSERT ON event WHEN NEW.request_id LIKE '%3'
		BEGIN SELECT RAISE(ABORT, 'refused'); END`)
	for n := range 20 {
		event := recordtest.Full(n)
		event.SessionKey, event.UserPath = "one", fmt.Sprint("/", n%4)
		if err := db.Record(t.Context(), &event); err != nil {
			t.Fatal(err)
		}
	}
	summary, err := db.Summary(t.Context(), audit.Filter{})
	if err != nil || summary.Requests != 18 || summary.Sessions != 4 {
		t.Errorf("Summary = %+v, %v, want 18 requests of 4 sessions", summary, err)
	}
	threads, err := db.Threads(t.Context(), audit.Filter{UserPath: "/3"}, audit.Page{Limit: 5})
	if err != nil || threads.Total != 1 || threads.Sessions[0].RequestCount != 4 {
		t.Errorf("Threads(/3) = %+v, %v, want one of 4 requests", threads, err)
	}
}

func TestAuditAfterClose(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "sessions.db"), nil)
	rec(t, db, 1)
	if _, err := db.Threads(t.Context(), audit.Filter{}, audit.Page{Limit: 1}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := db.Threads(t.Context(), audit.Filter{}, audit.Page{Limit: 1}); err == nil {
		t.Errorf("Threads after Close = %+v, want an error", got)
	}
}

// Requests look up their pins while questions are asked, and events are kept.
func TestAuditBlocksNobody(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "sessions.db"), nil)
	for n := range 2000 {
		rec(t, db, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 3)
	for range cap(ended) {
		go func() {
			for ctx.Err() == nil {
				if _, err := db.Sessions(ctx, audit.Filter{Status: 200}, audit.Page{Limit: 200}); err != nil && ctx.Err() == nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
	}
	for n := range 200 {
		if _, err := db.Lookup(t.Context(), affinity.Ref{SessionKey: "none", Model: "m"}, now); err == nil {
			t.Fatal("Lookup found a pin that is not there")
		}
		rec(t, db, 2000+n)
	}
	cancel()
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
