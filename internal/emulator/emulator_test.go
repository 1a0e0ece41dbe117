package emulator

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

// account is a Cloud behind a real socket, with the clients that users have.
type account struct {
	*Cloud
	config   aws.Config
	dynamo   *dynamodb.Client
	firehose *firehose.Client
	s3       *s3.Client
}

func newAccount(t testing.TB, o Options) account {
	t.Helper()
	cloud := New(o)
	server := httptest.NewServer(cloud)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		cloud.Close(ctx)
		server.Close()
	})
	config := aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
	return account{
		Cloud: cloud, config: config,
		dynamo:   dynamodb.NewFromConfig(config),
		firehose: firehose.NewFromConfig(config),
		s3:       s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = true }),
	}
}

func mustDo(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// code is the error code of an SDK's error; empty for no error.
func code(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		t.Fatalf("%v is not an answer of the service", err)
	}
	return api.ErrorCode()
}
