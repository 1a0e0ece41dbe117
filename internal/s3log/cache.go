package s3log

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"switchboard/internal/eventdb"
)

const (
	cacheName = "events.db"
	cacheID   = 0x53773363 // "Sw3c": application_id of the file
	readConns = 4
)

// ledger is what has been listed and loaded, beside the events, so that the same
// transaction writes both.
const ledger = `
CREATE TABLE s3_hour (
	hour      INTEGER PRIMARY KEY,                  -- since 1970, UTC
	listed_at INTEGER NOT NULL                      -- epoch milliseconds
);
CREATE TABLE s3_object (
	key        TEXT PRIMARY KEY,
	etag       TEXT NOT NULL,
	hour       INTEGER NOT NULL,
	loaded     INTEGER NOT NULL DEFAULT 0,
	unreadable INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX s3_object_pending ON s3_object (hour, key) WHERE loaded = 0;
CREATE INDEX s3_object_loaded ON s3_object (hour) WHERE loaded = 1;
CREATE INDEX s3_object_unreadable ON s3_object (hour, unreadable) WHERE unreadable > 0;
`

// cache is the SQLite file. One goroutine at a time writes, any number read.
type cache struct {
	path     string
	write    *sqlite.Conn
	inserter *eventdb.Inserter
	reads    chan *sqlite.Conn // nil stands for one that is not open yet
}

// openCache opens the file. One that is damaged, that another version has written, or that
// holds another bucket's events, is replaced: all that is in it can be had again.
func openCache(ctx context.Context, o *Options) (*cache, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(o.Dir, cacheName)
	c, err := tryCache(path, version(o))
	if err == nil {
		return c, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		o.Logger.LogAttrs(ctx, slog.LevelWarn, "event cache is not usable, making a new one", slog.String("path", path), slog.Any("error", err))
	}
	if err := removeCache(path); err != nil {
		return nil, err
	}
	return makeCache(path, version(o))
}

func removeCache(path string) error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// version tells what a file holds: tables and their source.
func version(o *Options) int64 {
	h := fnv.New32a()
	for _, part := range []string{eventdb.Schema(), ledger, o.Source, o.Prefix} {
		h.Write([]byte(part)) //nolint:errcheck // it never fails
		h.Write([]byte{0})    //nolint:errcheck // it never fails
	}
	return int64(h.Sum32() & 0x7fffffff)
}

func tryCache(path string, version int64) (*cache, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	conn, err := openConn(path, 32<<10, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	var id, has int64
	err = query(conn, "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version", func(stmt *sqlite.Stmt) {
		id, has = stmt.ColumnInt64(0), stmt.ColumnInt64(1)
	})
	if err == nil && (id != cacheID || has != version) {
		err = errors.New("it holds something else")
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return newCache(path, conn)
}

func makeCache(path string, version int64) (*cache, error) {
	conn, err := openConn(path, 32<<10, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		return nil, err
	}
	err = sqlitex.ExecuteScript(conn, eventdb.Schema()+ledger+
		fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", cacheID, version), nil)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return newCache(path, conn)
}

func newCache(path string, conn *sqlite.Conn) (*cache, error) {
	inserter, err := eventdb.NewInserter(conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c := &cache{path: path, write: conn, inserter: inserter, reads: make(chan *sqlite.Conn, readConns)}
	for range readConns {
		c.reads <- nil
	}
	return c, nil
}

// openConn opens a connection whose pages take cacheKiB at most.
func openConn(path string, cacheKiB int, flags ...sqlite.OpenFlags) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(path, flags...)
	if err != nil {
		return nil, err
	}
	for _, pragma := range []string{
		fmt.Sprintf("PRAGMA cache_size=-%d", cacheKiB),
		"PRAGMA page_size=16384",
		"PRAGMA journal_mode=wal",
		// What a crash of the machine damages is loaded again.
		"PRAGMA synchronous=off",
		"PRAGMA wal_autocheckpoint=4000",
		"PRAGMA journal_size_limit=33554432",
	} {
		if err := query(conn, pragma, func(*sqlite.Stmt) {}); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

func (c *cache) close() error {
	errs := []error{c.write.Close()}
	for range readConns {
		if conn := <-c.reads; conn != nil {
			errs = append(errs, conn.Close())
		}
	}
	return errors.Join(errs...)
}

// read lends a read connection.
func (c *cache) read(ctx context.Context, do func(context.Context, *sqlite.Conn) error) (err error) {
	var conn *sqlite.Conn
	select {
	case conn = <-c.reads:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { c.reads <- conn }()
	if conn == nil {
		if conn, err = openConn(c.path, 8<<10, sqlite.OpenReadWrite); err != nil {
			return err
		}
	}
	return do(ctx, conn)
}

// replace makes a new cache in place of one that is of no use any more, unless another
// question has done so.
func (r *Reader) replace(ctx context.Context, old *cache, cause error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cache != old || old == nil {
		return nil
	}
	r.options.Logger.LogAttrs(ctx, slog.LevelWarn, "event cache is not usable, making a new one", slog.String("path", old.path), slog.Any("error", cause))
	r.cache = nil
	err := errors.Join(old.close(), removeCache(old.path))
	made, makeErr := makeCache(old.path, version(&r.options))
	if makeErr != nil {
		return errors.Join(makeErr, err)
	}
	r.cache = made
	return nil
}

func isDamaged(err error) bool {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultCorrupt, sqlite.ResultNotADB, sqlite.ResultCantOpen, sqlite.ResultIOErr:
		return true
	}
	return false
}

func isFull(err error) bool { return sqlite.ErrCode(err).ToPrimary() == sqlite.ResultFull }

// query runs one statement.
func query(c *sqlite.Conn, sql string, row func(*sqlite.Stmt), args ...any) error {
	stmt, err := c.Prepare(sql)
	if err != nil {
		return err
	}
	for i, arg := range args {
		switch value := arg.(type) {
		case string:
			stmt.BindText(1+i, value)
		case int64:
			stmt.BindInt64(1+i, value)
		}
	}
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return err
		}
		row(stmt)
	}
}
