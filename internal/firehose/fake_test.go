package firehose_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"switchboard/internal/firehose"
	"switchboard/internal/record"
)

const streamName = "events"

// fake is Firehose's two operations as its API reference describes them, with its limits.
type fake struct {
	// react, when not nil, says what is to happen to a call, counted from 1.
	react func(call int, records [][]byte) reaction

	mu      sync.Mutex
	calls   []call
	records [][]byte
}

type call struct {
	action  string
	records [][]byte
}

// reaction is what the fake does other than to take all records at once.
type reaction struct {
	after   time.Duration
	status  int    // with code, and nothing is taken
	code    string // the error's
	text    string // the whole answer instead
	dropped bool   // the connection ends without an answer
	applied bool   // the records are taken nevertheless
	refuse  func(i int) bool
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var input struct {
		DeliveryStreamName string
		Record             struct{ Data []byte }
		Records            []struct{ Data []byte }
	}
	if err := json.NewDecoder(r.Body).Decode(&input); err != nil || input.DeliveryStreamName != streamName {
		answerError(w, http.StatusBadRequest, "SerializationException")
		return
	}
	action := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "Firehose_20150804.")
	records := [][]byte{input.Record.Data}
	if action == "PutRecordBatch" {
		records = nil
		for _, one := range input.Records {
			records = append(records, one.Data)
		}
	}
	if fault := overLimit(records); fault != "" {
		answerError(w, http.StatusBadRequest, fault)
		return
	}
	f.mu.Lock()
	f.calls = append(f.calls, call{action, records})
	n := len(f.calls)
	f.mu.Unlock()
	var does reaction
	if f.react != nil {
		does = f.react(n, records)
	}
	if does.after > 0 {
		timer := time.NewTimer(does.after)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
	}
	if does.applied || does.status == 0 && !does.dropped && does.refuse == nil {
		f.take(records, nil)
	}
	switch {
	case does.dropped:
		panic(http.ErrAbortHandler)
	case does.text != "":
		w.WriteHeader(does.status)
		io.WriteString(w, does.text)
	case does.status != 0:
		answerError(w, does.status, does.code)
	case action == "PutRecord":
		fmt.Fprintf(w, `{"RecordId":"id-%d","Encrypted":false}`, n)
	default:
		f.answerBatch(w, records, does.refuse)
	}
}

func (f *fake) answerBatch(w io.Writer, records [][]byte, refuse func(int) bool) {
	if refuse != nil {
		f.take(records, refuse)
	}
	failed := 0
	var responses []map[string]string
	for i := range records {
		if refuse != nil && refuse(i) {
			failed++
			responses = append(responses, map[string]string{"ErrorCode": "ServiceUnavailableException", "ErrorMessage": "Slow down."})
		} else {
			responses = append(responses, map[string]string{"RecordId": fmt.Sprint("id-", i)})
		}
	}
	json.NewEncoder(w).Encode(map[string]any{"FailedPutCount": failed, "Encrypted": false, "RequestResponses": responses})
}

func (f *fake) take(records [][]byte, refuse func(int) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, one := range records {
		if refuse == nil || !refuse(i) {
			f.records = append(f.records, bytes.Clone(one))
		}
	}
}

func overLimit(records [][]byte) string {
	total := 0
	for _, one := range records {
		if total += len(one); len(one) > 1_024_000 || len(one) == 0 {
			return "ValidationException"
		}
	}
	if len(records) == 0 || len(records) > 500 || total > 4<<20 {
		return "InvalidArgumentException"
	}
	return ""
}

func answerError(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"__type":"com.amazonaws.firehose#%s","message":"no"}`, code)
}

// events returns what the delivery stream holds as a reader sees it, each event_id once.
func (f *fake) events(t *testing.T) (events []record.Event) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := map[string]bool{}
	for _, data := range f.records {
		if bytes.Count(data, []byte("\n")) != 1 || !bytes.HasSuffix(data, []byte("}\n")) {
			t.Errorf("record %.200q, want one line", data)
		}
		var e record.Event
		if err := json.Unmarshal(data, &e); err != nil {
			t.Errorf("record %.200q: %v", data, err)
		}
		if !seen[e.EventID] {
			events = append(events, e)
		}
		seen[e.EventID] = true
	}
	return events
}

// inProcess calls the handler without a network, so that a test can hold the clock.
type inProcess struct{ handler http.Handler }

func (t inProcess) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case error: // http.ErrAbortHandler
			answer, err = nil, errors.Join(cause, io.ErrUnexpectedEOF)
		default:
			panic(cause)
		}
	}()
	w := httptest.NewRecorder()
	t.handler.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

func keys() aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "not-a-secret"}, nil
	})
}

// config is that of an account in which others have asked for many retries.
func config(transport http.RoundTripper) aws.Config {
	return aws.Config{Region: "eu-west-1", Credentials: keys(), HTTPClient: &http.Client{Transport: transport}, RetryMaxAttempts: 7}
}

func overTransport(transport http.RoundTripper) *firehose.Recorder {
	return firehose.New(firehose.NewClient(config(transport)), streamName, nil)
}

// overNetwork returns a recorder that calls the handler over a socket.
func overNetwork(t *testing.T, handler http.Handler) (*firehose.Recorder, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	cfg := config(transport)
	cfg.BaseEndpoint = &server.URL
	return firehose.New(firehose.NewClient(cfg), streamName, nil), server
}
