package emulator

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
)

// TestUpdateExpressions runs each on {a: 1, b: 2, m: {x: 1}}.
func TestUpdateExpressions(t *testing.T) {
	a := sessions(t)
	for _, tt := range []struct {
		expression, code string
		want             map[string]string // of a, b, c, d; others are not looked at
	}{
		{"REMOVE a", "", map[string]string{"b": "2"}},
		{"REMOVE a, b", "", map[string]string{}},
		{"REMOVE #a", "", map[string]string{"b": "2"}},
		{"SET c = :one REMOVE #a", "", map[string]string{"b": "2", "c": "1"}},
		{"REMOVE a SET c = :one ADD b :one", "", map[string]string{"b": "3", "c": "1"}},
		{"remove a ADD d :one, b :one", "", map[string]string{"b": "3", "d": "1"}},
		{"REMOVE zz", "", map[string]string{"a": "1", "b": "2"}},
		{"REMOVE m.x SET c = :one", "", map[string]string{"a": "1", "b": "2", "c": "1"}},
		{"SET a = a + :one", "", map[string]string{"a": "2", "b": "2"}},
		{"SET c = if_not_exists(c, :one), d = if_not_exists(a, :one) + :one ADD b :one", "", map[string]string{"a": "1", "b": "3", "c": "1", "d": "2"}},
		{"SET c = a, a = :one", "", map[string]string{"a": "1", "b": "2", "c": "1"}},
		{"SET a = :one, a = :one", "ValidationException", nil},
		{"SET #a = :one ADD a :one", "ValidationException", nil},
		{"SET m = :one REMOVE m.x", "ValidationException", nil},
		{"SET a = :one, c = a", "EmulatorException", nil},
		{"SET #a = :one, c = if_not_exists(c, #a)", "EmulatorException", nil},
		{"ADD a :one SET c = a + :one", "EmulatorException", nil},
	} {
		mustDo(t, a.PutItem("sessions", map[string]any{"session_id": "s1", "model_name": "m", "a": 1, "b": 2, "m": map[string]any{"x": 1}}))
		in := &dynamodb.UpdateItemInput{
			TableName: aws.String("sessions"), Key: map[string]types.AttributeValue{"session_id": s("s1"), "model_name": s("m")},
			UpdateExpression: &tt.expression, ReturnValues: types.ReturnValueAllNew,
		}
		if strings.Contains(tt.expression, ":one") {
			in.ExpressionAttributeValues = map[string]types.AttributeValue{":one": n(1)}
		}
		if strings.Contains(tt.expression, "#a") {
			in.ExpressionAttributeNames = map[string]string{"#a": "a"}
		}
		out, err := a.dynamo.UpdateItem(t.Context(), in)
		if got := code(t, err); got != tt.code {
			t.Errorf("UpdateItem(%s) = %v, want %q", tt.expression, err, tt.code)
		}
		if err != nil {
			continue
		}
		stored, err := a.dynamo.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: in.TableName, Key: in.Key})
		mustDo(t, err)
		for where, attributes := range map[string]map[string]types.AttributeValue{"answer": out.Attributes, "table": stored.Item} {
			got := map[string]string{}
			for _, name := range []string{"a", "b", "c", "d"} {
				if number, ok := attributes[name].(*types.AttributeValueMemberN); ok {
					got[name] = number.Value
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("UpdateItem(%s), %s: %s", tt.expression, where, diff)
			}
		}
	}
}

func TestKeysThatAreRefused(t *testing.T) {
	a := sessions(t)
	_, err := a.dynamo.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("sessions"), Item: map[string]types.AttributeValue{"session_id": s(""), "model_name": s("m")}})
	if code(t, err) != "ValidationException" {
		t.Errorf("PutItem with an empty key = %v", err)
	}
	key := map[string]types.AttributeValue{"session_id": s("s1"), "model_name": s("m")}
	_, err = a.dynamo.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"sessions": {Keys: []map[string]types.AttributeValue{key, key}}}})
	if code(t, err) != "ValidationException" {
		t.Errorf("BatchGetItem of one key twice = %v", err)
	}
	other := map[string]types.AttributeValue{"session_id": s("s1"), "model_name": s("n")}
	mustDo(t, a.PutItem("sessions", map[string]any{"session_id": "s1", "model_name": "n"}))
	out, err := a.dynamo.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"sessions": {Keys: []map[string]types.AttributeValue{key, other}}}})
	if err != nil || len(out.Responses["sessions"]) != 1 {
		t.Errorf("BatchGetItem = %v, %v, want the one that is there", out, err)
	}
}
