package emulator

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"
)

func TestS3ThroughTheSDK(t *testing.T) {
	a := newAccount(t, Options{})
	bucket := aws.String("events")
	if _, err := a.s3.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: bucket}); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 7 {
		key := fmt.Sprintf("dt=2026-01-0%d/a b+c/%%25/é.gz", i)
		want = append(want, key)
		if _, err := a.s3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: bucket, Key: &key, Body: strings.NewReader(key)}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	pages := s3.NewListObjectsV2Paginator(a.s3, &s3.ListObjectsV2Input{Bucket: bucket, Prefix: aws.String("dt=2026"), MaxKeys: aws.Int32(3)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		mustDo(t, err)
		for _, object := range page.Contents {
			got = append(got, *object.Key)
			out, err := a.s3.GetObject(t.Context(), &s3.GetObjectInput{Bucket: bucket, Key: object.Key})
			mustDo(t, err)
			data, err := io.ReadAll(out.Body)
			mustDo(t, err)
			if string(data) != *object.Key {
				t.Errorf("GetObject(%s) = %q", *object.Key, data)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listed: %s", diff)
	}
	if keys := mustKeys(t, a.Cloud, "events"); !cmp.Equal(keys, want) {
		t.Errorf("Keys = %v", keys)
	}
	_, err := a.s3.GetObject(t.Context(), &s3.GetObjectInput{Bucket: bucket, Key: aws.String("none")})
	if got := code(t, err); got != "NoSuchKey" {
		t.Errorf("GetObject of nothing = %v", err)
	}
	first := &s3.PutObjectInput{Bucket: bucket, Key: aws.String("once"), Body: strings.NewReader("1"), IfNoneMatch: aws.String("*")}
	if _, err := a.s3.PutObject(t.Context(), first); err != nil {
		t.Error(err)
	}
	first.Body = strings.NewReader("2")
	if _, err := a.s3.PutObject(t.Context(), first); code(t, err) != "PreconditionFailed" {
		t.Errorf("PutObject(If-None-Match) again = %v", err)
	}
	part, err := a.s3.GetObject(t.Context(), &s3.GetObjectInput{Bucket: bucket, Key: &want[0], Range: aws.String("bytes=3-6")})
	mustDo(t, err)
	if data, err := io.ReadAll(part.Body); err != nil || string(data) != "2026" {
		t.Errorf("GetObject(Range) = %q, %v", data, err)
	}
	calls := a.Calls()
	if calls["S3.PutObject"] != 9 || calls["S3.GetObject"] != 9 || calls["S3.ListObjectsV2"] != 3 || calls["S3.CreateBucket"] != 1 {
		t.Errorf("Calls = %v", calls)
	}
}

func TestS3Operation(t *testing.T) {
	for _, tt := range []struct{ method, target, want string }{
		{"GET", "/", "ListBuckets"},
		{"GET", "/b?list-type=2&prefix=x", "ListObjectsV2"},
		{"GET", "/b", "ListObjects"},
		{"GET", "/b/?location", "GetBucketLocation"},
		{"HEAD", "/b", "HeadBucket"},
		{"PUT", "/b", "CreateBucket"},
		{"DELETE", "/b", "DeleteBucket"},
		{"POST", "/b?delete", "DeleteObjects"},
		{"GET", "/b/k/x", "GetObject"},
		{"HEAD", "/b/k", "HeadObject"},
		{"PUT", "/b/k", "PutObject"},
		{"DELETE", "/b/k", "DeleteObject"},
		{"POST", "/b/k?uploads", "CreateMultipartUpload"},
		{"POST", "/b/k?uploadId=1", "CompleteMultipartUpload"},
		{"PUT", "/b/k?x-id=UploadPart&partNumber=1", "UploadPart"},
	} {
		if got := s3Operation(httptest.NewRequest(tt.method, tt.target, http.NoBody)); got != tt.want {
			t.Errorf("s3Operation(%s %s) = %s, want %s", tt.method, tt.target, got, tt.want)
		}
	}
}

func TestBucketErrors(t *testing.T) {
	c := New(Options{})
	mustDo(t, c.CreateBucket("bucket"), c.CreateBucket("bucket"))
	if err := c.CreateBucket("Not A Bucket"); err == nil {
		t.Error("CreateBucket(bad name) = nil")
	}
	if err := c.PutObject("none", "k", nil); err == nil {
		t.Error("PutObject into no bucket = nil")
	}
	if _, err := c.Object("bucket", "none"); err == nil {
		t.Error("Object of nothing = nil")
	}
	if _, err := c.Events("none"); err == nil {
		t.Error("Events of no bucket = nil")
	}
	mustDo(t, c.PutObject("bucket", "x.gz", []byte{0x1f, 0x8b, 0}))
	if _, err := c.Events("bucket"); err == nil {
		t.Error("Events with a broken object = nil")
	}
}

func TestEventsReadsObjectsOfEveryKind(t *testing.T) {
	c := New(Options{})
	mustDo(t, c.CreateBucket("bucket"), c.PutObject("bucket", "1", []byte("{E1}\n{E2}\n\n")), c.PutObject("bucket", "3", []byte("{E3}{E4}\r\n{E5}")))
	got, err := c.Events("bucket")
	if want := [][]byte{[]byte("{E1}"), []byte("{E2}"), []byte("{E3}{E4}\r"), []byte("{E5}")}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("Events = %q, %v, want %q", got, err, want)
	}
}

func TestBrokenRequests(t *testing.T) {
	c := New(Options{})
	for _, tt := range []struct {
		target, body string
		status       int
		want         string
	}{
		{"DynamoDB_20120810.GetItem", "{", 400, "SerializationException"},
		{"DynamoDB_20120810.Nothing", "{}", 400, "UnknownOperationException"},
		{"DynamoDB_20120810.GetItem", `{"TableName":"none","Key":{}}`, 400, "ResourceNotFoundException"},
		{"Firehose_20150804.PutRecord", "[", 400, "SerializationException"},
		{"Firehose_20150804.Nothing", "{}", 400, "UnknownOperationException"},
		{"AmazonSSM.Nothing", "{}", 400, "UnknownOperationException"},
		{"secretsmanager.Nothing", "{}", 400, "UnknownOperationException"},
		{"AmazonAthena.StartQueryExecution", "{}", 400, "UnknownOperationException"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader([]byte(tt.body)))
		r.Header.Set("X-Amz-Target", tt.target)
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s %s = %d %s, want %d %s", tt.target, tt.body, w.Code, w.Body, tt.status, tt.want)
		}
	}
}
