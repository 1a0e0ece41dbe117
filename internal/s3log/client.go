package s3log

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// NewClient makes a client of S3. Where an endpoint is set, buckets are named in paths: an
// emulator has no names of hosts for them.
func NewClient(cfg aws.Config) *s3.Client {
	return s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = cfg.BaseEndpoint != nil
		// Firehose writes none that could be checked for whole objects, and gzip has its own.
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.DisableLogOutputChecksumValidationSkipped = true
	})
}

// S3 is a bucket of Amazon S3.
type S3 struct {
	client *s3.Client
	name   string
}

var _ Bucket = (*S3)(nil)

// NewS3 is the bucket called name.
func NewS3(client *s3.Client, name string) *S3 { return &S3{client, name} }

// List implements Bucket by ListObjectsV2.
func (b *S3) List(ctx context.Context, prefix, after string, limit int) ([]Object, bool, error) {
	in := &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &prefix, MaxKeys: aws.Int32(int32(limit))}
	if after != "" {
		in.StartAfter = &after
	}
	out, err := b.client.ListObjectsV2(ctx, in)
	if err != nil {
		return nil, false, fmt.Errorf("s3log: list %s in %s: %w", prefix, b.name, err)
	}
	objects := make([]Object, len(out.Contents))
	for i := range out.Contents {
		o := &out.Contents[i]
		objects[i] = Object{Key: aws.ToString(o.Key), ETag: aws.ToString(o.ETag), Size: aws.ToInt64(o.Size)}
	}
	return objects, aws.ToBool(out.IsTruncated), nil
}

// Get implements Bucket by GetObject.
func (b *S3) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	out, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &key})
	var gone *types.NoSuchKey
	switch {
	case errors.As(err, &gone):
		return nil, fmt.Errorf("%w: %s", ErrGone, key)
	case err != nil:
		return nil, fmt.Errorf("s3log: get %s from %s: %w", key, b.name, err)
	}
	return out.Body, nil
}
