package emulator

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

func add(a account, ctx context.Context) error {
	_, err := a.dynamo.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String("sessions"), Key: map[string]types.AttributeValue{"session_id": s("s1"), "model_name": s("m")},
		UpdateExpression: aws.String("ADD total_requests :one"), ExpressionAttributeValues: map[string]types.AttributeValue{":one": n(1)},
	})
	return err
}

func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		name    string
		fault   Fault
		code    string // of the answer
		cut     bool   // no answer
		applied bool
	}{
		{"none", Fault{}, "", false, true},
		{"slow", Fault{Delay: time.Millisecond}, "", false, true},
		{"throttled", Fault{Code: "ThrottlingException"}, "ThrottlingException", false, false},
		{"broken", Fault{Code: "InternalServerError"}, "InternalServerError", false, false},
		{"away", Fault{Status: http.StatusServiceUnavailable, Code: "ServiceUnavailable"}, "ServiceUnavailable", false, false},
		{"cut before", Fault{DropBefore: true}, "", true, false},
		{"cut after", Fault{DropAfter: true}, "", true, true},
	} {
		a := sessions(t)
		a.SetFault(func(service, operation string, body []byte) Fault {
			if service == DynamoDB && operation == "UpdateItem" && strings.Contains(string(body), "s1") {
				return tt.fault
			}
			return Fault{}
		})
		err := add(a, t.Context())
		if _, answered := errors.AsType[smithy.APIError](err); tt.cut {
			if err == nil || answered {
				t.Errorf("%s: error = %v, want a cut connection", tt.name, err)
			}
		} else if got := code(t, err); got != tt.code {
			t.Errorf("%s: code = %q, want %q", tt.name, got, tt.code)
		}
		items, err := a.Items("sessions")
		mustDo(t, err)
		if (len(items) == 1) != tt.applied {
			t.Errorf("%s: items = %v, want applied %v", tt.name, items, tt.applied)
		}
		a.SetFault(nil)
		if err := add(a, t.Context()); err != nil {
			t.Errorf("%s: after the fault: %v", tt.name, err)
		}
		if got := a.Calls()["DynamoDB.UpdateItem"]; got != 2 {
			t.Errorf("%s: %d calls, want 2", tt.name, got)
		}
		a.ResetCalls()
		if got := a.Calls(); len(got) != 0 {
			t.Errorf("%s: Calls after ResetCalls = %v", tt.name, got)
		}
	}
}

// TestDelayedWriteIsAppliedWithoutItsClient: who gives up on a slow write has not undone it.
func TestDelayedWriteIsAppliedWithoutItsClient(t *testing.T) {
	a := sessions(t)
	held := make(chan struct{})
	a.SetFault(func(string, string, []byte) Fault {
		close(held)
		return Fault{Delay: time.Hour}
	})
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- add(a, ctx) }()
	<-held
	cancel()
	if err := <-gone; err == nil {
		t.Error("the client got an answer")
	}
	mustDo(t, a.Close(t.Context())) // ends the delay
	for deadline := time.Now().Add(5 * time.Second); ; {
		items, err := a.Items("sessions")
		mustDo(t, err)
		if len(items) == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the write was never applied")
		}
	}
}

func TestS3Fault(t *testing.T) {
	a := newAccount(t, Options{})
	mustDo(t, a.CreateBucket("bucket"), a.PutObject("bucket", "k", []byte("x")))
	a.SetFault(func(service, operation string, _ []byte) Fault {
		if service == S3 && operation == "GetObject" {
			return Fault{Code: "SlowDown"}
		}
		return Fault{}
	})
	_, err := a.s3.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("bucket"), Key: aws.String("k")})
	if got := code(t, err); got != "SlowDown" {
		t.Errorf("GetObject = %v, want SlowDown", err)
	}
}
