package sqlite_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/internal/affinity"
	"switchboard/internal/sqlite"
)

var textColumns = []string{
	"provider_identity", "key_id", "key_print", "target_model", "api_surface", "user_path", "client_session_id", "last_switch_request_id",
}

var integerColumns = []string{
	"assigned_at", "last_used_at", "expires_at", "is_active", "epoch", "total_input_tokens", "total_output_tokens",
	"total_cached_tokens", "total_cost_nano_usd", "total_requests", "switch_count", "switch_cost_nano_usd", "last_input_tokens",
}

// A row with a column of the wrong type is no row: it is logged whole, once, and replaced.
func TestSDB04MalformedRowsReadAsNone(t *testing.T) {
	type damage struct{ column, value string }
	damages := []damage{{"provider_identity", "NULL"}}
	for _, column := range textColumns {
		damages = append(damages, damage{column, "x'00ff'"})
	}
	for _, column := range integerColumns {
		for _, value := range []string{"'x'", "''", "x'01'", "1.5", "NULL", "'12 tokens'", "9e30"} {
			damages = append(damages, damage{column, value})
		}
	}
	var log bytes.Buffer
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := open(t, path, slog.New(slog.NewJSONHandler(&log, nil)))
	raw := rawConn(t, path)
	for _, d := range damages {
		t.Run(d.column+"="+d.value, func(t *testing.T) {
			log.Reset()
			session := "s " + d.column + d.value
			old := claim(t, db, session, "a")
			neighbour := claim(t, db, session+" neighbour", "a")
			sql(t, raw, "UPDATE session_affinity SET "+d.column+" = "+d.value+" WHERE session_id = '"+strings.ReplaceAll(session, "'", "''")+"'")

			notFound := func(op string, err error) {
				t.Helper()
				if !errors.Is(err, affinity.ErrNotFound) {
					t.Errorf("%s error = %v, want ErrNotFound", op, err)
				}
			}
			for range 3 {
				_, err := db.Lookup(t.Context(), old.Ref, now)
				notFound("Lookup", err)
			}
			_, err := db.Confirm(t.Context(), old, now, idle)
			notFound("Confirm", err)
			_, err = db.Reassign(t.Context(), old, affinity.Target{Provider: "b"}, now, idle)
			notFound("Reassign", err)
			_, err = db.IncrementSwitch(t.Context(), old, affinity.Move{RequestID: "r"}, now, idle)
			notFound("IncrementSwitch", err)
			if err := db.Withdraw(t.Context(), old); err != nil {
				t.Errorf("Withdraw: %v", err)
			}
			if lines := strings.Count(log.String(), "\n"); lines != 1 {
				t.Errorf("logged %d times, want once:\n%s", lines, log.String())
			}
			var line struct {
				Level string
				Row   map[string]any
			}
			if err := json.Unmarshal(log.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			if len(line.Row) != 23 || line.Level != "ERROR" || line.Row["session_id"] != session {
				t.Errorf("logged %+v, want the row's 23 columns at error level", line)
			}

			fresh := claim(t, db, session, "c")
			if got, err := db.Lookup(t.Context(), old.Ref, now); err != nil || got != fresh {
				t.Errorf("Lookup after Assign = %+v, %v, want %+v", got, err, fresh)
			}
			if got, err := db.Lookup(t.Context(), neighbour.Ref, now); err != nil || got != neighbour {
				t.Errorf("Lookup of another row = %+v, %v, want %+v", got, err, neighbour)
			}
		})
	}
}

// A number where a text belongs becomes a text, as in a column of SQLite; what it names is
// not configured, and that is the caller's to notice.
func TestSDB04NumberAsProvider(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := open(t, path, nil)
	claim(t, db, "s", "a")
	sql(t, rawConn(t, path), "UPDATE session_affinity SET provider_identity = 42")
	stale, err := db.Lookup(t.Context(), pin("s", "").Ref, now)
	if err != nil || stale.Provider != "42" {
		t.Fatalf("Lookup = %+v, %v", stale, err)
	}
	if got, err := db.Assign(t.Context(), pin("s", "b"), &stale, now, idle); err != nil || got.Provider != "b" {
		t.Errorf("Assign over it = %+v, %v", got, err)
	}
}

// A row that was written by hand needs only what matters.
func TestRowsByHand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := open(t, path, nil)
	raw := rawConn(t, path)
	sql(t, raw, `INSERT INTO session_affinity (session_id, model_name, provider_identity, key_id, switch_count, expires_at)
		VALUES ('s', 'm', 'a', NULL, 4, 4000000000)`)
	got, err := db.Lookup(t.Context(), pin("s", "").Ref, now)
	if err != nil || got.Provider != "a" || got.SwitchCount != 4 || !got.Served || got.Epoch != 1 {
		t.Fatalf("Lookup = %+v, %v", got, err)
	}
	move := affinity.Move{To: affinity.Target{Provider: "b"}, RequestID: "r"}
	if got, err = db.IncrementSwitch(t.Context(), got, move, now, idle); err != nil || got.SwitchCount != 5 {
		t.Errorf("IncrementSwitch = %+v, %v", got, err)
	}
}

func TestSDB04MalformedAliasIsNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := open(t, path, nil)
	alias := affinity.Alias{ResponseID: "r", SessionKey: "s", ExpiresAt: now.Add(idle)}
	raw := rawConn(t, path)
	for _, damage := range []string{"session_key = x'00'", "expires_at = 'never'", "provider_identity = NULL"} {
		put(t, db, alias)
		sql(t, raw, "UPDATE response_alias SET "+damage)
		if got, err := db.LookupAlias(t.Context(), "r", now); !errors.Is(err, affinity.ErrNotFound) {
			t.Errorf("%s: LookupAlias = %+v, %v, want ErrNotFound", damage, got, err)
		}
	}
	put(t, db, alias)
	if got, err := db.LookupAlias(t.Context(), "r", now); err != nil || got != alias {
		t.Errorf("LookupAlias = %+v, %v, want %+v", got, err, alias)
	}
}

func put(t *testing.T, db *sqlite.DB, alias affinity.Alias) {
	t.Helper()
	if err := db.PutAlias(t.Context(), alias); err != nil {
		t.Fatal(err)
	}
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}
