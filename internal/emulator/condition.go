package emulator

import (
	"encoding/json"
	"strings"
)

const conditionFailed = "ConditionalCheckFailedException"

// falseWhereTypesDiffer makes a condition that compares two types false, as it is on AWS:
// minidyn refuses such a request, so that a row of the wrong shape would be an error there.
// The whole condition is then false, also where AWS finds an OR or a <> in it true.
func (d *dynamo) falseWhereTypesDiffer(answer *reply, t *table, in request) *reply {
	var refused struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	if answer.err() == nil || in.ConditionExpression == "" || json.Unmarshal(answer.body.Bytes(), &refused) != nil ||
		refused.Type != "ValidationException" || !typesDiffer(refused.Message) {
		return answer
	}
	failed := map[string]any{"__type": conditionFailed, "message": "The conditional request failed"}
	if in.ReturnValuesOnConditionCheckFailure == "ALL_OLD" {
		key := in.Key
		if key == nil {
			key = t.key(in.Item)
		}
		if old := d.get(in.TableName, key); old != nil {
			failed["Item"] = old
		}
	}
	return withStatus(answer.status, failed)
}

func typesDiffer(message string) bool {
	for _, part := range []string{"right operand is not", "type mismatch", "comparing types are not supported"} {
		if strings.Contains(message, part) {
			return true
		}
	}
	return false
}
