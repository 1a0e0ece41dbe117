package sqlite_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/internal/affinity"
	"switchboard/internal/affinity/affinitytest"
)

func TestOperatorKeepsTheContract(t *testing.T) {
	affinitytest.RunOperator(t, func(t *testing.T) (affinitytest.Stores, affinity.Operator) {
		path := filepath.Join(t.TempDir(), "sessions.db")
		db, peer := open(t, path, nil), open(t, path, nil)
		return affinitytest.Stores{
			Store: db, Aliases: db, Peer: peer, InvalidUTF8: true,
			Flush: func(t *testing.T) {
				t.Helper()
				if err := db.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
		}, db
	})
}

// Malformed rows are not listed, but logged, and cost no other row its place.
func TestPinsLeaveMalformedRowsOut(t *testing.T) {
	var log bytes.Buffer
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := open(t, path, slog.New(slog.NewJSONHandler(&log, nil)))
	raw := rawConn(t, path)
	for _, id := range []string{"s1", "s2", "s3", "s4"} {
		claim(t, db, id, "a")
	}
	sql(t, raw, "UPDATE session_affinity SET epoch = 'x' WHERE session_id = 's2'")
	sql(t, raw, "UPDATE session_affinity SET session_id = x'7333' WHERE session_id = 's3'")
	for range 2 {
		var ids []string
		for q := (affinity.PinQuery{Limit: 1}); ; {
			page, err := db.Pins(t.Context(), q, now)
			if err != nil {
				t.Fatal(err)
			}
			for _, pin := range page.Pins {
				ids = append(ids, pin.SessionKey)
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				break
			}
		}
		if got := fmt.Sprint(ids); got != "[s1 s4]" {
			t.Errorf("Pins = %s, want [s1 s4]", got)
		}
	}
	if n := strings.Count(log.String(), "malformed session row"); n != 1 {
		t.Errorf("logged %d times, want once", n)
	}
}

// One call looks at a bounded number of rows, whatever fits.
func TestPinsAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := open(t, path, nil)
	claim(t, db, "a", "p")
	sql(t, rawConn(t, path), `INSERT INTO session_affinity (session_id, model_name, provider_identity, target_model, expires_at, user_path)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
		SELECT printf('b%06d', i), 'm', 'p', 'm', (SELECT expires_at FROM session_affinity LIMIT 1), iif(i = 11999, '/rare', '') FROM n`)
	q, pages := affinity.PinQuery{Limit: 10, UserPath: "/rare"}, 0
	var found []affinity.Pin
	for {
		page, err := db.Pins(t.Context(), q, now)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, page.Pins...)
		pages++
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	if len(found) != 1 || found[0].SessionKey != "b011999" || pages != 3 {
		t.Errorf("%d pins on %d pages, want one on three", len(found), pages)
	}
}
