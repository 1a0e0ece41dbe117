// Package eventdb keeps routing events in SQLite tables and answers audit questions from them.
//
// An event is stored once, narrow: what many events have in common (names, outcome, status)
// is one row of event_kind, its session one row of event_thread. Sums are kept beside it, in
// the same transaction: per thread, day and kind (event_cell), and per user path, day and
// what a filter may name (event_day). The view routing_events shows the events by their field names.
package eventdb

// Tables are the tables whose both ends a check of the file should read, with the columns
// that order them.
func Tables() []string {
	return []string{"event ORDER BY id", "event ORDER BY created_at", "event_thread ORDER BY id", "event_cell ORDER BY thread"}
}

// Schema makes the tables and the view, as one script.
func Schema() string {
	return `
-- Counters of one user path. Row 0 counts all; its path is no path that a key can have.
CREATE TABLE event_path (
	id        INTEGER PRIMARY KEY,
	user_path TEXT NOT NULL UNIQUE,
	events    INTEGER NOT NULL DEFAULT 0,
	sessions  INTEGER NOT NULL DEFAULT 0,
	singles   INTEGER NOT NULL DEFAULT 0            -- events without session
);
INSERT INTO event_path (id, user_path) VALUES (0, x'00');

-- What many events have in common.
CREATE TABLE event_kind (
	id                INTEGER PRIMARY KEY,
	path              INTEGER NOT NULL,
	session_source    TEXT NOT NULL,
	api_surface       TEXT NOT NULL,
	requested_model   TEXT NOT NULL,
	model_name        TEXT NOT NULL,
	provider_identity TEXT NOT NULL,
	key_id            TEXT NOT NULL,
	billing_model     TEXT NOT NULL,
	decision_reason   TEXT NOT NULL,
	usage_quality     TEXT NOT NULL,
	outcome           TEXT NOT NULL,
	affinity          TEXT NOT NULL,
	response_status   INTEGER NOT NULL,
	switched          INTEGER NOT NULL,
	stream            INTEGER NOT NULL,
	requests          INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX event_kind_all ON event_kind (requested_model, model_name, provider_identity, key_id, path,
	decision_reason, outcome, response_status, session_source, api_surface, billing_model, usage_quality, affinity,
	switched, stream);

-- A session, or one event without session.
CREATE TABLE event_thread (
	id          INTEGER PRIMARY KEY,                -- below 0: one event without session
	path        INTEGER NOT NULL,
	session_id  TEXT NOT NULL,                      -- as the client gave it
	session_key TEXT NOT NULL,
	requests    INTEGER NOT NULL,
	first_at    INTEGER NOT NULL,                   -- epoch milliseconds
	newest      TEXT NOT NULL                       -- created_at in 19 digits, then event_id
);
CREATE INDEX event_thread_session ON event_thread (session_id, path, session_key);
-- Apart, so that neither kind is read to find the other; both are merged where both are asked for.
CREATE INDEX event_thread_sessions ON event_thread (newest) WHERE id > 0;
CREATE INDEX event_thread_singles ON event_thread (newest) WHERE id < 0;
CREATE INDEX event_thread_path_sessions ON event_thread (path, newest) WHERE id > 0;
CREATE INDEX event_thread_path_singles ON event_thread (path, newest) WHERE id < 0;

CREATE TABLE event (
	id                   INTEGER PRIMARY KEY,
	event_id             TEXT NOT NULL,
	created_at           INTEGER NOT NULL,          -- epoch milliseconds
	thread               INTEGER NOT NULL,
	kind                 INTEGER NOT NULL,
	latency_ms           INTEGER NOT NULL,
	ttft_ms              INTEGER,                   -- NULL is unknown, here and below
	switch_count         INTEGER,
	switch_cost_nano_usd INTEGER,
	input_tokens         INTEGER,
	cached_input_tokens  INTEGER,
	cache_write_tokens   INTEGER,
	output_tokens        INTEGER,
	reasoning_tokens     INTEGER,
	input_cost_nano_usd  INTEGER,
	output_cost_nano_usd INTEGER,
	cost_nano_usd        INTEGER,
	request_id           TEXT NOT NULL,
	attempts             TEXT,                      -- JSON array
	degraded_providers   TEXT                       -- JSON array
);
-- The order of a log, and what makes an event one: its id says when it was made.
CREATE UNIQUE INDEX event_time ON event (created_at, event_id);
CREATE INDEX event_of_thread ON event (thread);

-- Sums of a thread's events of one UTC day (days since 1970) and kind.
CREATE TABLE event_cell (
	thread INTEGER NOT NULL,
	day    INTEGER NOT NULL,
	kind   INTEGER NOT NULL,
	newest TEXT NOT NULL,` + sumColumns + `
	PRIMARY KEY (thread, day, kind)
) WITHOUT ROWID;
CREATE INDEX event_cell_kind ON event_cell (kind, day);
CREATE INDEX event_cell_day ON event_cell (day);

-- Sums of a user path's events of one UTC day; those of path 0 are everybody's.
-- What a filter may name is in the key.
CREATE TABLE event_day (
	path              INTEGER NOT NULL,
	day               INTEGER NOT NULL,
	requested_model   TEXT NOT NULL,
	model_name        TEXT NOT NULL,
	provider_identity TEXT NOT NULL,
	decision_reason   TEXT NOT NULL,
	outcome           TEXT NOT NULL,
	response_status   INTEGER NOT NULL,` + sumColumns + `
	PRIMARY KEY (path, day, requested_model, model_name, provider_identity, decision_reason, outcome, response_status)
) WITHOUT ROWID;

CREATE VIEW routing_events AS SELECT
	e.event_id, e.created_at, e.request_id, t.session_id, t.session_key, k.session_source, p.user_path,
	k.api_surface, k.requested_model, k.model_name, k.provider_identity, k.key_id, k.billing_model,
	k.decision_reason, k.switched, e.switch_count, e.switch_cost_nano_usd, e.attempts, e.degraded_providers,
	k.stream, e.input_tokens, e.cached_input_tokens, e.cache_write_tokens, e.output_tokens, e.reasoning_tokens,
	k.usage_quality, e.input_cost_nano_usd, e.output_cost_nano_usd, e.cost_nano_usd, k.response_status,
	k.outcome, e.ttft_ms, e.latency_ms, k.affinity
FROM event e CROSS JOIN event_kind k ON k.id = e.kind
	CROSS JOIN event_thread t ON t.id = e.thread
	CROSS JOIN event_path p ON p.id = t.path;
`
}

// sumColumns are audit.UsageColumns.
const sumColumns = `
	requests             INTEGER NOT NULL,
	input_tokens         INTEGER NOT NULL,
	cached_input_tokens  INTEGER NOT NULL,
	cache_write_tokens   INTEGER NOT NULL,
	output_tokens        INTEGER NOT NULL,
	input_cost_nano_usd  INTEGER NOT NULL,
	output_cost_nano_usd INTEGER NOT NULL,
	cost_nano_usd        INTEGER NOT NULL,
	unpriced             INTEGER NOT NULL,
	switches             INTEGER NOT NULL,
	switch_cost_nano_usd INTEGER NOT NULL,`
