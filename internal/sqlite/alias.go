package sqlite

import (
	"context"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"

	"switchboard/internal/affinity"
)

const (
	selectAliasSQL = `SELECT session_key, client_session_id, session_source, provider_identity,
	key_id, key_print, target_model, api_surface, expires_at
FROM response_alias WHERE response_id = ?1`

	putAliasSQL = `REPLACE INTO response_alias (response_id, session_key, client_session_id,
	session_source, provider_identity, key_id, key_print, target_model, api_surface, expires_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)`
)

// PutAlias implements affinity.Aliases. It returns when the alias is committed.
func (db *DB) PutAlias(ctx context.Context, a affinity.Alias) error {
	a.ExpiresAt = second(a.ExpiresAt)
	if _, err := db.call(ctx, func(c *conn) (affinity.Pin, error) { return affinity.Pin{}, c.replaceAlias(&a) }); err != nil {
		return fmt.Errorf("sqlite: put alias %q: %w", a.ResponseID, err)
	}
	return nil
}

// LookupAlias implements affinity.Aliases.
func (db *DB) LookupAlias(ctx context.Context, responseID string, now time.Time) (affinity.Alias, error) {
	var a affinity.Alias
	var found bool
	err := db.read(ctx, func(c *conn) (err error) {
		a, found, err = c.alias(responseID)
		return err
	})
	if err != nil {
		return affinity.Alias{}, fmt.Errorf("sqlite: lookup alias %q: %w", responseID, err)
	}
	if !found || !a.ExpiresAt.After(now) {
		return affinity.Alias{}, affinity.ErrNotFound
	}
	return a, nil
}

// alias reads the row of a response; a malformed one is none.
func (c *conn) alias(responseID string) (affinity.Alias, bool, error) {
	stmt := c.selectAlias
	stmt.BindText(1, responseID)
	found, err := stmt.Step()
	if err != nil {
		return affinity.Alias{}, false, err
	}
	defer stmt.Reset()
	if !found || stmt.ColumnType(8) != sqlite.TypeInteger {
		return affinity.Alias{}, false, nil
	}
	for col := range 8 {
		if stmt.ColumnType(col) != sqlite.TypeText {
			return affinity.Alias{}, false, nil
		}
	}
	return affinity.Alias{
		ResponseID:      responseID,
		SessionKey:      stmt.ColumnText(0),
		ClientSessionID: stmt.ColumnText(1),
		SessionSource:   stmt.ColumnText(2),
		Target: affinity.Target{
			Provider: stmt.ColumnText(3),
			KeyID:    stmt.ColumnText(4),
			KeyPrint: stmt.ColumnText(5),
			Model:    stmt.ColumnText(6),
			Surface:  stmt.ColumnText(7),
		},
		ExpiresAt: time.Unix(stmt.ColumnInt64(8), 0).UTC(),
	}, true, nil
}

// replaceAlias writes the row of a response.
func (c *conn) replaceAlias(a *affinity.Alias) error {
	for i, text := range [...]string{
		a.ResponseID, a.SessionKey, a.ClientSessionID, a.SessionSource,
		a.Provider, a.KeyID, a.KeyPrint, a.Model, a.Surface,
	} {
		c.putAlias.BindText(1+i, text)
	}
	c.putAlias.BindInt64(10, a.ExpiresAt.Unix())
	return run(c.putAlias)
}
