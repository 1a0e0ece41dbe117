package dynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"switchboard/internal/affinity"
)

// Columns of the state table.
const (
	colID            = "id"
	colSessionSource = "session_source"
)

// PutAlias implements affinity.Aliases. Aliases lie in the state table, under ids that start
// with "response:", beside the documents: a session id can be any text, so that in the
// sessions table no prefix would keep them apart.
func (s *Store) PutAlias(ctx context.Context, a affinity.Alias) error {
	_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.state, Item: item{
		colID:            text(aliasID + keyText(a.ResponseID)),
		colSession:       text(a.SessionKey),
		colClientSession: text(a.ClientSessionID),
		colSessionSource: text(a.SessionSource),
		colProvider:      text(a.Provider),
		colKeyID:         text(a.KeyID),
		colKeyPrint:      text(a.KeyPrint),
		colTargetModel:   text(a.Target.Model),
		colSurface:       text(a.Surface),
		colExpires:       epochSeconds(a.ExpiresAt),
	}})
	if err != nil {
		return fault(ctx, "put alias", a.ResponseID, err)
	}
	s.malformed.forget(s.state, aliasID+a.ResponseID)
	return nil
}

// LookupAlias implements affinity.Aliases. A malformed alias is none, and is logged once.
func (s *Store) LookupAlias(ctx context.Context, responseID string, now time.Time) (affinity.Alias, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.state, ConsistentRead: ptr(true),
		Key: item{colID: text(aliasID + keyText(responseID))},
	})
	if err != nil {
		return affinity.Alias{}, fault(ctx, "lookup alias", responseID, err)
	}
	if len(out.Item) == 0 {
		return affinity.Alias{}, affinity.ErrNotFound
	}
	a, bad := readAlias(responseID, out.Item)
	if bad != "" {
		s.logMalformed(ctx, s.state, aliasID+responseID, bad, out.Item)
	}
	if bad != "" || a.ExpiresAt.Unix() <= now.Unix() {
		return affinity.Alias{}, affinity.ErrNotFound
	}
	return a, nil
}

func readAlias(responseID string, raw item) (a affinity.Alias, bad string) {
	r := reader{raw: raw}
	a = affinity.Alias{
		ResponseID:      responseID,
		SessionKey:      r.text(colSession, true),
		ClientSessionID: r.text(colClientSession, false),
		SessionSource:   r.text(colSessionSource, false),
		Target: affinity.Target{
			Provider: r.text(colProvider, true),
			KeyID:    r.text(colKeyID, false),
			KeyPrint: r.text(colKeyPrint, false),
			Model:    r.text(colTargetModel, false),
			Surface:  r.text(colSurface, false),
		},
		ExpiresAt: r.time(colExpires, true),
	}
	return a, r.bad
}
