//go:build emulator

package s3log_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"switchboard/internal/audit"
	"switchboard/internal/audit/audittest"
	"switchboard/internal/awsclient"
	"switchboard/internal/record"
	"switchboard/internal/s3log"
)

// remote is the S3 of an emulator that runs already, S3_ENDPOINT, for example
//
//	BIND_HOST=127.0.0.1 GATEWAY_PORT=4577 ministack &
//	S3_ENDPOINT=http://127.0.0.1:4577 go test -tags emulator ./internal/s3log/
func remote(t *testing.T) (client *s3.Client, bucket string) {
	t.Helper()
	endpoint := os.Getenv("S3_ENDPOINT")
	if endpoint == "" {
		t.Fatal("S3_ENDPOINT is not set: the tag emulator needs one")
	}
	env, err := awsclient.FromEnv(func(name string) string {
		return map[string]string{
			"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_ENDPOINT_URL_S3": endpoint,
		}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	client, bucket = s3log.NewClient(env.Config("s3")), fmt.Sprintf("events-%d", time.Now().UnixNano())
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, client, bucket) })
	return client, bucket
}

func remove(t *testing.T, client *s3.Client, bucket string) {
	ctx := context.WithoutCancel(t.Context())
	for pages := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: &bucket}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		for _, o := range page.Contents {
			if _, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: o.Key}); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &bucket}); err != nil {
		t.Error(err)
	}
}

func TestBucketOfAnEmulator(t *testing.T) {
	client, bucket := remote(t)
	testBucket(t, client, bucket)
}

// TestSuiteOfAnEmulator is the contract over objects as a delivery stream writes them, which
// the emulator's own does not: every other one gzip, every third without newlines, and a cut
// record in front of each.
func TestSuiteOfAnEmulator(t *testing.T) {
	audittest.Run(t, func(t *testing.T, events []record.Event) audit.Reader {
		client, bucket := remote(t)
		now := audittest.Start()
		for number, object := range objects(t, events) {
			put(t, client, bucket, fmt.Sprintf("%s%d", object.prefix, number), object.data)
			if object.at.After(now) {
				now = object.at
			}
		}
		r, err := s3log.Open(t.Context(), s3log.Options{
			Bucket: s3log.NewS3(client, bucket), Source: bucket, Dir: t.TempDir(), Window: windows(events),
			Lookback: 60 * 24 * time.Hour, Now: func() time.Time { return now.Add(time.Hour) },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		return r
	})
}

type object struct {
	prefix string
	data   []byte
	at     time.Time
}

// objects are the events in pieces of at most 50 and of the hour of the first.
func objects(t *testing.T, events []record.Event) (all []object) {
	t.Helper()
	for len(events) > 0 {
		first := time.UnixMilli(events[0].CreatedAt).UTC()
		var text bytes.Buffer
		text.WriteString(`{"event_id":"CUT","created_at":17` + "\n")
		n := 0
		for ; n < min(50, len(events)); n++ {
			at := time.UnixMilli(events[n].CreatedAt).UTC()
			if !at.Truncate(time.Hour).Equal(first.Truncate(time.Hour)) {
				break
			}
			if err := json.NewEncoder(&text).Encode(&events[n]); err != nil {
				t.Fatal(err)
			}
			if len(all)%3 == 0 {
				text.Truncate(text.Len() - 1)
			}
		}
		data := text.Bytes()
		if len(all)%2 == 0 {
			var zipped bytes.Buffer
			w := gzip.NewWriter(&zipped)
			w.Write(data)
			w.Close()
			data = zipped.Bytes()
		}
		all = append(all, object{first.Format("events/dt=2006-01-02/hour=15/"), data, first.Add(time.Hour)})
		events = events[n:]
	}
	return all
}
