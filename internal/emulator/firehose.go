package emulator

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Firehose's limits.
const (
	maxRecord       = 1000 << 10 // bytes of one record, decoded
	maxBatch        = 4 << 20    // bytes of a batch, decoded
	maxBatchRecords = 500
)

// streams is the Firehose stand-in.
type streams struct {
	options Options
	put     func(bucket, key, encoding string, data []byte) error
	mu      *sync.Mutex
	named   map[string]*stream
}

func newStreams(o Options, put func(bucket, key, encoding string, data []byte) error) streams {
	return streams{options: o, put: put, mu: new(sync.Mutex), named: map[string]*stream{}}
}

// CreateStream makes a delivery stream; its bucket may be made later, but before the first
// delivery.
func (c *Cloud) CreateStream(config Stream) error {
	if err := c.streams.create(config); err != nil {
		return fmt.Errorf("emulator: stream %s: %w", config.Name, err)
	}
	return nil
}

func (f *streams) create(config Stream) error {
	config.SizeMB = cmp.Or(config.SizeMB, 5)
	config.Interval = cmp.Or(config.Interval, 5*time.Minute)
	if config.GZIP {
		config.Extension = cmp.Or(config.Extension, ".gz")
	}
	switch {
	case config.Name == "":
		return invalid("DeliveryStreamName is missing")
	case config.Bucket == "":
		return invalid("BucketARN is missing")
	case config.SizeMB < 1 || config.SizeMB > 128:
		return invalid("SizeInMBs is %d, not 1 to 128", config.SizeMB)
	case config.Interval > 15*time.Minute:
		return invalid("IntervalInSeconds is %.0f, not 0 to 900", config.Interval.Seconds())
	}
	if err := checkPrefixes(config.Prefix, config.ErrorPrefix); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.named[config.Name] != nil {
		return apiError{Code: "ResourceInUseException", Message: "Firehose " + config.Name + " under account " + f.options.Account + " already exists."}
	}
	f.named[config.Name] = startStream(f.options, config, f.put)
	return nil
}

func (f *streams) find(name string) (*stream, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.named[name]
	if s == nil {
		return nil, apiError{Code: "ResourceNotFoundException", Message: "Firehose " + name + " under account " + f.options.Account + " not found."}
	}
	return s, nil
}

func (f *streams) all() []*stream {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.named))
}

func (f *streams) flush() error {
	var errs []error
	for _, s := range f.all() {
		errs = append(errs, s.ask(s.flushes))
	}
	return errors.Join(errs...)
}

func (f *streams) close() error {
	var errs []error
	for _, s := range f.all() {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

func (f *streams) serve(w http.ResponseWriter, operation string, body []byte, fails func(i int) bool) {
	switch operation {
	case "CreateDeliveryStream":
		answer(w, body, f.createDeliveryStream)
	case "DescribeDeliveryStream":
		answer(w, body, f.describe)
	case "ListDeliveryStreams":
		answer(w, body, f.list)
	case "DeleteDeliveryStream":
		answer(w, body, f.delete)
	case "PutRecord":
		answer(w, body, f.putRecord)
	case "PutRecordBatch":
		answer(w, body, func(in putRecordBatch) (any, error) { return f.putBatch(in, fails) })
	default:
		writeError(w, apiError{Code: "UnknownOperationException", Message: "not here: Firehose." + operation})
	}
}

type s3Destination struct {
	BucketARN, RoleARN, Prefix, ErrorOutputPrefix, CompressionFormat, FileExtension string
	BufferingHints                                                                  struct{ SizeInMBs, IntervalInSeconds *int }
}

type createDeliveryStream struct {
	DeliveryStreamName, DeliveryStreamType string
	ExtendedS3DestinationConfiguration     *s3Destination
	S3DestinationConfiguration             *s3Destination
}

func (f *streams) createDeliveryStream(in createDeliveryStream) (any, error) {
	to := in.ExtendedS3DestinationConfiguration
	if to == nil {
		to = in.S3DestinationConfiguration
	}
	if to == nil {
		return nil, invalid("only deliveries to S3 are known here")
	}
	config := Stream{
		Name: in.DeliveryStreamName, Bucket: strings.TrimPrefix(to.BucketARN, "arn:aws:s3:::"),
		Prefix: to.Prefix, ErrorPrefix: to.ErrorOutputPrefix, GZIP: to.CompressionFormat == "GZIP", Extension: to.FileExtension,
	}
	if to.CompressionFormat != "" && to.CompressionFormat != "GZIP" && to.CompressionFormat != "UNCOMPRESSED" {
		return nil, invalid("CompressionFormat %s is not known here", to.CompressionFormat)
	}
	if hint := to.BufferingHints.SizeInMBs; hint != nil {
		config.SizeMB = cmp.Or(*hint, -1)
	}
	if hint := to.BufferingHints.IntervalInSeconds; hint != nil {
		config.Interval = cmp.Or(time.Duration(*hint)*time.Second, -1)
	}
	if err := f.create(config); err != nil {
		return nil, err
	}
	return map[string]string{"DeliveryStreamARN": f.arn(config.Name)}, nil
}

func (f *streams) arn(name string) string {
	return fmt.Sprintf("arn:aws:firehose:%s:%s:deliverystream/%s", f.options.Region, f.options.Account, name)
}

type named struct{ DeliveryStreamName string }

func (f *streams) describe(in named) (any, error) {
	s, err := f.find(in.DeliveryStreamName)
	if err != nil {
		return nil, err
	}
	compression := "UNCOMPRESSED"
	if s.GZIP {
		compression = "GZIP"
	}
	return map[string]any{"DeliveryStreamDescription": map[string]any{
		"DeliveryStreamName": s.Name, "DeliveryStreamARN": f.arn(s.Name), "DeliveryStreamStatus": "ACTIVE",
		"DeliveryStreamType": "DirectPut", "VersionId": "1", "HasMoreDestinations": false,
		"Destinations": []any{map[string]any{"DestinationId": "destinationId-000000000001", "ExtendedS3DestinationDescription": map[string]any{
			"BucketARN": "arn:aws:s3:::" + s.Bucket, "Prefix": s.Prefix, "ErrorOutputPrefix": s.ErrorPrefix, "CompressionFormat": compression,
			"BufferingHints": map[string]int{"SizeInMBs": s.SizeMB, "IntervalInSeconds": int(max(0, s.Interval).Seconds())},
			"FileExtension":  s.Extension,
		}}},
	}}, nil
}

func (f *streams) list(struct{}) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return map[string]any{"DeliveryStreamNames": slices.Sorted(maps.Keys(f.named)), "HasMoreDeliveryStreams": false}, nil
}

func (f *streams) delete(in named) (any, error) {
	s, err := f.find(in.DeliveryStreamName)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	delete(f.named, s.Name)
	f.mu.Unlock()
	return struct{}{}, s.close()
}

type firehoseRecord struct{ Data []byte }

type putRecord struct {
	DeliveryStreamName string
	Record             firehoseRecord
}

func (f *streams) putRecord(in putRecord) (any, error) {
	s, err := f.find(in.DeliveryStreamName)
	switch n := len(in.Record.Data); {
	case err != nil:
		return nil, err
	case n > maxRecord:
		return nil, tooLong("record.data", n, maxRecord)
	}
	s.add(in.Record.Data)
	return map[string]any{"RecordId": newUUID(), "Encrypted": false}, nil
}

func tooLong(what string, n, most int) apiError {
	return violation("1 validation error detected: Value of length %d at '%s' failed to satisfy constraint: Member must have length less than or equal to %d", n, what, most)
}

type putRecordBatch struct {
	DeliveryStreamName string
	Records            []firehoseRecord
}

type putResult struct {
	RecordId     string `json:",omitempty"`
	ErrorCode    string `json:",omitempty"`
	ErrorMessage string `json:",omitempty"`
}

// putBatch takes the records that fails does not refuse.
func (f *streams) putBatch(in putRecordBatch, fails func(i int) bool) (any, error) {
	s, err := f.find(in.DeliveryStreamName)
	switch {
	case err != nil:
		return nil, err
	case len(in.Records) == 0:
		return nil, violation("1 validation error detected: Value '[]' at 'records' failed to satisfy constraint: Member must have length greater than or equal to 1")
	case len(in.Records) > maxBatchRecords:
		return nil, tooLong("records", len(in.Records), maxBatchRecords)
	}
	size := 0
	for i, r := range in.Records {
		if len(r.Data) > maxRecord {
			return nil, tooLong(fmt.Sprintf("records.%d.member.data", i+1), len(r.Data), maxRecord)
		}
		size += len(r.Data)
	}
	if size > maxBatch {
		return nil, invalid("Records size exceeds 4 MB limit")
	}
	results := make([]putResult, len(in.Records))
	var taken [][]byte
	failed := 0
	for i, r := range in.Records {
		if fails != nil && fails(i) {
			failed++
			results[i] = putResult{ErrorCode: "ServiceUnavailableException", ErrorMessage: "Slow down."}
			continue
		}
		taken = append(taken, r.Data)
		results[i] = putResult{RecordId: newUUID()}
	}
	if len(taken) > 0 {
		s.add(taken...)
	}
	return map[string]any{"FailedPutCount": failed, "Encrypted": false, "RequestResponses": results}, nil
}
