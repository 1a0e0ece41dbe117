//go:build emulator

package athena_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/athena"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"switchboard/internal/athena"
	"switchboard/internal/athena/athenatest"
	"switchboard/internal/audit"
	"switchboard/internal/audit/audittest"
	"switchboard/internal/record"
)

// The suite on an emulator that runs already, ATHENA_ENDPOINT, for example
//
//	BIND_HOST=127.0.0.1 GATEWAY_PORT=4577 ministack &
//	ATHENA_ENDPOINT=http://127.0.0.1:4577 go test -tags emulator ./internal/athena/
//
// MiniStack runs statements in DuckDB, over the objects that are in its S3. It proves the
// questions, their partitions' predicates, quoting, polling and the parsing of results. It
// does not prove, and nothing here can:
//
//   - Trino's grammar and functions: the four that DuckDB lacks are defined in front of
//     each statement (athenatest), everything else has to be understood by both;
//   - the SerDe: DuckDB reads the JSON and guesses its types, so that an object with every
//     field stands in a partition that no question reads (athenatest.Pattern); cut lines fail there;
//   - partition projection: paths are read, predicates are only filters;
//   - limits of scanned bytes, throttling, workgroups, permissions, time and money.
type cloud struct {
	cfg    aws.Config
	athena *sdk.Client
	s3     *s3.Client
	name   string // of the bucket, the database and the workgroup
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	endpoint := os.Getenv("ATHENA_ENDPOINT")
	if endpoint == "" {
		t.Fatal("ATHENA_ENDPOINT is not set: the tag emulator needs one")
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	t.Cleanup(transport.CloseIdleConnections)
	cfg := config(&http.Client{Transport: athenatest.WithFunctions{RoundTripper: transport}})
	cfg.BaseEndpoint, cfg.Region = &endpoint, "us-east-1" // where a bucket needs no location
	c := &cloud{
		cfg: cfg, athena: athena.NewClient(cfg), s3: s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }),
		name: fmt.Sprintf("events%d", time.Now().UnixNano()),
	}
	if _, err := c.s3.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &c.name}); err != nil {
		t.Fatal(err)
	}
	_, err := c.athena.CreateWorkGroup(t.Context(), &sdk.CreateWorkGroupInput{Name: &c.name, Configuration: &types.WorkGroupConfiguration{
		ResultConfiguration: &types.ResultConfiguration{OutputLocation: aws.String("s3://" + c.name + "/athena/")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	c.glue(t, "CreateDatabase", map[string]any{"DatabaseInput": map[string]any{"Name": c.name}})
	c.glue(t, "CreateTable", map[string]any{"DatabaseName": c.name, "TableInput": c.table(t)})
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for pages := s3.NewListObjectsV2Paginator(c.s3, &s3.ListObjectsV2Input{Bucket: &c.name}); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			for _, object := range page.Contents {
				_, _ = c.s3.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &c.name, Key: object.Key})
			}
		}
	})
	return c
}

// glue calls the catalog, which needs no client for two calls.
func (c *cloud) glue(t *testing.T, op string, input map[string]any) {
	t.Helper()
	body, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, *c.cfg.BaseEndpoint, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Amz-Target", "AWSGlue."+op)
	request.Header.Set("Content-Type", "application/x-amz-json-1.1")
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/glue/aws4_request, SignedHeaders=host, Signature=0")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s", op, response.Status, text)
	}
}

// table is template.yaml's, on this bucket.
func (c *cloud) table(t *testing.T) map[string]any {
	t.Helper()
	template, err := os.ReadFile("../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(template), "\n  EventsTable:\n")
	text, _, _ = strings.Cut(text, "\n\n")
	_, list, found := strings.Cut(text, "\n          Columns:")
	if !found {
		t.Fatal("template.yaml has no columns of EventsTable")
	}
	var columns []any
	for _, m := range regexp.MustCompile(`\{Name: (\w+), Type: "?([^}"]+)"?\}`).FindAllStringSubmatch(list, -1) {
		columns = append(columns, map[string]any{"Name": m[1], "Type": m[2]})
	}
	parameters := map[string]any{}
	for _, m := range regexp.MustCompile(`\n          ((?:classification|projection)[\w.]*): "?([^"\n]+)"?`).FindAllStringSubmatch(text, -1) {
		parameters[m[1]] = m[2]
	}
	if len(columns) != reflect.TypeFor[record.Event]().NumField() || len(parameters) < 6 {
		t.Fatalf("template.yaml: EventsTable has %d columns and parameters %v", len(columns), parameters)
	}
	return map[string]any{
		"Name": "routing_events", "TableType": "EXTERNAL_TABLE", "Parameters": parameters,
		"PartitionKeys": []any{map[string]any{"Name": "dt", "Type": "string"}, map[string]any{"Name": "hour", "Type": "string"}},
		"StorageDescriptor": map[string]any{
			"Location": "s3://" + c.name + "/events/", "InputFormat": "org.apache.hadoop.mapred.TextInputFormat",
			"SerdeInfo": map[string]any{"SerializationLibrary": "org.openx.data.jsonserde.JsonSerDe"}, "Columns": columns,
		},
	}
}

// put writes an object as a delivery stream does.
func (c *cloud) put(t *testing.T, name string, events []record.Event) {
	t.Helper()
	var object bytes.Buffer
	zip := gzip.NewWriter(&object)
	for i := range events {
		if err := json.NewEncoder(zip).Encode(&events[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	key := "events/" + name + ".gz"
	if _, err := c.s3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &c.name, Key: &key, Body: bytes.NewReader(object.Bytes())}); err != nil {
		t.Fatal(err)
	}
}

// deliver puts events under the hour of their arrival: up to two minutes after created_at,
// and some in an object that was begun a minute before it.
func (c *cloud) deliver(t *testing.T, events []record.Event) {
	t.Helper()
	byHour := map[string][]record.Event{}
	for i, e := range events {
		arrival := time.UnixMilli(e.CreatedAt).UTC().Add(time.Duration(i%13-3) * 15 * time.Second)
		partition := arrival.Format("dt=2006-01-02/hour=15")
		byHour[partition] = append(byHour[partition], e)
	}
	c.put(t, athenatest.PatternKey, []record.Event{athenatest.Pattern()})
	for partition, list := range byHour {
		half := len(list) / 2
		c.put(t, partition+"/first", list[half:])
		if half > 0 {
			c.put(t, partition+"/second", list[:half])
		}
	}
}

func (c *cloud) reader(t *testing.T) audit.Reader {
	t.Helper()
	r, err := athena.New(c.athena, athena.Options{
		Database: c.name, Workgroup: c.name, Poll: 5 * time.Millisecond,
		// The suite looks at all of its events whole.
		Now:      func() time.Time { return audittest.Start().Add(30 * 24 * time.Hour) },
		Lookback: 60 * 24 * time.Hour, Around: 60 * 24 * time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEmulatorReader(t *testing.T) {
	audittest.Run(t, func(t *testing.T, events []record.Event) audit.Reader {
		c := newCloud(t)
		c.deliver(t, events)
		return c.reader(t)
	})
}
