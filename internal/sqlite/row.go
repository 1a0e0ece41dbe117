package sqlite

import (
	"context"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"

	"switchboard/internal/affinity"
)

const (
	pinColumns = `provider_identity, key_id, key_print, target_model, api_surface, user_path,
	client_session_id, last_switch_request_id, assigned_at, last_used_at, expires_at,
	is_active, epoch, total_input_tokens, total_output_tokens, total_cached_tokens,
	total_cost_nano_usd, total_requests, switch_count, switch_cost_nano_usd, last_input_tokens`

	selectPinSQL = `SELECT ` + pinColumns + `
FROM session_affinity WHERE session_id = ?1 AND model_name = ?2`

	// putPinSQL takes the columns of selectPinSQL in their order, after the key.
	putPinSQL = `REPLACE INTO session_affinity (session_id, model_name,
	provider_identity, key_id, key_print, target_model, api_surface, user_path,
	client_session_id, last_switch_request_id, assigned_at, last_used_at, expires_at,
	is_active, epoch, total_input_tokens, total_output_tokens, total_cached_tokens,
	total_cost_nano_usd, total_requests, switch_count, switch_cost_nano_usd, last_input_tokens)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)`

	pinTexts = 8  // columns of text, which come first
	pinCols  = 21 // all columns
)

// pinState says what a row is worth.
type pinState int

const (
	pinNone pinState = iota
	pinExpired
	pinMalformed
	pinLive
)

// pin reads the row of ref and judges it at now. Only a live one is filled in.
func (c *conn) pin(ref affinity.Ref, now time.Time, malformed *onceRows, logger *slog.Logger) (affinity.Pin, pinState, error) {
	stmt := c.selectPin
	stmt.BindText(1, ref.SessionKey)
	stmt.BindText(2, ref.Model)
	found, err := stmt.Step()
	if err != nil {
		return affinity.Pin{}, pinNone, err
	}
	// The reset ends the read; a forgotten one would keep the log from ever being emptied.
	defer stmt.Reset()
	if !found {
		return affinity.Pin{}, pinNone, nil
	}
	pin, state := readPin(stmt, ref, now, malformed, logger)
	return pin, state, nil
}

// readPin judges the row that stmt stands on, whose first columns are pinColumns.
func readPin(stmt *sqlite.Stmt, ref affinity.Ref, now time.Time, malformed *onceRows, logger *slog.Logger) (affinity.Pin, pinState) {
	for col := range pinCols {
		if !wellFormed(stmt.ColumnType(col), col) {
			malformed.log(logger, stmt, ref)
			return affinity.Pin{}, pinMalformed
		}
	}
	expires := stmt.ColumnInt64(10)
	if expires <= now.Unix() {
		return affinity.Pin{}, pinExpired
	}
	return affinity.Pin{
		Ref: ref,
		Target: affinity.Target{
			Provider: stmt.ColumnText(0),
			KeyID:    stmt.ColumnText(1),
			KeyPrint: stmt.ColumnText(2),
			Model:    stmt.ColumnText(3),
			Surface:  stmt.ColumnText(4),
		},
		UserPath:            stmt.ColumnText(5),
		ClientSessionID:     stmt.ColumnText(6),
		LastSwitchRequestID: stmt.ColumnText(7),
		AssignedAt:          time.Unix(stmt.ColumnInt64(8), 0).UTC(),
		LastUsedAt:          time.Unix(stmt.ColumnInt64(9), 0).UTC(),
		ExpiresAt:           time.Unix(expires, 0).UTC(),
		Served:              stmt.ColumnInt64(11) != 0,
		Epoch:               stmt.ColumnInt64(12),
		InputTokens:         stmt.ColumnInt64(13),
		OutputTokens:        stmt.ColumnInt64(14),
		CachedTokens:        stmt.ColumnInt64(15),
		CostNanoUSD:         stmt.ColumnInt64(16),
		Requests:            stmt.ColumnInt64(17),
		SwitchCount:         stmt.ColumnInt64(18),
		SwitchCostNanoUSD:   stmt.ColumnInt64(19),
		LastInputTokens:     stmt.ColumnInt64(20),
	}, pinLive
}

// wellFormed tells whether a column has a type that we would have written. Absent texts
// other than the provider read as empty.
func wellFormed(t sqlite.ColumnType, col int) bool {
	if col >= pinTexts {
		return t == sqlite.TypeInteger
	}
	return t == sqlite.TypeText || t == sqlite.TypeNull && col > 0
}

// put writes the whole row.
func (c *conn) put(p *affinity.Pin) error {
	stmt := c.putPin
	for i, text := range [...]string{
		p.SessionKey, p.Ref.Model, p.Provider, p.KeyID, p.KeyPrint, p.Target.Model, p.Surface,
		p.UserPath, p.ClientSessionID, p.LastSwitchRequestID,
	} {
		stmt.BindText(1+i, text)
	}
	active := int64(0)
	if p.Served {
		active = 1
	}
	for i, n := range [...]int64{
		p.AssignedAt.Unix(), p.LastUsedAt.Unix(), p.ExpiresAt.Unix(), active, p.Epoch,
		p.InputTokens, p.OutputTokens, p.CachedTokens, p.CostNanoUSD, p.Requests,
		p.SwitchCount, p.SwitchCostNanoUSD, p.LastInputTokens,
	} {
		stmt.BindInt64(11+i, n)
	}
	return run(stmt)
}

// remove deletes the row.
func (c *conn) remove(ref affinity.Ref) error {
	c.deletePin.BindText(1, ref.SessionKey)
	c.deletePin.BindText(2, ref.Model)
	return run(c.deletePin)
}

// onceRows remembers which malformed rows have been logged.
type onceRows struct {
	mu   sync.Mutex
	seen map[affinity.Ref]struct{}
}

// maxOnce bounds the memory; a database with more malformed rows than this says no more.
const maxOnce = 1000

// log writes the row that stmt stands on to the log, whole, once. Texts that are no UTF-8
// and blobs are logged as hex.
func (o *onceRows) log(logger *slog.Logger, stmt *sqlite.Stmt, ref affinity.Ref) {
	o.mu.Lock()
	_, known := o.seen[ref]
	if !known && len(o.seen) < maxOnce {
		if o.seen == nil {
			o.seen = make(map[affinity.Ref]struct{})
		}
		o.seen[ref] = struct{}{}
	} else {
		known = true
	}
	o.mu.Unlock()
	if known {
		return
	}
	row := map[string]any{"session_id": ref.SessionKey, "model_name": ref.Model}
	for _, name := range pinColumnNames {
		row[name] = columnValue(stmt, stmt.ColumnIndex(name))
	}
	logger.LogAttrs(context.Background(), slog.LevelError, "malformed session row reads as none",
		slog.Any("row", row))
}

// forget lets a row be logged again: it has been overwritten.
func (o *onceRows) forget(ref affinity.Ref) {
	o.mu.Lock()
	delete(o.seen, ref)
	o.mu.Unlock()
}

var pinColumnNames = [...]string{
	"provider_identity", "key_id", "key_print", "target_model", "api_surface", "user_path",
	"client_session_id", "last_switch_request_id", "assigned_at", "last_used_at", "expires_at",
	"is_active", "epoch", "total_input_tokens", "total_output_tokens", "total_cached_tokens",
	"total_cost_nano_usd", "total_requests", "switch_count", "switch_cost_nano_usd", "last_input_tokens",
}

func columnValue(stmt *sqlite.Stmt, col int) any {
	switch stmt.ColumnType(col) {
	case sqlite.TypeNull:
		return nil
	case sqlite.TypeInteger:
		return stmt.ColumnInt64(col)
	case sqlite.TypeFloat:
		return stmt.ColumnFloat(col)
	case sqlite.TypeText:
		return stmt.ColumnText(col)
	default:
		b := make([]byte, stmt.ColumnLen(col))
		stmt.ColumnBytes(col, b)
		return "x'" + hex.EncodeToString(b) + "'"
	}
}
