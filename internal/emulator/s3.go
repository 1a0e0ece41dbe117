package emulator

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/johannesboyne/gofakes3"
)

// s3Clock gives gofakes3 our clock.
type s3Clock struct{ now func() time.Time }

func (c s3Clock) Now() time.Time                  { return c.now() }
func (c s3Clock) Since(t time.Time) time.Duration { return c.now().Sub(t) }

// s3Operation names what a request to S3 asks for. The SDKs say it in a query parameter for
// most operations; for the rest method and path tell.
func s3Operation(r *http.Request) string {
	query := r.URL.Query()
	if id := query.Get("x-id"); id != "" {
		return id
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case bucket == "":
		return "ListBuckets"
	case key != "" && r.Method == http.MethodPost && query.Has("uploads"):
		return "CreateMultipartUpload"
	case key != "" && r.Method == http.MethodPost:
		return "CompleteMultipartUpload"
	case key != "":
		return verb(r.Method) + "Object"
	case r.Method == http.MethodPost && query.Has("delete"):
		return "DeleteObjects"
	case r.Method == http.MethodGet && query.Get("list-type") == "2":
		return "ListObjectsV2"
	case r.Method == http.MethodGet && query.Has("location"):
		return "GetBucketLocation"
	case r.Method == http.MethodGet:
		return "ListObjects"
	case r.Method == http.MethodPut:
		return "CreateBucket"
	}
	return verb(r.Method) + "Bucket"
}

func verb(method string) string {
	if method == "" {
		return ""
	}
	return method[:1] + strings.ToLower(method[1:])
}

// CreateBucket makes a bucket; one that exists is fine.
func (c *Cloud) CreateBucket(name string) error {
	if exists, err := c.objects.BucketExists(name); err != nil || exists {
		return err
	}
	if err := gofakes3.ValidateBucketName(name); err != nil {
		return fmt.Errorf("emulator: bucket %q: %w", name, err)
	}
	if err := c.objects.CreateBucket(name); err != nil && !gofakes3.HasErrorCode(err, gofakes3.ErrBucketAlreadyExists) {
		return fmt.Errorf("emulator: bucket %q: %w", name, err)
	}
	return nil
}

// PutObject stores an object.
func (c *Cloud) PutObject(bucket, key string, data []byte) error {
	return c.putObject(bucket, key, "", data)
}

// putObject fails with errNoBucket where there is no such bucket.
func (c *Cloud) putObject(bucket, key, encoding string, data []byte) error {
	meta := map[string]string{"Last-Modified": c.options.Now().UTC().Format(http.TimeFormat)}
	if encoding != "" {
		meta["Content-Encoding"] = encoding
	}
	_, err := c.objects.PutObject(bucket, key, meta, bytes.NewReader(data), int64(len(data)), nil)
	if gofakes3.HasErrorCode(err, gofakes3.ErrNoSuchBucket) {
		return fmt.Errorf("%w: %s", errNoBucket, bucket)
	}
	if err != nil {
		return fmt.Errorf("emulator: put %s/%s: %w", bucket, key, err)
	}
	return nil
}

// Object reads an object as it is stored.
func (c *Cloud) Object(bucket, key string) ([]byte, error) {
	object, err := c.objects.GetObject(bucket, key, nil)
	if err != nil {
		return nil, fmt.Errorf("emulator: get %s/%s: %w", bucket, key, err)
	}
	defer object.Contents.Close()
	data, err := io.ReadAll(object.Contents)
	if err != nil {
		return nil, fmt.Errorf("emulator: get %s/%s: %w", bucket, key, err)
	}
	return data, nil
}

// Keys lists a bucket's objects, sorted.
func (c *Cloud) Keys(bucket string) ([]string, error) {
	list, err := c.objects.ListBucket(bucket, nil, gofakes3.ListBucketPage{})
	if err != nil {
		return nil, fmt.Errorf("emulator: list %s: %w", bucket, err)
	}
	keys := make([]string, 0, len(list.Contents))
	for _, object := range list.Contents {
		keys = append(keys, object.Key)
	}
	return keys, nil
}

// Events reads a bucket as a reader of delivered events must: every object, unzipped where
// it is gzip, cut into lines at "\n" and nowhere else; empty lines are left out. What still
// lies in a stream's buffer is not in it: FlushStreams first.
func (c *Cloud) Events(bucket string) ([][]byte, error) {
	keys, err := c.Keys(bucket)
	if err != nil {
		return nil, err
	}
	var lines [][]byte
	for _, key := range keys {
		data, err := c.Object(bucket, key)
		if err != nil {
			return nil, err
		}
		if data, err = unzip(data); err != nil {
			return nil, fmt.Errorf("emulator: %s/%s: %w", bucket, key, err)
		}
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			if len(line) > 0 {
				lines = append(lines, line)
			}
		}
	}
	return lines, nil
}

func unzip(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
