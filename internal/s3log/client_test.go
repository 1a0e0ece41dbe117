package s3log_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	"switchboard/internal/s3log"
)

func TestBucket(t *testing.T) {
	c := newCloud(t)
	testBucket(t, s3log.NewClient(c.env.Config("s3")), "events-bucket")
	if calls := c.Calls(); calls["S3.ListObjects"] != 0 || calls["S3.HeadObject"] != 0 {
		t.Errorf("calls = %v", calls)
	}
}

// testBucket holds S3 to what Bucket promises, in an empty bucket.
func testBucket(t *testing.T, client *s3.Client, name string) {
	bucket := s3log.NewS3(client, name)
	var want []string
	for i := range 25 {
		key := fmt.Sprintf("events/dt=2026-02-28/hour=%02d/a b+c%%é-%d", i/3, i%3)
		want = append(want, key)
		put(t, client, name, key, []byte(key))
	}
	put(t, client, name, "errors/x", nil)
	list := func(prefix, after string, limit int) (keys []string, more bool) {
		t.Helper()
		objects, more, err := bucket.List(t.Context(), prefix, after, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if o.ETag == "" || o.Size != int64(len(o.Key)) {
				t.Errorf("List has %+v", o)
			}
			keys = append(keys, o.Key)
		}
		return keys, more
	}
	var got []string
	for after, more := "", true; more; {
		var page []string
		if page, more = list("events/", after, 7); len(page) == 0 {
			t.Fatal("an empty page")
		}
		got, after = append(got, page...), page[len(page)-1]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("List in pages: %s", diff)
	}
	if keys, more := list("events/dt=2026-02-28/hour=01/", "", 1000); len(keys) != 3 || more {
		t.Errorf("List of an hour = %v, %v", keys, more)
	}
	if keys, _ := list("events/dt=2026-02-28/", "events/dt=2026-02-28/hour=08/", 1000); len(keys) != 1 {
		t.Errorf("List after an hour = %v, want the last", keys)
	}
	if keys, more := list("none/", "", 1000); len(keys) != 0 || more {
		t.Errorf("List of nothing = %v, %v", keys, more)
	}
	body, err := bucket.Get(t.Context(), want[3])
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(body)
	body.Close()
	if err != nil || string(text) != want[3] {
		t.Errorf("Get = %q, %v", text, err)
	}
	if _, err := bucket.Get(t.Context(), "events/none"); !errors.Is(err, s3log.ErrGone) {
		t.Errorf("Get of nothing = %v, want ErrGone", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := bucket.Get(ctx, want[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("Get with an ended context = %v", err)
	}
	nowhere := s3log.NewS3(client, name+"-none")
	if _, _, err := nowhere.List(t.Context(), "events/", "", 10); err == nil || !strings.Contains(err.Error(), "list events/ in "+name+"-none") {
		t.Errorf("List of no bucket = %v, want an error that names it", err)
	}
	if _, err := nowhere.Get(t.Context(), "x"); err == nil || errors.Is(err, s3log.ErrGone) {
		t.Errorf("Get from no bucket = %v, want an error", err)
	}
}

func put(t testing.TB, client *s3.Client, bucket, key string, data []byte) {
	t.Helper()
	if _, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: aws.String(key), Body: bytes.NewReader(data)}); err != nil {
		t.Fatal(err)
	}
}
