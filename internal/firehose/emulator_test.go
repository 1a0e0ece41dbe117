//go:build emulator

package firehose_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/firehose"
	"github.com/aws/aws-sdk-go-v2/service/firehose/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"switchboard/internal/firehose"
	"switchboard/internal/record"
	"switchboard/internal/record/recordtest"
)

// cloud is an emulator that runs already, FIREHOSE_ENDPOINT, for example
//
//	BIND_HOST=127.0.0.1 GATEWAY_PORT=4577 ministack &
//	FIREHOSE_ENDPOINT=http://127.0.0.1:4577 go test -tags emulator ./internal/firehose/
//
// It must write a record to S3 before it answers; every test has a bucket and a delivery
// stream of its own there, and deletes them.
type cloud struct {
	firehose *sdk.Client
	s3       *s3.Client
	name     string // of the bucket and of the delivery stream
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	endpoint := os.Getenv("FIREHOSE_ENDPOINT")
	if endpoint == "" {
		t.Fatal("FIREHOSE_ENDPOINT is not set: the tag emulator needs one")
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 32}
	t.Cleanup(transport.CloseIdleConnections)
	cfg := config(transport)
	cfg.BaseEndpoint, cfg.Region = &endpoint, "us-east-1" // where a bucket needs no location
	c := &cloud{
		firehose: firehose.NewClient(cfg),
		s3:       s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }),
		name:     fmt.Sprintf("events-%d", time.Now().UnixNano()),
	}
	if _, err := c.s3.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &c.name}); err != nil {
		t.Fatal(err)
	}
	_, err := c.firehose.CreateDeliveryStream(t.Context(), &sdk.CreateDeliveryStreamInput{
		DeliveryStreamName: &c.name,
		ExtendedS3DestinationConfiguration: &types.ExtendedS3DestinationConfiguration{
			BucketARN: aws.String("arn:aws:s3:::" + c.name),
			RoleARN:   aws.String("arn:aws:iam::000000000000:role/firehose"),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.remove(t) })
	return c
}

func (c *cloud) remove(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	_, err := c.firehose.DeleteDeliveryStream(ctx, &sdk.DeleteDeliveryStreamInput{DeliveryStreamName: &c.name})
	if err != nil {
		t.Errorf("delete the stream: %v", err)
	}
	for pages := s3.NewListObjectsV2Paginator(c.s3, &s3.ListObjectsV2Input{Bucket: &c.name}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var all []s3types.ObjectIdentifier
		for _, object := range page.Contents {
			all = append(all, s3types.ObjectIdentifier{Key: object.Key})
		}
		if len(all) == 0 {
			break
		}
		if _, err := c.s3.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &c.name, Delete: &s3types.Delete{Objects: all}}); err != nil {
			t.Errorf("empty the bucket: %v", err)
		}
	}
	if _, err := c.s3.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &c.name}); err != nil {
		t.Errorf("delete the bucket: %v", err)
	}
}

// events returns what is in the bucket, each event_id once, and how many lines there are.
func (c *cloud) events(t *testing.T) (events []record.Event, lines int) {
	t.Helper()
	seen := map[string]bool{}
	for pages := s3.NewListObjectsV2Paginator(c.s3, &s3.ListObjectsV2Input{Bucket: &c.name}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range page.Contents {
			output, err := c.s3.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &c.name, Key: object.Key})
			if err != nil {
				t.Fatal(err)
			}
			reader := bufio.NewReader(output.Body)
			for {
				line, err := reader.ReadBytes('\n')
				if len(line) == 0 {
					break
				}
				var e record.Event
				if err != nil || json.Unmarshal(line, &e) != nil {
					t.Errorf("%s holds %.200q, want a line of JSON: %v", *object.Key, line, err)
				}
				if lines++; !seen[e.EventID] {
					events = append(events, e)
				}
				seen[e.EventID] = true
			}
			output.Body.Close()
		}
	}
	return events, lines
}

func TestEmulatorRecorder(t *testing.T) {
	recordtest.Run(t, func(t *testing.T) recordtest.Backend {
		c := newCloud(t)
		return recordtest.Backend{
			Recorder: firehose.New(c.firehose, c.name, nil),
			Read: func(t *testing.T) []record.Event {
				events, _ := c.events(t)
				return events
			},
		}
	})
}

func TestEmulatorResend(t *testing.T) {
	c := newCloud(t)
	var records [][]byte
	for n := range 501 {
		data, err := json.Marshal(recordtest.Full(n))
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, data)
	}
	delivered, err := firehose.New(c.firehose, c.name, nil).Resend(t.Context(), records)
	events, lines := c.events(t)
	if err != nil || delivered != 501 || lines != 501 || len(events) != 501 {
		t.Errorf("Resend = %d, %v with %d lines of %d events in S3, want 501", delivered, err, lines, len(events))
	}
}

// The limits are those of the service, not only of the fake here.
func TestEmulatorLimits(t *testing.T) {
	c := newCloud(t)
	put := func(size int) error {
		_, err := c.firehose.PutRecord(t.Context(), &sdk.PutRecordInput{DeliveryStreamName: &c.name, Record: &types.Record{Data: bytes.Repeat([]byte("x"), size)}})
		return err
	}
	if err := put(limit); err != nil {
		t.Errorf("PutRecord of %d bytes: %v", limit, err)
	}
	if err := put(limit + 1); err == nil {
		t.Errorf("PutRecord of %d bytes was taken", limit+1)
	}
}

func TestEmulatorWithoutAStream(t *testing.T) {
	c := newCloud(t)
	event := recordtest.Full(1)
	var none *types.ResourceNotFoundException
	if err := firehose.New(c.firehose, c.name+"-not", nil).Record(t.Context(), &event); !errors.As(err, &none) {
		t.Errorf("Record without a stream = %v, want %T", err, none)
	}
}
