package sqlite_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"switchboard/internal/affinity/affinitytest"
	"switchboard/internal/sqlite"
)

// open opens path and closes it with the test.
func open(t *testing.T, path string, logger *slog.Logger) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return db
}

func TestStoreKeepsTheContract(t *testing.T) {
	affinitytest.Run(t, func(t *testing.T) affinitytest.Stores {
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
		}
	})
}
