package main

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	"github.com/google/go-cmp/cmp"

	"switchboard/internal/emulator"
)

func built(t *testing.T, given map[string]string) *stack {
	t.Helper()
	tpl, err := readTemplate("../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := &scope{template: tpl, stack: "switchboard", region: "us-east-1", account: account, parameters: given, urls: map[string]string{}}
	out, err := s.build()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestStackOfTheTemplate is the real template: a resource that it renames must be noticed.
func TestStackOfTheTemplate(t *testing.T) {
	got := built(t, nil)
	wantTables := []table{
		{name: "switchboard-SessionTable", attributes: map[string]string{"session_id": "S", "model_name": "S"}, hash: "session_id", rng: "model_name", ttl: "expires_at"},
		{name: "switchboard-StateTable", attributes: map[string]string{"id": "S"}, hash: "id", ttl: "expires_at"},
	}
	if diff := cmp.Diff(wantTables, got.tables, cmp.AllowUnexported(table{})); diff != "" {
		t.Errorf("tables: %s", diff)
	}
	if !cmp.Equal(got.buckets, []string{"switchboard-eventsbucket"}) {
		t.Errorf("buckets = %v", got.buckets)
	}
	wantStreams := []stream{{
		name: "switchboard-EventsStream", bucket: "switchboard-eventsbucket", compression: "GZIP", sizeMB: 64, seconds: 60,
		prefix:      "events/dt=!{timestamp:yyyy-MM-dd}/hour=!{timestamp:HH}/",
		errorPrefix: "errors/!{firehose:error-output-type}/dt=!{timestamp:yyyy-MM-dd}/",
	}}
	if diff := cmp.Diff(wantStreams, got.streams, cmp.AllowUnexported(stream{})); diff != "" {
		t.Errorf("streams: %s", diff)
	}
	byName := map[string]function{}
	for _, f := range got.functions {
		byName[f.logical] = f
	}
	route, admin := byName["RouteFunction"], byName["AdminFunction"]
	if route.timeout != 900*time.Second || !route.url || route.cors || !admin.url || route.memoryMB < 128 || admin.name != "switchboard-AdminFunction" {
		t.Errorf("functions = %+v", got.functions)
	}
	for name, want := range map[string]string{"SESSION_TABLE": "switchboard-SessionTable", "STATE_TABLE": "switchboard-StateTable", "EVENTS_STREAM": "switchboard-EventsStream"} {
		if route.env[name] != want {
			t.Errorf("route %s = %q, want %q", name, route.env[name], want)
		}
	}
	if admin.env["EVENTS_BUCKET"] != "switchboard-eventsbucket" {
		t.Errorf("admin variables = %v", admin.variables())
	}
	for logical := range packages() {
		if byName[logical].logical == "" {
			t.Errorf("%s has a package, but is not in the template", logical)
		}
	}
}

func TestStackWithParameters(t *testing.T) {
	got := built(t, map[string]string{"EventsBufferSeconds": "300", "Timeout": "30", "CorsAllowOrigins": "https://a.example,https://b.example", "LogLevel": "debug"})
	route := got.functions[0]
	if got.streams[0].seconds != 300 || route.timeout != 30*time.Second || !route.cors || route.env["SWITCHBOARD_LOG_LEVEL"] != "debug" {
		t.Errorf("stream = %+v, route = %+v", got.streams[0], route)
	}
}

func TestStackErrors(t *testing.T) {
	for _, tt := range []struct{ resource, want string }{
		{"Type: AWS::DynamoDB::Table", "no hash key"},
		{"Type: AWS::KinesisFirehose::DeliveryStream", "no bucket"},
		{"Type: AWS::Serverless::Function\n    Properties: {Timeout: long}", "not a number"},
		{"Type: AWS::Serverless::Function\n    Properties: {Environment: {Variables: {A: [1]}}}", "not a text"},
		{"Type: AWS::S3::Bucket\n    Condition: None", "no condition"},
		{"Type: AWS::S3::Bucket\n    Properties: {BucketName: !Ref None}", "no parameter"},
	} {
		s := &scope{template: parsed(t, "Resources:\n  R:\n    "+tt.resource+"\n"), stack: "s"}
		if _, err := s.build(); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "R: ") {
			t.Errorf("build(%s) = %v, want an error of R with %q", tt.resource, err, tt.want)
		}
	}
}

func TestMerge(t *testing.T) {
	globals := map[string]any{"Timeout": 3, "Environment": map[string]any{"Variables": map[string]any{"A": "global", "B": "b"}}, "Architectures": []any{"arm64"}}
	own := map[string]any{"Environment": map[string]any{"Variables": map[string]any{"A": "own"}}, "Architectures": []any{"x86_64"}}
	want := map[string]any{"Timeout": 3, "Environment": map[string]any{"Variables": map[string]any{"A": "own", "B": "b"}}, "Architectures": []any{"x86_64"}}
	if diff := cmp.Diff(want, merge(globals, own)); diff != "" {
		t.Error(diff)
	}
}

func TestCreateTwice(t *testing.T) {
	cloud := emulator.New(emulator.Options{})
	server := httptest.NewServer(cloud)
	defer server.Close()
	defer cloud.Close(context.Background())
	c := newClients(server.URL, "us-east-1", func(string) string { return "" })
	secrets := map[string]string{"ssm:/switchboard/a": "1", "secretsmanager:switchboard/b": "2"}
	for range 2 {
		if err := c.create(t.Context(), built(t, nil), secrets); err != nil {
			t.Fatal(err)
		}
	}
	ttl, err := c.dynamo.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String("switchboard-SessionTable")})
	if err != nil || aws.ToString(ttl.TimeToLiveDescription.AttributeName) != "expires_at" {
		t.Errorf("TTL = %v, %v", ttl, err)
	}
	described, err := c.firehose.DescribeDeliveryStream(t.Context(), &firehose.DescribeDeliveryStreamInput{DeliveryStreamName: aws.String("switchboard-EventsStream")})
	if err != nil || *described.DeliveryStreamDescription.Destinations[0].ExtendedS3DestinationDescription.BufferingHints.IntervalInSeconds != 60 {
		t.Errorf("stream = %v, %v", described, err)
	}
	if calls := cloud.Calls(); calls["SSM.PutParameter"] != 2 || calls["SecretsManager.PutSecretValue"] != 1 || calls["DynamoDB.UpdateTimeToLive"] != 2 {
		t.Errorf("Calls = %v", calls)
	}
	if err := c.create(t.Context(), &stack{streams: []stream{{name: "s", bucket: "b", prefix: "!{timestamp:yyyy}"}}}, nil); err == nil {
		t.Error("create with a prefix that Firehose refuses = nil")
	}
}
