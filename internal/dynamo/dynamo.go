// Package dynamo keeps pins, response aliases and shared documents in DynamoDB.
package dynamo

import (
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"switchboard/internal/affinity"
	"switchboard/internal/shared"
)

// Store keeps pins in the sessions table (HASH session_id, RANGE model_name) and everything
// else in the state table (HASH id). Both have their TTL on expires_at. It keeps no state
// of its own that matters: any number of them, in any process, may share the tables.
type Store struct {
	client   *dynamodb.Client
	sessions string
	state    string
	logger   *slog.Logger

	malformed onceRows
	rides     []ride
}

var (
	_ affinity.Store   = (*Store)(nil)
	_ affinity.Aliases = (*Store)(nil)
	_ shared.Cell      = (*Document)(nil)
)

// New returns a store over two tables, which are not looked at before the first call. A nil
// logger says nothing.
func New(client *dynamodb.Client, sessions, state string, logger *slog.Logger) *Store {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Store{client: client, sessions: sessions, state: state, logger: logger}
}

// second is t in the precision of the rows.
func second(t time.Time) time.Time { return time.Unix(t.Unix(), 0).UTC() }
