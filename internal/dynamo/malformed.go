package dynamo

import (
	"context"
	"log/slog"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxOnce bounds the memory; a table with more malformed rows than this says no more.
const maxOnce = 1000

// onceRows remembers which malformed rows have been logged.
type onceRows struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

func (o *onceRows) first(table, key string) bool {
	key = table + "\x00" + key
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.seen[key]; known || len(o.seen) >= maxOnce {
		return false
	}
	if o.seen == nil {
		o.seen = make(map[string]struct{})
	}
	o.seen[key] = struct{}{}
	return true
}

// forget lets a row be logged again: it has been overwritten.
func (o *onceRows) forget(table, key string) {
	key = table + "\x00" + key
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.seen, key)
}

// logMalformed writes the item to the log, whole, once: it is about to be overwritten, and
// this is then all that is left of it. The form is DynamoDB's own JSON, which put-item takes.
func (s *Store) logMalformed(ctx context.Context, table, key, column string, raw item) {
	if s.malformed.first(table, key) {
		s.logger.LogAttrs(ctx, slog.LevelError, "malformed item reads as none",
			slog.String("table", table), slog.String("column", column), slog.Any("row", wireForm(raw)))
	}
}

func wireForm(raw item) map[string]any {
	out := make(map[string]any, len(raw))
	for name, v := range raw {
		out[name] = wireValue(v)
	}
	return out
}

// wireValue is v as DynamoDB writes it in JSON; bytes become base64 there.
func wireValue(v attr) any {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": v.Value}
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}
	case *types.AttributeValueMemberNULL:
		return map[string]any{"NULL": v.Value}
	case *types.AttributeValueMemberSS:
		return map[string]any{"SS": v.Value}
	case *types.AttributeValueMemberNS:
		return map[string]any{"NS": v.Value}
	case *types.AttributeValueMemberBS:
		return map[string]any{"BS": v.Value}
	case *types.AttributeValueMemberM:
		return map[string]any{"M": wireForm(v.Value)}
	case *types.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		for i, one := range v.Value {
			list[i] = wireValue(one)
		}
		return map[string]any{"L": list}
	}
	return nil
}
