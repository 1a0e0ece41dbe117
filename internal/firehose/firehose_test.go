package firehose_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	gocmp "github.com/google/go-cmp/cmp"

	"switchboard/internal/firehose"
	"switchboard/internal/record"
	"switchboard/internal/record/recordtest"
)

func TestRecorder(t *testing.T) {
	recordtest.Run(t, func(t *testing.T) recordtest.Backend {
		var f fake
		recorder, _ := overNetwork(t, &f)
		return recordtest.Backend{Recorder: recorder, Read: f.events}
	})
}

// TestSAUD01AnswersLost: each event's first answer is lost after the record was taken. The
// second record is a duplicate that readers know by its event_id.
func TestSAUD01AnswersLost(t *testing.T) {
	recordtest.Run(t, func(t *testing.T) recordtest.Backend {
		var seen sync.Map
		f := fake{react: func(_ int, records [][]byte) reaction {
			_, again := seen.LoadOrStore(string(records[0]), true)
			return reaction{dropped: !again, applied: !again}
		}}
		recorder, _ := overNetwork(t, &f)
		return recordtest.Backend{Recorder: recorder, Read: f.events}
	})
}

// always reacts to every call, once to the first alone.
func always(does reaction) func(int, [][]byte) reaction {
	return func(int, [][]byte) reaction { return does }
}

func once(does reaction) func(int, [][]byte) reaction {
	return func(call int, _ [][]byte) reaction {
		if call == 1 {
			return does
		}
		return reaction{}
	}
}

// TestSLAM05PutsThatFail holds the clock: Record ends within its time whatever Firehose
// does, tells what it could not deliver, and calls again only where that may help.
func TestSLAM05PutsThatFail(t *testing.T) {
	const ms = time.Millisecond
	busy := reaction{status: 503, code: "ServiceUnavailableException"}
	for _, tt := range []struct {
		name      string
		react     func(int, [][]byte) reaction
		budget    time.Duration // 0: 5 s
		calls     int
		delivered int // records in the stream, duplicates too
		err       bool
		took      [2]time.Duration
	}{
		{"nothing", nil, 0, 1, 1, false, [2]time.Duration{0, 0}},
		{"throttled once", once(busy), 0, 2, 1, false, [2]time.Duration{50 * ms, 100 * ms}},
		{"throttled", always(busy), 0, 2, 0, true, [2]time.Duration{50 * ms, 100 * ms}},
		{"throttled by the front", once(reaction{status: 400, code: "ThrottlingException"}), 0, 2, 1, false, [2]time.Duration{50 * ms, 100 * ms}},
		{"429", once(reaction{status: 429, text: "slow"}), 0, 2, 1, false, [2]time.Duration{50 * ms, 100 * ms}},
		{"an error of its own", once(reaction{status: 500, code: "InternalFailure"}), 0, 2, 1, false, [2]time.Duration{50 * ms, 100 * ms}},
		{"a page of HTML", once(reaction{status: 502, text: "<html>Bad Gateway</html>"}), 0, 2, 1, false, [2]time.Duration{50 * ms, 100 * ms}},
		{"a success that is none", once(reaction{status: 200, text: "{}"}), 0, 2, 1, false, [2]time.Duration{50 * ms, 100 * ms}},
		{"an answer cut short", once(reaction{status: 200, text: `{"RecordId":`, applied: true}), 0, 2, 2, false, [2]time.Duration{0, 0}},
		{"cut off", once(reaction{dropped: true}), 0, 2, 1, false, [2]time.Duration{0, 0}},
		{"cut off when done", once(reaction{dropped: true, applied: true}), 0, 2, 2, false, [2]time.Duration{0, 0}},
		{"cut off again", always(reaction{dropped: true}), 0, 2, 0, true, [2]time.Duration{0, 0}},
		{"signed before a freeze", once(reaction{status: 400, code: "InvalidSignatureException"}), 0, 2, 1, false, [2]time.Duration{0, 0}},
		{"signature wrong", always(reaction{status: 400, code: "InvalidSignatureException"}), 0, 2, 0, true, [2]time.Duration{0, 0}},
		{"no stream", always(reaction{status: 400, code: "ResourceNotFoundException"}), 0, 1, 0, true, [2]time.Duration{0, 0}},
		{"not allowed", always(reaction{status: 400, code: "AccessDeniedException"}), 0, 1, 0, true, [2]time.Duration{0, 0}},
		{"not valid", always(reaction{status: 400, code: "InvalidArgumentException"}), 0, 1, 0, true, [2]time.Duration{0, 0}},
		{"credentials too old", always(reaction{status: 400, code: "ExpiredTokenException"}), 0, 1, 0, true, [2]time.Duration{0, 0}},
		{"no key", always(reaction{status: 400, code: "InvalidKMSResourceException"}), 0, 1, 0, true, [2]time.Duration{0, 0}},
		{"1 s", always(reaction{after: time.Second}), 0, 1, 1, false, [2]time.Duration{time.Second, time.Second}},
		{"3 s once", once(reaction{after: 3 * time.Second}), 0, 2, 2, false, [2]time.Duration{1500 * ms, 1500 * ms}},
		{"3 s", always(reaction{after: 3 * time.Second}), 0, 2, 2, true, [2]time.Duration{3 * time.Second, 3 * time.Second}},
		{"never", always(reaction{after: time.Hour}), 0, 2, 2, true, [2]time.Duration{3 * time.Second, 3 * time.Second}},
		{"never, little time", always(reaction{after: time.Hour}), time.Second, 2, 2, true, [2]time.Duration{time.Second, time.Second}},
		{"once, little time", once(reaction{after: time.Hour}), time.Second, 2, 2, false, [2]time.Duration{500 * ms, 500 * ms}},
		{"throttled, no time", always(busy), 40 * ms, 1, 0, true, [2]time.Duration{0, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fake{react: tt.react}
				recorder := overTransport(inProcess{&f})
				ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(tt.budget, 5*time.Second))
				defer cancel()
				event, began := recordtest.Full(1), time.Now()
				err := recorder.Record(ctx, &event)
				took := time.Since(began)
				if (err != nil) != tt.err || len(f.calls) != tt.calls || len(f.records) != tt.delivered {
					t.Errorf("Record: %v after %d calls with %d delivered, want error %t, %d, %d", err, len(f.calls), len(f.records), tt.err, tt.calls, tt.delivered)
				}
				if took < tt.took[0] || took > tt.took[1] {
					t.Errorf("Record took %v, want %v to %v", took, tt.took[0], tt.took[1])
				}
				if tt.delivered > 0 && !gocmp.Equal(f.events(t), []record.Event{event}) {
					t.Errorf("delivered %+v, want the event with one event_id", f.events(t))
				}
			})
		})
	}
}

func TestRecordOfACallerWhoGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fake{react: always(reaction{after: time.Hour})}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		event := recordtest.Full(1)
		if err := overTransport(inProcess{&f}).Record(ctx, &event); !errors.Is(err, context.Canceled) || len(f.calls) != 1 {
			t.Errorf("Record = %v after %d calls, want %v after 1", err, len(f.calls), context.Canceled)
		}
	})
}

// An error says which event and what AWS said, so that the log explains itself.
func TestRecordErrorSaysWhat(t *testing.T) {
	f := fake{react: always(reaction{status: 400, code: "AccessDeniedException"})}
	event := recordtest.Full(1)
	err := overTransport(inProcess{&f}).Record(t.Context(), &event)
	for _, part := range []string{"firehose: record " + event.EventID, "AccessDeniedException"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("Record error = %v, want %q in it", err, part)
		}
	}
	none := firehose.New(firehose.NewClient(aws.Config{
		Region: "eu-west-1", HTTPClient: &http.Client{Transport: inProcess{&f}},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("no credentials here")
		}),
	}), streamName, nil)
	calls := len(f.calls)
	if err := none.Record(t.Context(), &event); err == nil || !strings.Contains(err.Error(), "no credentials here") || len(f.calls) != calls {
		t.Errorf("Record without credentials = %v after %d calls", err, len(f.calls)-calls)
	}
}

// TestSLAM06ConnectionsDiedWhileFrozen: all pooled connections are dead at the thaw.
func TestSLAM06ConnectionsDiedWhileFrozen(t *testing.T) {
	var f fake
	recorder, server := overNetwork(t, &f)
	var want []record.Event
	for freeze := range 20 {
		var group sync.WaitGroup
		for n := range 4 { // fills the pool
			event := recordtest.Full(10*freeze + n)
			want = append(want, event)
			group.Go(func() {
				if err := recorder.Record(t.Context(), &event); err != nil {
					t.Errorf("Record after freeze %d: %v", freeze, err)
				}
			})
		}
		group.Wait()
		server.CloseClientConnections()
	}
	if got := len(f.events(t)); got != len(want) {
		t.Errorf("%d events, want %d", got, len(want))
	}
}

// instant answers at once and keeps nothing.
type instant struct{ body string }

func (i instant) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(i.body)), ContentLength: int64(len(i.body)), Request: r}, nil
}

// What one event costs the process, without the network. Compare with benchstat:
// go test -bench Record -count 10 ./internal/firehose | benchstat -
func BenchmarkRecord(b *testing.B) {
	recorder := overTransport(instant{`{"RecordId":"id","Encrypted":false}`})
	event := recordtest.Full(1)
	b.ReportAllocs()
	for b.Loop() {
		if err := recorder.Record(b.Context(), &event); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResend500(b *testing.B) {
	event := recordtest.Full(1)
	data, err := json.Marshal(event)
	if err != nil {
		b.Fatal(err)
	}
	var records [][]byte
	answer := `{"FailedPutCount":0,"RequestResponses":[`
	for n := range 500 {
		records = append(records, data)
		answer += fmt.Sprintf(`{"RecordId":"%d"},`, n)
	}
	recorder := overTransport(instant{answer[:len(answer)-1] + "]}"})
	b.ReportAllocs()
	for b.Loop() {
		if n, err := recorder.Resend(b.Context(), records); err != nil || n != 500 {
			b.Fatal(n, err)
		}
	}
}
