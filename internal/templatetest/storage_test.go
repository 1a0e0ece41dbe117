package templatetest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What internal/dynamo asks of its tables. cfn-lint does not miss a BillingMode, and
// without one a table has a capacity that is paid for and runs out.
func TestTables(t *testing.T) {
	s := deploy(t)
	tables := map[string][]any{
		"SessionTable": {
			map[string]any{"AttributeName": "session_id", "KeyType": "HASH"},
			map[string]any{"AttributeName": "model_name", "KeyType": "RANGE"},
		},
		"StateTable": {map[string]any{"AttributeName": "id", "KeyType": "HASH"}},
	}
	if got := s.all("AWS::DynamoDB::Table"); len(got) != len(tables) {
		t.Errorf("tables %v, want %d", got, len(tables))
	}
	for name, keys := range tables {
		p := s.of(t, "AWS::DynamoDB::Table", name)
		if diff := cmp.Diff(keys, p["KeySchema"]); diff != "" {
			t.Errorf("%s.KeySchema (-want +got):\n%s", name, diff)
		}
		var attributes []any
		for _, key := range keys {
			attributes = append(attributes, map[string]any{"AttributeName": at(key, "AttributeName"), "AttributeType": "S"})
		}
		want := map[string]any{
			"BillingMode":                      "PAY_PER_REQUEST",
			"AttributeDefinitions":             attributes,
			"TimeToLiveSpecification":          map[string]any{"AttributeName": column(t, "colExpires"), "Enabled": true},
			"PointInTimeRecoverySpecification": map[string]any{"PointInTimeRecoveryEnabled": true},
			"TableName":                        nil, // a kept table would stand in the way of the next stack
		}
		for key, value := range want {
			if diff := cmp.Diff(value, p[key]); diff != "" {
				t.Errorf("%s.%s (-want +got):\n%s", name, key, diff)
			}
		}
	}
	for i, name := range []string{"colSession", "colModel"} {
		if got := at(tables["SessionTable"][i], "AttributeName"); got != column(t, name) {
			t.Errorf("internal/dynamo: %s is %s, in the template it is %v", name, column(t, name), got)
		}
	}
}

// column is the name of a column that internal/dynamo uses.
func column(t *testing.T, constant string) string {
	t.Helper()
	found := regexp.MustCompile(constant + `\s+= "([^"]+)"`).FindStringSubmatch(read(t, "internal/dynamo/item.go"))
	if found == nil {
		t.Fatalf("internal/dynamo/item.go has no constant %s any more", constant)
	}
	return found[1]
}

// Deleting the stack must not take data with it; a first deployment that fails must not
// leave any.
func TestDataOutlivesTheStack(t *testing.T) {
	s := deploy(t)
	for _, name := range slices.Concat(s.all("AWS::DynamoDB::Table"), s.all("AWS::S3::Bucket")) {
		attributes := s.resources[name].attributes
		if got := attributes["DeletionPolicy"]; got != "RetainExceptOnCreate" {
			t.Errorf("%s.DeletionPolicy = %v, want RetainExceptOnCreate", name, got)
		}
		if got := attributes["UpdateReplacePolicy"]; got != "Retain" {
			t.Errorf("%s.UpdateReplacePolicy = %v, want Retain", name, got)
		}
	}
}

func TestBucketIsPrivate(t *testing.T) {
	s := deploy(t, "EventsRetentionDays=33")
	if got := s.all("AWS::S3::Bucket"); len(got) != 1 {
		t.Fatalf("buckets %v, want one", got)
	}
	p := s.of(t, "AWS::S3::Bucket", "EventsBucket")
	for _, key := range []string{"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"} {
		if at(p, "PublicAccessBlockConfiguration", key) != true {
			t.Errorf("EventsBucket: %s is not true", key)
		}
	}
	if got := at(p, "BucketEncryption", "ServerSideEncryptionConfiguration", "0", "ServerSideEncryptionByDefault", "SSEAlgorithm"); got != "AES256" {
		t.Errorf("EventsBucket is encrypted by %v", got)
	}
	if got := at(p, "OwnershipControls", "Rules", "0", "ObjectOwnership"); got != "BucketOwnerEnforced" {
		t.Errorf("EventsBucket: ObjectOwnership %v", got)
	}
	expiries := map[string]string{}
	for _, rule := range p["LifecycleConfiguration"].(map[string]any)["Rules"].([]any) {
		if at(rule, "Status") != "Enabled" {
			t.Errorf("lifecycle rule %v is off", rule)
		}
		if days := at(rule, "ExpirationInDays"); days != nil {
			expiries[fmt.Sprint(at(rule, "Prefix"))] = fmt.Sprint(days)
		}
	}
	if diff := cmp.Diff(map[string]string{"events/": "33", "errors/": "33", "athena/": "7"}, expiries); diff != "" {
		t.Errorf("lifecycle (-want +got):\n%s", diff)
	}
	policy := s.of(t, "AWS::S3::BucketPolicy", "EventsBucketPolicy")
	want := map[string]any{
		"Sid": "OnlyTLS", "Effect": "Deny", "Principal": "*", "Action": "s3:*",
		"Resource":  []any{"${EventsBucket.Arn}", "${EventsBucket.Arn}/*"},
		"Condition": map[string]any{"Bool": map[string]any{"aws:SecureTransport": "false"}},
	}
	if diff := cmp.Diff([]any{want}, at(policy, "PolicyDocument", "Statement")); diff != "" || policy["Bucket"] != "${EventsBucket}" {
		t.Errorf("EventsBucketPolicy on %v (-want +got):\n%s", policy["Bucket"], diff)
	}
}

// What cfn-lint misses: a prefix with expressions needs an error prefix, dynamic
// partitioning needs a buffer of 64 MB, and a zone other than UTC would put events where
// no reader looks.
func TestDeliveryStream(t *testing.T) {
	s := deploy(t)
	if got := s.all("AWS::KinesisFirehose::DeliveryStream"); len(got) != 1 {
		t.Fatalf("delivery streams %v, want one", got)
	}
	p := s.of(t, "AWS::KinesisFirehose::DeliveryStream", "EventsStream")
	if got := p["DeliveryStreamType"]; got != "DirectPut" {
		t.Errorf("DeliveryStreamType = %v", got)
	}
	to := object(t, p["ExtendedS3DestinationConfiguration"], "ExtendedS3DestinationConfiguration")
	for key, want := range map[string]any{
		"BucketARN":         "${EventsBucket.Arn}",
		"RoleARN":           "${EventsStreamRole.Arn}",
		"Prefix":            "events/dt=!{timestamp:yyyy-MM-dd}/hour=!{timestamp:HH}/",
		"CompressionFormat": "GZIP",
		"CustomTimeZone":    "UTC",
		// Each record ends in a newline already, and a record may not be changed on its way.
		"ProcessingConfiguration": nil,
		"CloudWatchLoggingOptions": map[string]any{
			"Enabled": true, "LogGroupName": "${EventsStreamLogs}", "LogStreamName": "${EventsStreamLogStream}",
		},
	} {
		if diff := cmp.Diff(want, to[key]); diff != "" {
			t.Errorf("EventsStream.%s (-want +got):\n%s", key, diff)
		}
	}
	errors := fmt.Sprint(to["ErrorOutputPrefix"])
	if !strings.HasPrefix(errors, "errors/") || !strings.Contains(errors, "!{firehose:error-output-type}") || !strings.HasSuffix(errors, "/") {
		t.Errorf("ErrorOutputPrefix = %s: it must not be below events/, and needs the type of the error", errors)
	}
	seconds, size := number(t, at(to, "BufferingHints", "IntervalInSeconds")), number(t, at(to, "BufferingHints", "SizeInMBs"))
	if seconds != 60 || size < 1 || size > 128 {
		t.Errorf("EventsStream buffers %d s and %d MB, want 60 s and 1 to 128 MB", seconds, size)
	}
	if at(to, "DynamicPartitioningConfiguration", "Enabled") == true && size < 64 {
		t.Errorf("dynamic partitioning needs a buffer of 64 MB, not %d", size)
	}
}
