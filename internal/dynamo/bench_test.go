package dynamo_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/dynamo"
)

// instant answers at once: what is left is the cost of the SDK and of this package.
//
//	go test -bench . -count 10 ./internal/dynamo | benchstat -
//
// All but some 60 of Lookup's 519 allocations are the SDK's. What can be left out of it is not
// worth leaving out: the CRC of answers is 4 of them, the rules of endpoints 11.
type instant string

func (i instant) RoundTrip(req *http.Request) (*http.Response, error) {
	req.Body.Close()
	return &http.Response{
		StatusCode: http.StatusOK, Status: "OK", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Requestid": {"R"}},
		Body:   io.NopCloser(bytes.NewReader([]byte(i))), ContentLength: int64(len(i)),
	}, nil
}

const storedRow = `{"session_id":{"S":"scoped-0123456789abcdef0123456789abcdef"},"model_name":{"S":"m-big"},` +
	`"provider_identity":{"S":"anthropic-main"},"target_model":{"S":"claude-sonnet-4-5"},"key_id":{"S":"1"},"key_print":{"S":"0123456789abcdef"},` +
	`"api_surface":{"S":"anthropic-messages"},"user_path":{"S":"/team/alpha"},"client_session_id":{"S":"0198c0de-0000-7000-8000-000000000000"},` +
	`"assigned_at":{"N":"1796000000"},"last_used_at":{"N":"1796000000"},"expires_at":{"N":"4000000000"},"total_input_tokens":{"N":"123456"},` +
	`"total_output_tokens":{"N":"12345"},"total_cached_tokens":{"N":"100000"},"total_cost_nano_usd":{"N":"1234567890"},"total_requests":{"N":"42"},` +
	`"switch_count":{"N":"1"},"switch_cost_nano_usd":{"N":"1000000"},"epoch":{"N":"2"},"last_switch_request_id":{"S":"01KB3Z6H9QXW5J8N2R4T6V8Y0A"},` +
	`"is_active":{"BOOL":true},"last_input_tokens":{"N":"4000"},"usage_token":{"B":"AAECAwQFBgc="}}`

var benchRef = affinity.Ref{SessionKey: "scoped-0123456789abcdef0123456789abcdef", Model: "m-big"}

func benchStore(answer string) *dynamo.Store {
	return dynamo.New(dynamo.NewClient(config("http://dynamodb.invalid", instant(answer))), "session_affinity", "switchboard_state", nil)
}

func BenchmarkLookup(b *testing.B) {
	store, now := benchStore(`{"Item":`+storedRow+`}`), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := store.Lookup(b.Context(), benchRef, now); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookupWithRide(b *testing.B) {
	store := benchStore(`{"Responses":{"session_affinity":[` + storedRow + `],"switchboard_state":[{"id":{"S":"document:health"},` +
		`"data":{"B":"AAECAwQFBgc="},"version":{"N":"7"},"writer":{"S":"w"},"expires_at":{"N":"4000000000"}}]},"UnprocessedKeys":{}}`)
	d, now := store.Document("health"), time.Now()
	store.Ride(d, func(time.Time) bool { return true })
	b.ReportAllocs()
	for b.Loop() {
		if _, err := store.Lookup(b.Context(), benchRef, now); err != nil {
			b.Fatal(err)
		}
		if _, _, err := d.Load(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAddUsage(b *testing.B) {
	store, now := benchStore(`{}`), time.Now()
	usage := affinity.Usage{InputTokens: 4000, OutputTokens: 200, CachedTokens: 3900, CostNanoUSD: 1_234_567}
	b.ReportAllocs()
	for b.Loop() {
		if err := store.AddUsage(b.Context(), benchRef, usage, now, idle); err != nil {
			b.Fatal(err)
		}
	}
}
