package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	zombie "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"switchboard/internal/record"
	"switchboard/internal/record/recordtest"
	"switchboard/internal/sqlite"
)

// undeliveredLog is the log of a gateway that could not deliver these events.
func undeliveredLog(numbers ...int) string {
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	for _, n := range numbers {
		event := recordtest.Full(n)
		logger.InfoContext(context.Background(), "request", slog.Any("event", &event))
		logger.ErrorContext(context.Background(), "undelivered routing event", slog.Any("undelivered_event", &event), slog.Any("cause", errors.New("gone")))
	}
	return log.String()
}

func replayEvents(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"switchboard", "events", "replay"}, args...), process{
		getenv: func(string) string { return "" }, environ: func() []string { return nil },
		stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs,
	})
	return code, out.String(), errs.String()
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEventsReplayIntoADatabase(t *testing.T) {
	db := filepath.Join(t.TempDir(), "sessions.db")
	one, two := writeFile(t, undeliveredLog(1, 2, 1)), writeFile(t, undeliveredLog(2, 3))
	cut := undeliveredLog(4)
	cut = cut[:len(cut)-50]
	for _, tt := range []struct {
		name, stdin string
		args        []string
		code        int
		out, errs   string
	}{
		{"counted", "", []string{"--dry-run", one, two}, 0, "found 3 events; 2 repeated, 0 lines unreadable\n", ""},
		{"from standard input", undeliveredLog(1), []string{"--session-db", db}, 0, "found 1 events, delivered 1, already there 0, not delivered 0; 0 repeated, 0 lines unreadable\n", ""},
		{"some are there", "", []string{"--session-db", db, one, two}, 0, "found 3 events, delivered 2, already there 1, not delivered 0; 2 repeated, 0 lines unreadable\n", ""},
		{"all are there", undeliveredLog(3), []string{"--session-db", db, one, "-"}, 0, "found 3 events, delivered 0, already there 3, not delivered 0; 1 repeated, 0 lines unreadable\n", ""},
		{"a line that was cut", cut, []string{"--session-db", db}, 1, "found 0 events, delivered 0, already there 0, not delivered 0; 0 repeated, 1 lines unreadable\n", "standard input:2: not read: "},
		{"a log that is not there", "", []string{"--session-db", db, one + ".not", one}, 1, "found 2 events, delivered 0, already there 2, not delivered 0; 1 repeated, 0 lines unreadable\n", one + ".not"},
		{"nowhere to put them", "", []string{one}, 2, "", "--stream NAME or --session-db FILE"},
		{"two places", "", []string{"--stream", "s", "--session-db", db, one}, 2, "", "--stream"},
		{"empty", "", []string{"--session-db", db}, 0, "found 0 events, delivered 0, already there 0, not delivered 0; 0 repeated, 0 lines unreadable\n", ""},
	} {
		code, out, errs := replayEvents(t, tt.stdin, tt.args...)
		if code != tt.code || out != tt.out || !strings.Contains(errs, tt.errs) || tt.code == 0 && errs != "" {
			t.Errorf("%s: events replay = %d, %q, %q, want %d, %q, %q", tt.name, code, out, errs, tt.code, tt.out, tt.errs)
		}
	}
	if got := countEvents(t, db); got != 3 {
		t.Errorf("%d events in the database, want 3", got)
	}
}

func countEvents(t *testing.T, path string) (n int64) {
	t.Helper()
	c, err := zombie.OpenConn(path, zombie.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it was only read
	n, err = sqlitex.ResultInt64(c.Prep("SELECT count(*) FROM routing_events"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What the database refuses is counted, not believed.
func TestEventsReplayOfARefusedEvent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	db, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := zombie.OpenConn(path, zombie.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	err = sqlitex.ExecuteTransient(c, `CREATE TRIGGER refuse BEFORE INSERT ON event WHEN NEW.request_id = 'req-2'
		BEGIN SELECT RAISE(ABORT, 'refused'); END`, nil)
	if err = errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	code, out, errs := replayEvents(t, undeliveredLog(1, 2, 3), "--session-db", path)
	if code != 1 || !strings.Contains(out, "delivered 2, already there 0, not delivered 1;") || !strings.Contains(errs, "refused") {
		t.Errorf("events replay = %d, %q, %q, want 1 with one event not delivered", code, out, errs)
	}
}

// stream is as much of Firehose as a replay calls.
type stream struct {
	status func(call int) int

	mu     sync.Mutex
	calls  int
	events []record.Event
}

func (s *stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if status := s.status(s.calls); status != http.StatusOK {
		w.WriteHeader(status)
		io.WriteString(w, `{"__type":"AccessDeniedException","message":"no"}`)
		return
	}
	var input struct{ Records []struct{ Data []byte } }
	if err := json.NewDecoder(r.Body).Decode(&input); err != nil || r.Header.Get("X-Amz-Target") != "Firehose_20150804.PutRecordBatch" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var responses []string
	for i, one := range input.Records {
		var event record.Event
		if err := json.Unmarshal(one.Data, &event); err != nil || !bytes.HasSuffix(one.Data, []byte("}\n")) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.events = append(s.events, event)
		responses = append(responses, fmt.Sprintf(`{"RecordId":"%d"}`, i))
	}
	fmt.Fprintf(w, `{"FailedPutCount":0,"RequestResponses":[%s]}`, strings.Join(responses, ","))
}

func TestEventsReplayIntoAStream(t *testing.T) {
	numbers := make([]int, 0, 1100)
	var all []record.Event
	for n := range 1100 {
		numbers, all = append(numbers, n), append(all, recordtest.Full(n))
	}
	log := undeliveredLog(numbers...)
	for _, tt := range []struct {
		name   string
		status func(call int) int
		code   int
		want   string
		events []record.Event
		calls  int
	}{
		{"taken", func(int) int { return 200 }, 0, "delivered 1100, already there 0, not delivered 0;", all, 3},
		{"not allowed", func(int) int { return 400 }, 1, "delivered 0, already there 0, not delivered 1100;", nil, 1},
		{"not allowed any more", func(call int) int { return 200 + 200*min(1, call/2) }, 1, "delivered 500, already there 0, not delivered 600;", all[:500], 2},
	} {
		s := &stream{status: tt.status}
		server := httptest.NewServer(s)
		for name, value := range map[string]string{
			"AWS_ENDPOINT_URL": server.URL, "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "x",
			"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
		} {
			t.Setenv(name, value)
		}
		code, out, errs := replayEvents(t, log, "--stream", "events")
		server.Close()
		if code != tt.code || !strings.Contains(out, "found 1100 events, "+tt.want) || s.calls != tt.calls {
			t.Errorf("%s: events replay = %d, %q, %q after %d calls, want %d, %q after %d", tt.name, code, out, errs, s.calls, tt.code, tt.want, tt.calls)
		}
		if diff := cmp.Diff(tt.events, s.events); diff != "" {
			t.Errorf("%s: events differ (-want +got):\n%.2000s", tt.name, diff)
		}
	}
}

func TestEventsReplayOfALineOfMegabytes(t *testing.T) {
	event := recordtest.Full(1)
	event.RequestedModel = strings.Repeat("m", 9<<20)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).ErrorContext(t.Context(), "undelivered routing event", slog.Any("undelivered_event", &event))
	db := filepath.Join(t.TempDir(), "sessions.db")
	if code, out, errs := replayEvents(t, log.String(), "--session-db", db); code != 0 || !strings.Contains(out, "delivered 1,") {
		t.Errorf("events replay = %d, %q, %q", code, out, errs)
	}
}
