//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchboard/internal/sqlite"
)

// A damaged file that somebody still has open is not taken from under them.
func TestDamagedFileInUseIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sessions.db")
	other := start(t, "forever", path, "p")
	other.expect(t, "ready")
	fmt.Fprintln(other.in)
	other.expect(t, "switched")
	// Stopped, it keeps its locks and writes nothing more.
	if err := other.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("damaged, not a database"), 0); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if db, err := sqlite.Open(t.Context(), path, nil); err == nil {
		db.Close(t.Context())
		t.Error("Open succeeded, want an error: another process has the damaged file open")
	} else if !strings.Contains(err.Error(), "another process") {
		t.Errorf("Open error = %q, want that another process has it open", err)
	}
	_ = other.cmd.Process.Kill()
	_ = other.cmd.Wait()
	claim(t, open(t, path, nil), "s", "a")
	if _, err := os.Stat(filepath.Join(dir, ".sessions.db.corrupted")); err != nil {
		t.Errorf("put aside: %v", err)
	}
}
