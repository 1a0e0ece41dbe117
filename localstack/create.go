package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	firehosetypes "github.com/aws/aws-sdk-go-v2/service/firehose/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

// clients make resources at an endpoint, ours or another.
type clients struct {
	config   aws.Config
	dynamo   *dynamodb.Client
	firehose *firehose.Client
	s3       *s3.Client
}

func newClients(endpoint, region string, getenv func(string) string) *clients {
	config := aws.Config{
		Region: region, BaseEndpoint: aws.String(endpoint),
		Credentials: credentials.NewStaticCredentialsProvider(
			or(getenv("AWS_ACCESS_KEY_ID"), "test"), or(getenv("AWS_SECRET_ACCESS_KEY"), "test"), getenv("AWS_SESSION_TOKEN")),
	}
	return &clients{
		config: config, dynamo: dynamodb.NewFromConfig(config), firehose: firehose.NewFromConfig(config),
		s3: s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = true }),
	}
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// create makes everything; what exists is left as it is.
func (c *clients) create(ctx context.Context, s *stack, secrets map[string]string) error {
	for _, t := range s.tables {
		if err := c.table(ctx, t); err != nil {
			return fmt.Errorf("table %s: %w", t.name, err)
		}
	}
	for _, name := range s.buckets {
		_, err := c.s3.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name})
		if err := unlessThere(err); err != nil {
			return fmt.Errorf("bucket %s: %w", name, err)
		}
	}
	for _, one := range s.streams {
		_, err := c.firehose.CreateDeliveryStream(ctx, one.input())
		if err := unlessThere(err); err != nil {
			return fmt.Errorf("delivery stream %s: %w", one.name, err)
		}
	}
	for reference, text := range secrets {
		if err := c.secret(ctx, reference, text); err != nil {
			return fmt.Errorf("secret %s: %w", reference, err)
		}
	}
	return nil
}

func (c *clients) table(ctx context.Context, t table) error {
	in := &dynamodb.CreateTableInput{TableName: &t.name, BillingMode: dynamodbtypes.BillingModePayPerRequest}
	for _, key := range []struct {
		name string
		kind dynamodbtypes.KeyType
	}{{t.hash, dynamodbtypes.KeyTypeHash}, {t.rng, dynamodbtypes.KeyTypeRange}} {
		if key.name == "" {
			continue
		}
		in.KeySchema = append(in.KeySchema, dynamodbtypes.KeySchemaElement{AttributeName: aws.String(key.name), KeyType: key.kind})
		in.AttributeDefinitions = append(in.AttributeDefinitions, dynamodbtypes.AttributeDefinition{
			AttributeName: aws.String(key.name), AttributeType: dynamodbtypes.ScalarAttributeType(t.attributes[key.name]),
		})
	}
	_, err := c.dynamo.CreateTable(ctx, in)
	if err := unlessThere(err); err != nil || t.ttl == "" {
		return err
	}
	ttl, err := c.dynamo.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &t.name})
	if err == nil && aws.ToString(ttl.TimeToLiveDescription.AttributeName) == t.ttl {
		return nil // to set it twice is an error
	}
	_, err = c.dynamo.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &t.name,
		TimeToLiveSpecification: &dynamodbtypes.TimeToLiveSpecification{AttributeName: &t.ttl, Enabled: aws.Bool(true)},
	})
	return err
}

func (s stream) input() *firehose.CreateDeliveryStreamInput {
	to := &firehosetypes.ExtendedS3DestinationConfiguration{
		BucketARN: aws.String("arn:aws:s3:::" + s.bucket), RoleARN: aws.String("arn:aws:iam::" + account + ":role/" + s.name),
		CompressionFormat: firehosetypes.CompressionFormat(s.compression), BufferingHints: &firehosetypes.BufferingHints{},
	}
	if s.prefix != "" {
		to.Prefix = &s.prefix
	}
	if s.errorPrefix != "" {
		to.ErrorOutputPrefix = &s.errorPrefix
	}
	if s.sizeMB > 0 {
		to.BufferingHints.SizeInMBs = aws.Int32(int32(s.sizeMB)) //nolint:gosec // at most 128
	}
	if s.seconds > 0 {
		to.BufferingHints.IntervalInSeconds = aws.Int32(int32(s.seconds)) //nolint:gosec // at most 900
	}
	return &firehose.CreateDeliveryStreamInput{
		DeliveryStreamName: &s.name, DeliveryStreamType: firehosetypes.DeliveryStreamTypeDirectPut, ExtendedS3DestinationConfiguration: to,
	}
}

// unlessThere forgives that something exists already.
func unlessThere(err error) error {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return err
	}
	code := api.ErrorCode()
	if strings.HasPrefix(code, "ResourceInUse") || code == "BucketAlreadyOwnedByYou" || code == "BucketAlreadyExists" {
		return nil
	}
	return err
}
