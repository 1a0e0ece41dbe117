package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	zombie "zombiezen.com/go/sqlite"

	"switchboard/internal/affinity"
	"switchboard/internal/record/recordtest"
	"switchboard/internal/sqlite"
)

const idle = 6 * time.Hour

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func pin(session, provider string) affinity.Pin {
	return affinity.Pin{
		Ref:    affinity.Ref{SessionKey: session, Model: "m"},
		Target: affinity.Target{Provider: provider, KeyID: "k", Model: "real"},
	}
}

// claim assigns and wants to win.
func claim(t *testing.T, db *sqlite.DB, session, provider string) affinity.Pin {
	t.Helper()
	got, err := db.Assign(t.Context(), pin(session, provider), nil, now, idle)
	if err != nil {
		t.Fatalf("Assign(%q): %v", session, err)
	}
	return got
}

// filled makes a database with many pages and closes it.
func filled(t *testing.T, path string) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 400 {
		claim(t, db, fmt.Sprintf("session-%03d", n), "a")
		event := recordtest.Full(n)
		if err := db.Record(t.Context(), &event); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A file that is no database, or a damaged one, is kept under another name, logged, and
// replaced (DESIGN 6).
func TestSDB04DamagedFileIsPutAside(t *testing.T) {
	tests := []struct {
		name   string
		damage func(t *testing.T, path string)
	}{
		{"text", func(t *testing.T, path string) { write(t, path, []byte("this is not a database\n")) }},
		{"long text", func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("not a database "), 5000)) }},
		{"two bytes", func(t *testing.T, path string) { write(t, path, []byte("SQ")) }},
		{"zero bytes inside", func(t *testing.T, path string) { write(t, path, make([]byte, 8192)) }},
		{"header only", func(t *testing.T, path string) { cut(t, path, 100) }},
		{"first page only", func(t *testing.T, path string) { cut(t, path, 4096) }},
		{"truncated inside a page", func(t *testing.T, path string) { cut(t, path, 3*4096+100) }},
		{"truncated by half", func(t *testing.T, path string) { cut(t, path, -2) }},
		{"schema overwritten", func(t *testing.T, path string) { overwrite(t, path, 100, 3996) }},
		{"all pages but the first overwritten", func(t *testing.T, path string) { overwrite(t, path, 4096, 1<<30) }},
		{"roots overwritten", func(t *testing.T, path string) { overwrite(t, path, 4096, 8*4096) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "sessions.db")
			filled(t, path)
			tt.damage(t, path)
			damaged, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}

			var log bytes.Buffer
			db := open(t, path, slog.New(slog.NewJSONHandler(&log, nil)))
			claim(t, db, "session-000", "b") // nothing is left of the old rows
			kept, err := os.ReadFile(filepath.Join(dir, ".sessions.db.corrupted"))
			if err != nil || !bytes.Equal(kept, damaged) {
				t.Errorf("put aside: %v, %d bytes, want the damaged file's %d", err, len(kept), len(damaged))
			}
			if !strings.Contains(log.String(), ".sessions.db.corrupted") || strings.Count(log.String(), "\n") != 1 {
				t.Errorf("log = %s, want one line that names the file put aside", log.String())
			}
		})
	}
}

func cut(t *testing.T, path string, size int64) {
	t.Helper()
	if size < 0 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		size = info.Size() / -size
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t *testing.T, path string, from, n int) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := from; i < min(from+n, len(content)); i++ {
		content[i] = byte(i*7 + 13)
	}
	write(t, path, content)
}

func TestSDB04DamagedFilesAreNeverOverwritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sessions.db")
	var want []string
	for n := range 4 {
		text := fmt.Sprintf("not a database, number %d", n)
		want = append(want, text)
		write(t, path, []byte(text))
		db, err := sqlite.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	names, err := filepath.Glob(filepath.Join(dir, ".sessions.db.corrupted*"))
	if err != nil || len(names) != len(want) {
		t.Fatalf("put aside: %q, %v, want %d files", names, err, len(want))
	}
	var kept []string
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, string(text))
	}
	for _, text := range want {
		if !strings.Contains(strings.Join(kept, "|"), text) {
			t.Errorf("%q is lost; kept: %q", text, kept)
		}
	}
}

// A new database must not meet an old log, and the damaged one keeps its own.
func TestSDB04SideFilesStayWithTheirDatabase(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sessions.db")
	filled(t, path)
	db := open(t, path, nil)
	claim(t, db, "in the log", "a")
	log, err := os.ReadFile(path + "-wal") // as a killed process would leave it
	if err != nil || len(log) == 0 {
		t.Fatalf("log: %d bytes, %v", len(log), err)
	}
	second := filepath.Join(t.TempDir(), "sessions.db")
	write(t, second, bytes.Repeat([]byte("damaged "), 1024))
	write(t, second+"-wal", log)
	fresh := open(t, second, nil)
	if got, err := fresh.Lookup(t.Context(), pin("in the log", "").Ref, now); !errors.Is(err, affinity.ErrNotFound) {
		t.Errorf("Lookup in the new database = %+v, %v, want ErrNotFound", got, err)
	}
	claim(t, fresh, "in the log", "b")
}

func TestEmptyFileIsANewDatabase(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sessions.db")
	write(t, path, nil)
	var log bytes.Buffer
	db := open(t, path, slog.New(slog.NewTextHandler(&log, nil)))
	claim(t, db, "s", "a")
	if names, _ := filepath.Glob(filepath.Join(dir, ".sessions.db.corrupted*")); len(names) != 0 || log.Len() != 0 {
		t.Errorf("put aside %q, log %q, want nothing", names, log.String())
	}
}

func TestRowsSurviveARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b c", "sessions.db")
	filled(t, path)
	for range 2 {
		db, err := sqlite.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := db.Lookup(t.Context(), pin("session-399", "").Ref, now)
		if err != nil || got.Provider != "a" {
			t.Errorf("Lookup after a restart = %+v, %v", got, err)
		}
		if err := db.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("mode of %s = %v, %v, want %v", name, info.Mode().Perm(), err, want)
		}
	}
}

// Names that mean something to SQLite are names of files.
func TestPathIsOnlyAPath(t *testing.T) {
	for _, name := range []string{":memory:", "file:x?mode=memory", "a b'c\".db", "%41.db", "日本.db"} {
		path := filepath.Join(t.TempDir(), name)
		db := open(t, path, nil)
		claim(t, db, "s", "a")
		if _, err := os.Stat(path); err != nil {
			t.Errorf("Open(%q): %v", name, err)
		}
	}
}

func TestOpenNamesPathAndCause(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), nil)
	foreign := filepath.Join(dir, "foreign.db")
	c, err := zombie.OpenConn(foreign)
	if err != nil {
		t.Fatal(err)
	}
	sql(t, c, "CREATE TABLE notes (text TEXT)")
	c.Close()
	tests := []struct{ name, path, cause string }{
		{"directory is a file", filepath.Join(dir, "file", "sessions.db"), "not a directory"},
		{"path is a directory", dir, "not a regular file"},
		{"another program's database", foreign, "application_id"},
	}
	if os.Geteuid() != 0 {
		sealed := filepath.Join(dir, "sealed")
		if err := os.Mkdir(sealed, 0o500); err != nil {
			t.Fatal(err)
		}
		tests = append(tests, struct{ name, path, cause string }{"directory may not be written", filepath.Join(sealed, "s.db"), "permission denied"})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			db, err := sqlite.Open(t.Context(), tt.path, nil)
			if err == nil {
				db.Close(context.Background())
				t.Fatalf("Open(%q) succeeded", tt.path)
			}
			if !strings.Contains(err.Error(), tt.path) || !strings.Contains(err.Error(), tt.cause) {
				t.Errorf("Open(%q) error = %q, want path and %q", tt.path, err, tt.cause)
			}
		})
	}
}

func TestOpenOfALockedFileEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	c, err := zombie.OpenConn(path, zombie.OpenReadWrite, zombie.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sql(t, c, "BEGIN EXCLUSIVE")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if db, err := sqlite.Open(ctx, path, nil); err == nil {
		db.Close(t.Context())
		t.Error("Open of a locked file succeeded")
	} else if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "lock") {
		t.Errorf("Open error = %q, want the path and that it is locked", err)
	}
}

// A process that starts while another writes does not wait for it.
func TestOpenBesideAWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	filled(t, path)
	c := rawConn(t, path)
	sql(t, c, "BEGIN IMMEDIATE")
	db := open(t, path, nil)
	if _, err := db.Lookup(t.Context(), pin("session-000", "").Ref, now); err != nil {
		t.Errorf("Lookup beside a writer: %v", err)
	}
	sql(t, c, "ROLLBACK")
}

// A database with more migrations than this program knows was made by a newer one: it is
// neither written nor put aside.
func TestNewerDatabaseIsRefused(t *testing.T) {
	for _, journal := range []string{"wal", "delete"} {
		for _, ahead := range []int{1, 7, 1 << 20} {
			t.Run(fmt.Sprintf("%s, %d ahead", journal, ahead), func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "sessions.db")
				filled(t, path)
				c, err := zombie.OpenConn(path, zombie.OpenReadWrite)
				if err != nil {
					t.Fatal(err)
				}
				sql(t, c, "PRAGMA journal_mode="+journal)
				newer := sql(t, c, "PRAGMA user_version")[0]["user_version"].(int64) + int64(ahead)
				sql(t, c, fmt.Sprintf("PRAGMA user_version=%d", newer))
				sql(t, c, "ALTER TABLE session_affinity RENAME COLUMN epoch TO era")
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				before, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}

				db, err := sqlite.Open(t.Context(), path, nil)
				if err == nil {
					db.Close(context.Background())
					t.Fatal("Open of a newer database succeeded")
				}
				for _, want := range []string{path, "newer switchboard", fmt.Sprint(newer)} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("Open error = %q, want %q in it", err, want)
					}
				}
				if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
					t.Errorf("the file has changed (%v)", err)
				}
				if names, _ := filepath.Glob(filepath.Join(dir, ".sessions.db.corrupted*")); len(names) != 0 {
					t.Errorf("put aside: %q, want nothing", names)
				}
			})
		}
	}
}
