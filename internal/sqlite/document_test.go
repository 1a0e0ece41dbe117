package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"switchboard/internal/shared"
	"switchboard/internal/shared/sharedtest"
)

func TestDocumentKeepsTheContract(t *testing.T) {
	sharedtest.Run(t, func(t *testing.T) func(string) shared.Cell {
		path := filepath.Join(t.TempDir(), "sessions.db")
		one, two := open(t, path, nil), open(t, path, nil) // two processes
		return func(id string) shared.Cell {
			one, two = two, one
			return one.Document(id)
		}
	})
}

func TestDocumentSurvivesTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := open(t, path, nil)
	if err := db.Document("d").Swap(t.Context(), []byte("one"), 0, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	// The same again is no other's write: its answer may have got lost.
	if err := db.Document("d").Swap(t.Context(), []byte("one"), 0, time.Now().Add(time.Hour)); err != nil {
		t.Errorf("repeated Swap = %v, want success", err)
	}
	if err := db.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if data, version, err := open(t, path, nil).Document("d").Load(t.Context()); err != nil || string(data) != "one" || version != 1 {
		t.Errorf("Load = %q, %d, %v, want one, 1", data, version, err)
	}
}

func TestExpiredDocumentIsNone(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "sessions.db"), nil).Document("d")
	if err := d.Swap(t.Context(), []byte("one"), 0, time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if data, version, err := d.Load(t.Context()); err != nil || data != nil || version != 0 {
		t.Errorf("Load = %q, %d, %v, want none", data, version, err)
	}
	if err := d.Swap(t.Context(), []byte("two"), 1, time.Now().Add(time.Hour)); !errors.Is(err, shared.ErrChanged) {
		t.Errorf("Swap on what has expired = %v, want ErrChanged", err)
	}
}
