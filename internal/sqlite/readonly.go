package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"

	"switchboard/internal/affinity"
)

// ReadOnly is a look into a database file that may be another process's: pins and aliases.
type ReadOnly struct {
	mu        sync.Mutex // one connection
	conn      *conn
	logger    *slog.Logger
	malformed onceRows
}

// OpenReadOnly opens a database file to look into it. It makes no file, changes none and
// keeps nobody waiting: while the file has a log (-wal), which is while a process has it open,
// it reads as one of that process's readers does; else the file alone, as it is. Where there
// is no file the error is os.ErrNotExist. A nil logger discards.
func OpenReadOnly(path string, logger *slog.Logger) (*ReadOnly, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	c, err := openReadOnly(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s to read: %w", path, err)
	}
	return &ReadOnly{conn: c, logger: logger}, nil
}

func openReadOnly(path string) (*conn, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	switch info, err := os.Stat(path); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	}
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") { // a drive
		slashed = "/" + slashed
	}
	address := url.URL{Scheme: "file", Path: slashed}
	if _, err := os.Stat(path + "-wal"); errors.Is(err, os.ErrNotExist) {
		// Without it SQLite would make a log and an index beside a file that nobody has open.
		address.RawQuery = "immutable=1"
	}
	raw, err := sqlite.OpenConn(address.String(), sqlite.OpenReadOnly, sqlite.OpenURI)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw}
	if _, err = current(raw); err == nil {
		err = c.prepare(false)
	}
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	c.SetBusyTimeout(time.Second)
	return c, nil
}

// Lookup is affinity.Store's.
func (r *ReadOnly) Lookup(_ context.Context, ref affinity.Ref, now time.Time) (affinity.Pin, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pin, state, err := r.conn.pin(ref, now, &r.malformed, r.logger)
	switch {
	case err != nil:
		return affinity.Pin{}, fmt.Errorf("sqlite: lookup %q: %w", ref.SessionKey, err)
	case state != pinLive:
		return affinity.Pin{}, affinity.ErrNotFound
	}
	return pin, nil
}

// LookupAlias is affinity.Aliases'.
func (r *ReadOnly) LookupAlias(_ context.Context, responseID string, now time.Time) (affinity.Alias, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, found, err := r.conn.alias(responseID)
	if err != nil {
		return affinity.Alias{}, fmt.Errorf("sqlite: lookup alias %q: %w", responseID, err)
	}
	if !found || !a.ExpiresAt.After(now) {
		return affinity.Alias{}, affinity.ErrNotFound
	}
	return a, nil
}

// Close closes the file.
func (r *ReadOnly) Close() error { return r.conn.Close() }
