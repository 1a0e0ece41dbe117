package emulator

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	"github.com/aws/aws-sdk-go-v2/service/firehose/types"
	"github.com/google/go-cmp/cmp"
)

func createInput(name string) *firehose.CreateDeliveryStreamInput {
	return &firehose.CreateDeliveryStreamInput{
		DeliveryStreamName: aws.String(name), DeliveryStreamType: types.DeliveryStreamTypeDirectPut,
		ExtendedS3DestinationConfiguration: &types.ExtendedS3DestinationConfiguration{
			BucketARN: aws.String("arn:aws:s3:::events"), RoleARN: aws.String("arn:aws:iam::000000000000:role/x"), CompressionFormat: types.CompressionFormatGzip,
			Prefix: aws.String("dt=!{timestamp:yyyy-MM-dd}/"), ErrorOutputPrefix: aws.String("errors/!{firehose:error-output-type}/"),
			BufferingHints: &types.BufferingHints{SizeInMBs: aws.Int32(64), IntervalInSeconds: aws.Int32(60)},
		},
	}
}

func TestStreamThroughTheSDK(t *testing.T) {
	a := newAccount(t, Options{Now: func() time.Time { return time.Date(2026, 2, 28, 23, 59, 58, 0, time.UTC) }})
	mustDo(t, a.CreateBucket("events"))
	created, err := a.firehose.CreateDeliveryStream(t.Context(), createInput("s"))
	if err != nil || *created.DeliveryStreamARN != "arn:aws:firehose:us-east-1:000000000000:deliverystream/s" {
		t.Fatalf("CreateDeliveryStream = %v, %v", created, err)
	}
	if _, err := a.firehose.CreateDeliveryStream(t.Context(), createInput("s")); code(t, err) != "ResourceInUseException" {
		t.Errorf("creating it again = %v, want ResourceInUseException", err)
	}
	described, err := a.firehose.DescribeDeliveryStream(t.Context(), &firehose.DescribeDeliveryStreamInput{DeliveryStreamName: aws.String("s")})
	mustDo(t, err)
	to := described.DeliveryStreamDescription.Destinations[0].ExtendedS3DestinationDescription
	if *to.BufferingHints.IntervalInSeconds != 60 || *to.BufferingHints.SizeInMBs != 64 || to.CompressionFormat != types.CompressionFormatGzip || *to.BucketARN != "arn:aws:s3:::events" {
		t.Errorf("DescribeDeliveryStream = %+v", to)
	}
	list, err := a.firehose.ListDeliveryStreams(t.Context(), &firehose.ListDeliveryStreamsInput{})
	if err != nil || !cmp.Equal(list.DeliveryStreamNames, []string{"s"}) {
		t.Errorf("ListDeliveryStreams = %v, %v", list, err)
	}
	one, err := a.firehose.PutRecord(t.Context(), &firehose.PutRecordInput{DeliveryStreamName: aws.String("s"), Record: &types.Record{Data: []byte("{E1}\n")}})
	if err != nil || aws.ToString(one.RecordId) == "" {
		t.Errorf("PutRecord = %v, %v", one, err)
	}
	a.SetFault(func(_, operation string, _ []byte) Fault {
		return Fault{FailRecords: func(i int) bool { return operation == "PutRecordBatch" && i == 1 }}
	})
	batch, err := a.firehose.PutRecordBatch(t.Context(), batchOf([]byte("{E2}\n"), []byte("{E3}\n"), []byte("{E4}\n")))
	if err != nil || *batch.FailedPutCount != 1 || aws.ToString(batch.RequestResponses[1].ErrorCode) != "ServiceUnavailableException" || batch.RequestResponses[0].ErrorCode != nil || batch.RequestResponses[2].RecordId == nil {
		t.Errorf("PutRecordBatch = %+v, %v, want the second record refused", batch, err)
	}
	mustDo(t, a.FlushStreams())
	lines, err := a.Events("events")
	if want := [][]byte{[]byte("{E1}"), []byte("{E2}"), []byte("{E4}")}; err != nil || !cmp.Equal(lines, want) {
		t.Errorf("Events = %q, %v, want %q", lines, err, want)
	}
	if _, err := a.firehose.DeleteDeliveryStream(t.Context(), &firehose.DeleteDeliveryStreamInput{DeliveryStreamName: aws.String("s")}); err != nil {
		t.Error(err)
	}
	if _, err := a.firehose.PutRecord(t.Context(), &firehose.PutRecordInput{DeliveryStreamName: aws.String("s"), Record: &types.Record{Data: []byte("x")}}); code(t, err) != "ResourceNotFoundException" {
		t.Errorf("PutRecord into no stream = %v, want ResourceNotFoundException", err)
	}
}

func batchOf(records ...[]byte) *firehose.PutRecordBatchInput {
	in := &firehose.PutRecordBatchInput{DeliveryStreamName: aws.String("s")}
	for _, r := range records {
		in.Records = append(in.Records, types.Record{Data: r})
	}
	return in
}

func TestFirehoseLimits(t *testing.T) {
	a := newAccount(t, Options{})
	mustDo(t, a.CreateBucket("events"), a.CreateStream(Stream{Name: "s", Bucket: "events"}))
	sized := func(n int) []byte { return bytes.Repeat([]byte("x"), n) }
	for _, tt := range []struct {
		bytes int
		want  string
	}{{1, ""}, {1024000, ""}, {1024001, "ValidationException"}} {
		_, err := a.firehose.PutRecord(t.Context(), &firehose.PutRecordInput{DeliveryStreamName: aws.String("s"), Record: &types.Record{Data: sized(tt.bytes)}})
		if got := code(t, err); got != tt.want {
			t.Errorf("PutRecord of %d bytes = %q, want %q", tt.bytes, got, tt.want)
		}
	}
	for _, tt := range []struct {
		name           string
		records, bytes int
		want           string
	}{
		{"500 records", 500, 10, ""},
		{"501 records", 501, 10, "ValidationException"},
		{"no record", 0, 0, "ValidationException"},
		{"4 MiB", 8, 512 << 10, ""},
		{"over 4 MiB", 8, 512<<10 + 1, "InvalidArgumentException"},
		{"one record too long", 1, 1024001, "ValidationException"},
	} {
		records := make([][]byte, tt.records)
		for i := range records {
			records[i] = sized(tt.bytes)
		}
		in := batchOf(records...)
		if in.Records == nil {
			in.Records = []types.Record{} // the SDK itself refuses a missing list
		}
		_, err := a.firehose.PutRecordBatch(t.Context(), in)
		if got := code(t, err); got != tt.want {
			t.Errorf("%s: PutRecordBatch = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestCreateStreamRefusals(t *testing.T) {
	a := newAccount(t, Options{})
	for _, tt := range []struct {
		name   string
		change func(*types.ExtendedS3DestinationConfiguration)
	}{
		{"size 0", func(c *types.ExtendedS3DestinationConfiguration) { c.BufferingHints.SizeInMBs = aws.Int32(0) }},
		{"size 129", func(c *types.ExtendedS3DestinationConfiguration) { c.BufferingHints.SizeInMBs = aws.Int32(129) }},
		{"interval 901", func(c *types.ExtendedS3DestinationConfiguration) { c.BufferingHints.IntervalInSeconds = aws.Int32(901) }},
		{"no error prefix", func(c *types.ExtendedS3DestinationConfiguration) { c.ErrorOutputPrefix = nil }},
		{"snappy", func(c *types.ExtendedS3DestinationConfiguration) { c.CompressionFormat = types.CompressionFormatSnappy }},
	} {
		in := createInput("s")
		tt.change(in.ExtendedS3DestinationConfiguration)
		if _, err := a.firehose.CreateDeliveryStream(t.Context(), in); code(t, err) != "InvalidArgumentException" {
			t.Errorf("%s: CreateDeliveryStream = %v, want InvalidArgumentException", tt.name, err)
		}
	}
	for _, s := range []Stream{{}, {Name: "s"}, {Bucket: "b"}, {Name: "s", Bucket: "b", SizeMB: 200}} {
		if err := a.CreateStream(s); err == nil {
			t.Errorf("CreateStream(%+v) = nil, want an error", s)
		}
	}
}

func TestParallelPutsLoseNothing(t *testing.T) {
	a := newAccount(t, Options{})
	mustDo(t, a.CreateBucket("events"), a.CreateStream(Stream{Name: "s", Bucket: "events", Interval: -1, GZIP: true}))
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if _, err := a.firehose.PutRecordBatch(t.Context(), batchOf(fmt.Appendf(nil, "a%d\n", i), fmt.Appendf(nil, "b%d\n", i))); err != nil {
				t.Error(err)
			}
			if i%10 == 0 {
				mustDo(t, a.FlushStreams())
			}
		})
	}
	wg.Wait()
	mustDo(t, a.FlushStreams())
	lines, err := a.Events("events")
	mustDo(t, err)
	seen := map[string]int{}
	for _, line := range lines {
		seen[string(line)]++
	}
	if len(lines) != 100 || len(seen) != 100 {
		t.Errorf("%d lines, %d different ones, want 100", len(lines), len(seen))
	}
}
