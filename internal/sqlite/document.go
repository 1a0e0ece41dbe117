package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"

	"switchboard/internal/affinity"
	"switchboard/internal/shared"
)

// documentSchema is the migration that makes the table of shared documents.
const documentSchema = `
CREATE TABLE shared_document (
	id         TEXT PRIMARY KEY NOT NULL,
	data       BLOB NOT NULL,
	version    INTEGER NOT NULL,
	expires_at INTEGER NOT NULL                      -- epoch seconds
) WITHOUT ROWID;
`

const (
	selectDocumentSQL = `SELECT data, version, expires_at FROM shared_document WHERE id = ?1`
	putDocumentSQL    = `REPLACE INTO shared_document (id, data, version, expires_at) VALUES (?1, ?2, ?3, ?4)`
)

// Document is one small document in the file. All Documents of one id, in any process, are
// the same document.
type Document struct {
	db *DB
	id string
}

var _ shared.Cell = (*Document)(nil)

// Document returns the shared document of that name.
func (db *DB) Document(id string) *Document { return &Document{db, id} }

// Load implements shared.Cell. It is never behind. An expired row and a malformed one are none.
func (d *Document) Load(ctx context.Context) (data []byte, version int64, err error) {
	err = d.db.read(ctx, func(c *conn) (err error) {
		data, version, err = c.document(d.id, time.Now())
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("sqlite: load document %q: %w", d.id, err)
	}
	return data, version, nil
}

// Swap implements shared.Cell. It returns when the document is committed.
func (d *Document) Swap(ctx context.Context, data []byte, version int64, expires time.Time) error {
	changed := false
	_, err := d.db.call(ctx, func(c *conn) (affinity.Pin, error) {
		stored, at, err := c.document(d.id, time.Now())
		if err != nil {
			return affinity.Pin{}, err
		}
		repeated := at == version+1 && bytes.Equal(stored, data)
		if changed = at != version && !repeated; changed || repeated {
			return affinity.Pin{}, nil
		}
		return affinity.Pin{}, c.replaceDocument(d.id, data, version+1, expires)
	})
	switch {
	case err != nil:
		return fmt.Errorf("sqlite: swap document %q: %w", d.id, err)
	case changed:
		return shared.ErrChanged
	}
	return nil
}

// document reads a row; version 0 when there is none. The statement is prepared once and
// kept by the connection.
func (c *conn) document(id string, now time.Time) (data []byte, version int64, err error) {
	stmt, err := c.Prepare(selectDocumentSQL)
	if err != nil {
		return nil, 0, err
	}
	stmt.BindText(1, id)
	found, err := stmt.Step()
	if err != nil || !found {
		return nil, 0, err
	}
	defer stmt.Reset()
	for col, want := range []sqlite.ColumnType{sqlite.TypeBlob, sqlite.TypeInteger, sqlite.TypeInteger} {
		if stmt.ColumnType(col) != want {
			return nil, 0, nil
		}
	}
	if version = stmt.ColumnInt64(1); version <= 0 || stmt.ColumnInt64(2) <= now.Unix() {
		return nil, 0, nil
	}
	data = make([]byte, stmt.ColumnLen(0))
	stmt.ColumnBytes(0, data)
	return data, version, nil
}

func (c *conn) replaceDocument(id string, data []byte, version int64, expires time.Time) error {
	stmt, err := c.Prepare(putDocumentSQL)
	if err != nil {
		return err
	}
	stmt.BindText(1, id)
	stmt.BindBytes(2, data)
	stmt.BindInt64(3, version)
	stmt.BindInt64(4, expires.Unix())
	return run(stmt)
}
