package emulator

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TestSDB04ConditionOnARowOfTheWrongShape: S-DB-04 a, as a store sees it.
func TestSDB04ConditionOnARowOfTheWrongShape(t *testing.T) {
	a := sessions(t)
	for _, tt := range []struct {
		condition string
		value     types.AttributeValue
		failed    bool
	}{
		{"count1 = :v", n(1), true},
		{"count1 < :v", n(1), true},
		{"count1 >= :v", n(1), true},
		{"count1 <> :v", n(1), false},
		{"count1<>:v AND NOT count1<:v", n(1), false},
		{"count1 < :v OR provider = provider", n(1), false},
		{"(attribute_not_exists(count1) OR count1<=:v) AND attribute_exists(provider)", n(1), true},
		{"count1 = :v OR attribute_type(count1, :v)", s("N"), true},
		{"#c = :v OR size(#c) = :v", n(1), false},
		{":v > #c", n(1), true},
		{"count1 = :v", s("x"), false},
		{"flag1 = :v", s("x"), true},
		{"flag1 < :v", n(1), true},
		{"flag1 = :v", &types.AttributeValueMemberBOOL{Value: true}, false},
		{"number1 < :v", s("x"), true},
		{"number1 < :v", n(8), false},
		{"absent1 = :v", n(1), true},
		{"absent1 < :v", n(1), true},
		{"attribute_not_exists(count1) OR count1 < :v", n(1), true},
		{"attribute_exists(count1) AND count1 = :v", n(1), true},
		{"count1 BETWEEN :v AND :v", n(1), true},
	} {
		mustDo(t, a.PutItem("sessions", map[string]any{"session_id": "s1", "model_name": "m", "count1": "x", "flag1": true, "number1": 7, "provider": "A"}))
		in := &dynamodb.UpdateItemInput{
			TableName: aws.String("sessions"), Key: map[string]types.AttributeValue{"session_id": s("s1"), "model_name": s("m")},
			UpdateExpression: aws.String("SET note1 = if_not_exists(note1, :v)"), ConditionExpression: &tt.condition,
			ExpressionAttributeValues:           map[string]types.AttributeValue{":v": tt.value},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}
		if strings.Contains(tt.condition, "#c") {
			in.ExpressionAttributeNames = map[string]string{"#c": "count1"}
		}
		_, updated := a.dynamo.UpdateItem(t.Context(), in)
		_, put := a.dynamo.PutItem(t.Context(), &dynamodb.PutItemInput{
			TableName: in.TableName, Item: map[string]types.AttributeValue{"session_id": s("s1"), "model_name": s("m")},
			ConditionExpression: in.ConditionExpression, ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
			ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
		})
		for operation, err := range map[string]error{"UpdateItem": updated, "PutItem": put} {
			if !tt.failed && err != nil {
				t.Errorf("%s if %s with %v = %v, want success", operation, tt.condition, tt.value, err)
			}
			if tt.failed {
				wantWinner(t, err, "A")
			}
		}
	}
}
