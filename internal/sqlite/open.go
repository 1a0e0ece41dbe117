package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitemigration"

	"switchboard/internal/eventdb"
)

const (
	// putAside is the name a damaged database gets, in its own directory.
	putAside = ".sessions.db.corrupted"
	// quickCheckMax is the largest file that is checked as a whole when it is opened; a
	// check reads every page. In larger ones only the ends of every tree are looked at.
	quickCheckMax = 256 << 10
)

// openFile opens the write connection and the read connections, in this order.
func openFile(ctx context.Context, path string, logger *slog.Logger) ([]*conn, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	unlock, err := lockDir(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	conns, err := openOrMake(ctx, path)
	if err == nil || !isCorrupt(err) {
		return conns, err
	}
	if inUse(path) {
		return nil, fmt.Errorf("damaged, and another process has it open: %w", err)
	}
	aside, moveErr := moveAside(path, time.Now())
	if moveErr != nil {
		return nil, fmt.Errorf("put aside a damaged database (%w): %w", err, moveErr)
	}
	logger.LogAttrs(ctx, slog.LevelError, "session database is damaged, starting a new one",
		slog.String("path", path), slog.String("put_aside", aside), slog.Any("error", err))
	return openOrMake(ctx, path)
}

func openOrMake(ctx context.Context, path string) ([]*conn, error) {
	size, err := touchFile(path)
	if err != nil {
		return nil, err
	}
	return openConns(ctx, path, size <= quickCheckMax)
}

// touchFile makes the file, readable by its owner only; SQLite gives its side files the
// same mode. A file that exists is not opened: closing it again would drop every lock that
// this process holds on it.
func touchFile(path string) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return 0, f.Close()
	}
	if !errors.Is(err, os.ErrExist) {
		return 0, err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return 0, err
	case !info.Mode().IsRegular():
		return 0, errors.New("not a regular file")
	}
	return info.Size(), nil
}

// openConns opens the connections of one database, brings its tables up to date and looks
// for damage.
func openConns(ctx context.Context, path string, quickCheck bool) (conns []*conn, err error) {
	defer func() {
		if err == nil {
			return
		}
		for _, c := range conns {
			err = errors.Join(err, c.Close())
		}
		conns = nil
	}()
	for i := range 1 + readConns {
		c, err := openConn(ctx, path)
		if err != nil {
			return conns, err
		}
		conns = append(conns, c)
		if i == 0 {
			if err := prepareFile(ctx, c.Conn, quickCheck); err != nil {
				return conns, err
			}
			if err := c.execute("PRAGMA cache_size=-3072"); err != nil {
				return conns, err
			}
		} else if err := c.execute("PRAGMA cache_size=-512"); err != nil {
			return conns, err
		}
		if err := c.prepare(i == 0); err != nil {
			return conns, err
		}
		c.SetInterrupt(nil)
		c.SetBusyTimeout(busySlice)
	}
	return conns, nil
}

func openConn(ctx context.Context, path string) (*conn, error) {
	// Without OpenURI a path is only a path. Without OpenWAL waiting is ours to bound.
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		return nil, err
	}
	c.SetInterrupt(ctx.Done())
	return &conn{Conn: c}, nil
}

// prepareFile sets up the file as a whole, on its first connection.
func prepareFile(ctx context.Context, c *sqlite.Conn, quickCheck bool) error {
	// Before anything is written, and again after the wait for other processes.
	if _, err := current(c); err != nil {
		return err
	}
	if err := enableWAL(ctx, c); err != nil {
		return err
	}
	for _, pragma := range []string{
		"PRAGMA synchronous=NORMAL",
		// A page that is written again and again, as the tables' last ones are, is copied to
		// the file once per checkpoint: 16 MB of log between two halves the work of the default.
		"PRAGMA wal_autocheckpoint=4000",
		"PRAGMA journal_size_limit=33554432",
	} {
		if err := execute(c, pragma); err != nil {
			return err
		}
	}
	if err := migrate(ctx, c); err != nil {
		return err
	}
	if err := writable(c); err != nil {
		return err
	}
	if quickCheck {
		return check(c)
	}
	return probe(c)
}

// writable finds out now what the first write would: SQLite opens a file that may only be
// read without a word. Another process's write proves as much as ours.
func writable(c *sqlite.Conn) error {
	c.SetBusyTimeout(0)
	defer c.SetBlockOnBusy()
	err := execute(c, "BEGIN IMMEDIATE")
	if isBusy(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return execute(c, "ROLLBACK")
}

// enableWAL is retried here because SQLite does not wait when two processes do it at once.
func enableWAL(ctx context.Context, c *sqlite.Conn) error {
	for {
		err := execute(c, "PRAGMA journal_mode=wal")
		if !isBusy(err) {
			return err
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// migrate costs one read when the file is up to date; the library's own check would take
// the write lock at every start.
func migrate(ctx context.Context, c *sqlite.Conn) error {
	if done, err := current(c); done || err != nil {
		return err
	}
	return sqlitemigration.Migrate(ctx, c, schema())
}

// current tells whether the file has seen all our migrations. One that has seen others too
// is an error: its columns may mean what only a newer switchboard knows.
func current(c *sqlite.Conn) (bool, error) {
	var id, version int64
	err := query(c, "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version", func(stmt *sqlite.Stmt) {
		id, version = stmt.ColumnInt64(0), stmt.ColumnInt64(1)
	})
	if err != nil || id != appID {
		return false, err
	}
	known := int64(len(schema().Migrations))
	if version > known {
		return false, fmt.Errorf("made by a newer switchboard: its schema has version %d, this program knows %d; use the newer program or another file", version, known)
	}
	return version == known, nil
}

// check reads the whole file.
func check(c *sqlite.Conn) error {
	var found string
	err := query(c, "PRAGMA quick_check(1)", func(stmt *sqlite.Stmt) { found = stmt.ColumnText(0) })
	if err != nil {
		return err
	}
	if found != "ok" {
		return fmt.Errorf("%w: %s", errDamaged, found)
	}
	return nil
}

// probe reads both ends of every tree.
func probe(c *sqlite.Conn) error {
	for _, table := range append(eventdb.Tables(), "session_affinity ORDER BY session_id", "response_alias ORDER BY response_id") {
		for _, order := range []string{" ASC", " DESC"} {
			if err := query(c, "SELECT * FROM "+table+order+" LIMIT 1", func(*sqlite.Stmt) {}); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveAside renames the damaged file and its side files, and returns the new name. An
// earlier damaged file is never overwritten.
func moveAside(path string, now time.Time) (string, error) {
	aside, err := reserve(filepath.Join(filepath.Dir(path), putAside), now)
	if err != nil {
		return "", err
	}
	// The side files first: a new database must never meet an old log.
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(path+suffix, aside+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return aside, nil
}

// reserve makes an empty file under a name that was not taken.
func reserve(name string, now time.Time) (string, error) {
	try := name
	for range 100 {
		f, err := os.OpenFile(try, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return try, f.Close()
		}
		if !errors.Is(err, os.ErrExist) {
			return "", err
		}
		try = name + now.UTC().Format("-20060102T150405.000000000")
		now = now.Add(1)
	}
	return "", fmt.Errorf("%s: %w", name, os.ErrExist)
}

// errDamaged is damage that SQLite reported in words and not as a code.
var errDamaged = errors.New("database disk image is malformed")

func isCorrupt(err error) bool {
	code := sqlite.ErrCode(err).ToPrimary()
	return errors.Is(err, errDamaged) || code == sqlite.ResultCorrupt || code == sqlite.ResultNotADB
}

func isBusy(err error) bool {
	return err != nil && sqlite.ErrCode(err).ToPrimary() == sqlite.ResultBusy
}

func execute(c *sqlite.Conn, sql string) error { return query(c, sql, func(*sqlite.Stmt) {}) }

// query runs one statement that is not kept.
func query(c *sqlite.Conn, sql string, row func(*sqlite.Stmt)) error {
	stmt, _, err := c.PrepareTransient(sql)
	if err != nil {
		return err
	}
	defer stmt.Finalize()
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return err
		}
		row(stmt)
	}
}
