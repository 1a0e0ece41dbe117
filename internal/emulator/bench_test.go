package emulator

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// BenchmarkUpdateItem is a conditional write through the SDK and a socket: what a test of
// latencies must take off. Compare runs with benchstat.
func BenchmarkUpdateItem(b *testing.B) {
	a := newAccount(b, Options{})
	if err := a.CreateTable("sessions", "session_id", "model_name", "expires_at"); err != nil {
		b.Fatal(err)
	}
	in := &dynamodb.UpdateItemInput{
		TableName: aws.String("sessions"), Key: map[string]types.AttributeValue{"session_id": s("s1"), "model_name": s("m")},
		UpdateExpression:    aws.String("SET #p = if_not_exists(#p, :p), #e = :e ADD #t :one"),
		ConditionExpression: aws.String("attribute_not_exists(#e) OR #e >= :e"), ReturnValues: types.ReturnValueAllNew,
		ExpressionAttributeNames:  map[string]string{"#p": "provider_identity", "#e": "expires_at", "#t": "total_requests"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":p": s("A"), ":e": n(1_800_000_000), ":one": n(1)},
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.dynamo.UpdateItem(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
}
