package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func n(v int) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(v)}
}

func sessions(t *testing.T) account {
	t.Helper()
	a := newAccount(t, Options{})
	mustDo(t, a.CreateTable("sessions", "session_id", "model_name", "expires_at"))
	return a
}

func TestCreateTableThroughTheSDK(t *testing.T) {
	a := newAccount(t, Options{})
	create := &dynamodb.CreateTableInput{
		TableName: aws.String("state"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	}
	if _, err := a.dynamo.CreateTable(t.Context(), create); err != nil {
		t.Fatal(err)
	}
	if _, err := a.dynamo.CreateTable(t.Context(), create); code(t, err) != "ResourceInUseException" {
		t.Errorf("CreateTable(again) = %v, want ResourceInUseException", err)
	}
	if _, err := a.dynamo.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: aws.String("state"), TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("expires_at"), Enabled: aws.Bool(true)}}); err != nil {
		t.Fatal(err)
	}
	ttl, err := a.dynamo.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String("state")})
	if err != nil || ttl.TimeToLiveDescription.TimeToLiveStatus != types.TimeToLiveStatusEnabled || *ttl.TimeToLiveDescription.AttributeName != "expires_at" {
		t.Errorf("DescribeTimeToLive = %+v, %v", ttl, err)
	}
	waiter := dynamodb.NewTableExistsWaiter(a.dynamo)
	if err := waiter.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("state")}, time.Second); err != nil {
		t.Errorf("waiting for the table: %v", err)
	}
	list, err := a.dynamo.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil || !cmp.Equal(list.TableNames, []string{"state"}) {
		t.Errorf("ListTables = %v, %v", list, err)
	}
	if _, err := a.dynamo.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("state")}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.dynamo.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("state"), Key: map[string]types.AttributeValue{"id": s("x")}}); code(t, err) != "ResourceNotFoundException" {
		t.Errorf("GetItem of a table that is gone = %v", err)
	}
}

func TestItemsSeededAndRead(t *testing.T) {
	a := sessions(t)
	want := map[string]any{
		"session_id": "s1", "model_name": "m", "switch_count": json.Number("4"), "active": true, "raw": []byte{0, 255},
		"list": []any{"a", json.Number("1"), nil}, "map": map[string]any{"inner": "x"},
	}
	mustDo(t, a.PutItem("sessions", want))
	got, err := a.Items("sessions")
	if diff := cmp.Diff([]map[string]any{want}, got); err != nil || diff != "" {
		t.Errorf("Items: %v\n%s", err, diff)
	}
	if err := a.PutItem("sessions", map[string]any{"session_id": struct{}{}}); err == nil {
		t.Error("PutItem(struct) = nil, want an error")
	}
	if _, err := a.Items("none"); err == nil {
		t.Error("Items of no table = nil, want an error")
	}
}

// TestOldItemOfAFailedCondition covers what minidyn leaves out of PutItem and DeleteItem.
func TestOldItemOfAFailedCondition(t *testing.T) {
	a := sessions(t)
	key := map[string]types.AttributeValue{"session_id": s("s1"), "model_name": s("m")}
	put := func(provider string, condition *string) (*dynamodb.PutItemOutput, error) {
		return a.dynamo.PutItem(t.Context(), &dynamodb.PutItemInput{
			TableName: aws.String("sessions"), ConditionExpression: condition,
			Item:         map[string]types.AttributeValue{"session_id": s("s1"), "model_name": s("m"), "provider": s(provider)},
			ReturnValues: types.ReturnValueAllOld, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
	}
	absent := aws.String("attribute_not_exists(session_id)")
	if out, err := put("A", absent); err != nil || len(out.Attributes) != 0 {
		t.Errorf("first put = %v, %v, want nothing old", out, err)
	}
	_, err := put("B", absent)
	wantWinner(t, err, "A")
	out, err := put("C", nil)
	if err != nil || !cmp.Equal(out.Attributes["provider"], s("A"), cmpopts.IgnoreUnexported(types.AttributeValueMemberS{})) {
		t.Errorf("put over it = %v, %v, want A as the old one", out, err)
	}
	_, err = a.dynamo.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: aws.String("sessions"), Key: key, ConditionExpression: aws.String("provider = :p"), ExpressionAttributeValues: map[string]types.AttributeValue{":p": s("Z")},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	wantWinner(t, err, "C")
	_, err = a.dynamo.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String("sessions"), Key: key, UpdateExpression: aws.String("SET provider = :q"), ConditionExpression: aws.String("provider = :p"),
		ExpressionAttributeValues:           map[string]types.AttributeValue{":p": s("Z"), ":q": s("Y")},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	wantWinner(t, err, "C")
}

func wantWinner(t *testing.T, err error, provider string) {
	t.Helper()
	failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		t.Fatalf("error = %v, want a failed condition", err)
	}
	if got, _ := failed.Item["provider"].(*types.AttributeValueMemberS); got == nil || got.Value != provider {
		t.Errorf("the old item is %v, want provider %s", failed.Item, provider)
	}
}

func TestSizeLimits(t *testing.T) {
	a := sessions(t)
	for _, tt := range []struct {
		name           string
		hash, rng, pad int
		want           string
	}{
		{"longest keys", 2048, 1024, 0, ""},
		{"hash too long", 2049, 1, 0, "ValidationException"},
		{"range too long", 1, 1025, 0, "ValidationException"},
		{"largest item", 1, 1, 390 << 10, ""},
		{"item too large", 1, 1, 401 << 10, "ValidationException"},
	} {
		it := map[string]types.AttributeValue{"session_id": s(strings.Repeat("h", tt.hash)), "model_name": s(strings.Repeat("r", tt.rng))}
		if tt.pad > 0 {
			it["pad"] = s(strings.Repeat("p", tt.pad))
		}
		_, err := a.dynamo.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("sessions"), Item: it})
		if got := code(t, err); got != tt.want {
			t.Errorf("%s: PutItem = %q, want %q", tt.name, got, tt.want)
		}
		if tt.pad > 0 {
			continue
		}
		delete(it, "pad")
		_, err = a.dynamo.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("sessions"), Key: it})
		if got := code(t, err); got != tt.want {
			t.Errorf("%s: GetItem = %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestOneWinnerOf200 is what the store's claims and switches stand on.
func TestOneWinnerOf200(t *testing.T) {
	a := sessions(t)
	var wg sync.WaitGroup
	won := make(chan int, 200)
	for i := range 200 {
		wg.Go(func() {
			_, err := a.dynamo.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
				TableName: aws.String("sessions"), Key: map[string]types.AttributeValue{"session_id": s("s1"), "model_name": s("m")},
				UpdateExpression:    aws.String("SET #p = if_not_exists(#p, :p) ADD total_requests :one"),
				ConditionExpression: aws.String("attribute_not_exists(#p)"), ExpressionAttributeNames: map[string]string{"#p": "provider"},
				ExpressionAttributeValues: map[string]types.AttributeValue{":p": n(i), ":one": n(1)},
			})
			if err == nil {
				won <- i
			}
			if _, err := a.dynamo.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
				TableName: aws.String("sessions"), Key: map[string]types.AttributeValue{"session_id": s("s2"), "model_name": s("m")},
				UpdateExpression: aws.String("ADD total_requests :one"), ExpressionAttributeValues: map[string]types.AttributeValue{":one": n(1)},
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Errorf("%d winners, want 1", len(won))
	}
	items, err := a.Items("sessions")
	mustDo(t, err)
	totals := map[any]any{}
	for _, it := range items {
		totals[it["session_id"]] = it["total_requests"]
	}
	if want := (map[any]any{"s1": json.Number("1"), "s2": json.Number("200")}); !cmp.Equal(totals, want) {
		t.Errorf("totals = %v, want %v", totals, want)
	}
	if got := a.Calls()["DynamoDB.UpdateItem"]; got != 400 {
		t.Errorf("Calls = %d, want 400", got)
	}
}
