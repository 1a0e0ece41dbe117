package sqlite

import (
	"zombiezen.com/go/sqlite/sqlitemigration"

	"switchboard/internal/eventdb"
)

// appID marks the file as ours, so that a path that names another program's database is
// an error and not a second home.
const appID = 0x53776264 // "Swbd"

// schema is the list of migrations. Entries are added, never changed: user_version counts
// how many of them a file has seen.
//
// The columns of session_affinity are DESIGN 6's; the tables of events are eventdb's, with
// the view routing_events over them. Tables are not STRICT: a row that something else has
// damaged must be readable, so that it can be logged and replaced.
func schema() sqlitemigration.Schema {
	return sqlitemigration.Schema{
		AppID: appID,
		Migrations: []string{`
CREATE TABLE session_affinity (
	session_id           TEXT NOT NULL,             -- store key, scoped by user path
	model_name           TEXT NOT NULL,             -- requested model
	provider_identity    TEXT DEFAULT '',
	target_model         TEXT DEFAULT '',
	key_id               TEXT DEFAULT '',           -- position or name when written
	key_print            TEXT DEFAULT '',           -- fingerprint of the key
	api_surface          TEXT DEFAULT '',
	user_path            TEXT DEFAULT '',
	client_session_id    TEXT DEFAULT '',
	assigned_at          INTEGER DEFAULT 0,         -- epoch seconds
	last_used_at         INTEGER DEFAULT 0,         -- epoch seconds
	expires_at           INTEGER DEFAULT 0,         -- epoch seconds
	total_input_tokens   INTEGER DEFAULT 0,
	total_output_tokens  INTEGER DEFAULT 0,
	total_cached_tokens  INTEGER DEFAULT 0,
	total_cost_nano_usd  INTEGER DEFAULT 0,
	total_requests       INTEGER DEFAULT 0,
	last_input_tokens    INTEGER DEFAULT 0,
	switch_count         INTEGER DEFAULT 0,
	switch_cost_nano_usd INTEGER DEFAULT 0,
	epoch                INTEGER DEFAULT 1,
	last_switch_request_id TEXT DEFAULT '',
	is_active            INTEGER DEFAULT 1,         -- 0: tentative claim, never served
	PRIMARY KEY (session_id, model_name)
) WITHOUT ROWID;

CREATE TABLE response_alias (
	response_id       TEXT PRIMARY KEY NOT NULL,
	session_key       TEXT DEFAULT '',
	client_session_id TEXT DEFAULT '',
	session_source    TEXT DEFAULT '',
	provider_identity TEXT DEFAULT '',
	key_id            TEXT DEFAULT '',
	key_print         TEXT DEFAULT '',
	target_model      TEXT DEFAULT '',
	api_surface       TEXT DEFAULT '',
	expires_at        INTEGER DEFAULT 0              -- epoch seconds
) WITHOUT ROWID;
` + eventdb.Schema(), documentSchema},
	}
}
