package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/affinity"
	"switchboard/internal/sqlite"
)

func filesIn(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]time.Time{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = info.ModTime()
	}
	return files
}

// A look leaves every file as it is, whether a process has the database open or not.
func TestReadOnly(t *testing.T) {
	for _, name := range []string{"sessions.db", "a ?#%41 b.db"} {
		path := filepath.Join(t.TempDir(), name)
		db, err := sqlite.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		pin := claim(t, db, "s1", "a")
		alias := affinity.Alias{ResponseID: "r1", SessionKey: "s1", Target: pin.Target, ExpiresAt: now.Add(time.Hour).UTC().Truncate(time.Second)}
		if err := db.PutAlias(t.Context(), alias); err != nil {
			t.Fatal(err)
		}
		look := func() {
			t.Helper()
			before := filesIn(t, filepath.Dir(path))
			r, err := sqlite.OpenReadOnly(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Lookup(t.Context(), pin.Ref, now)
			if diff := cmp.Diff(pin, got); err != nil || diff != "" {
				t.Errorf("Lookup: %v (-want +got):\n%s", err, diff)
			}
			a, err := r.LookupAlias(t.Context(), "r1", now)
			if diff := cmp.Diff(alias, a); err != nil || diff != "" {
				t.Errorf("LookupAlias: %v (-want +got):\n%s", err, diff)
			}
			if _, err := r.Lookup(t.Context(), affinity.Ref{SessionKey: "s2", Model: "m"}, now); !errors.Is(err, affinity.ErrNotFound) {
				t.Errorf("Lookup of nobody = %v, want ErrNotFound", err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(before, filesIn(t, filepath.Dir(path))); diff != "" {
				t.Errorf("the look changed files (-before +after):\n%s", diff)
			}
		}
		look() // while it is open
		pin = confirm(t, db, pin)
		look()
		if err := db.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		look() // and when it is not
	}
}

func confirm(t *testing.T, db *sqlite.DB, pin affinity.Pin) affinity.Pin {
	t.Helper()
	got, err := db.Confirm(t.Context(), pin, now, idle)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestReadOnlyOfWhatIsNoDatabase(t *testing.T) {
	dir := t.TempDir()
	if _, err := sqlite.OpenReadOnly(filepath.Join(dir, "none.db"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("OpenReadOnly of nothing = %v, want os.ErrNotExist", err)
	}
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte("no database, but long enough to be read as the head of one, which it is not\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{text, dir} {
		if _, err := sqlite.OpenReadOnly(path, nil); err == nil {
			t.Errorf("OpenReadOnly(%s) succeeded", path)
		}
	}
	if files := filesIn(t, dir); len(files) != 1 {
		t.Errorf("files %v, want the one", files)
	}
}
