package firehose_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/record"
	"switchboard/internal/record/recordtest"
)

// batch returns n events as a log has them, each of about size bytes.
func batch(n, size int) (records [][]byte) {
	for i := range n {
		data := fmt.Appendf(nil, `{"event_id":"E%d","session_id":"`, i)
		data = append(data, bytes.Repeat([]byte("s"), max(0, size-len(data)-3))...)
		records = append(records, append(data, `"}`...))
	}
	return records
}

// sizes returns how many records each call had.
func sizes(calls []call) (n []int) {
	for _, one := range calls {
		n = append(n, len(one.records))
	}
	return n
}

func TestSAUD01BatchesAreSplit(t *testing.T) {
	for _, tt := range []struct {
		n, size int // size with the newline
		want    []int
	}{
		{0, 100, nil},
		{1, 100, []int{1}},
		{499, 100, []int{499}},
		{500, 100, []int{500}},
		{501, 100, []int{500, 1}},
		{1203, 100, []int{500, 500, 203}},
		{4, 1 << 20 * 1000 / 1024, []int{4}},
		{5, 1_024_000, []int{4, 1}},
		{32, 128 << 10, []int{32}}, // exactly 4 MiB
		{33, 128 << 10, []int{32, 1}},
		{64, 128 << 10, []int{32, 32}},
		{32, 128<<10 + 1, []int{31, 1}},
		{600, 8192, []int{500, 100}},
		{600, 8400, []int{499, 101}},
	} {
		var f fake
		records := batch(tt.n, tt.size)
		delivered, err := overTransport(inProcess{&f}).Resend(t.Context(), records)
		if err != nil || delivered != tt.n {
			t.Errorf("Resend(%d of %d bytes) = %d, %v", tt.n, tt.size, delivered, err)
		}
		if got := sizes(f.calls); !slices.Equal(got, tt.want) {
			t.Errorf("Resend(%d of %d bytes) made calls of %v, want %v", tt.n, tt.size, got, tt.want)
		}
		for i, got := range f.records {
			if want := string(records[i]) + "\n"; string(got) != want {
				t.Errorf("record %d of %d bytes differs", i, tt.size)
			}
		}
	}
}

// TestSAUD01OnlyWhatFailedIsSentAgain, with the same bytes, and in the end nothing is missing.
func TestSAUD01OnlyWhatFailedIsSentAgain(t *testing.T) {
	for _, tt := range []struct {
		name    string
		n       int
		refuse  func(call, i int) bool // i counts within the call
		calls   []int
		missing int
		paused  time.Duration
	}{
		{"the second of three", 3, func(call, i int) bool { return call == 1 && i == 1 }, []int{3, 1}, 0, 200 * time.Millisecond},
		{"all, once", 3, func(call, _ int) bool { return call == 1 }, []int{3, 3}, 0, 200 * time.Millisecond},
		{"each half", 8, func(_, i int) bool { return i%2 == 1 }, []int{8, 4, 2, 1}, 0, 1400 * time.Millisecond},
		{"one, always", 3, func(_, i int) bool { return i == 0 }, []int{3, 1, 1, 1, 1}, 1, 3 * time.Second},
		{"the first batch's last", 501, func(call, i int) bool { return call == 1 && i == 499 }, []int{500, 1, 1}, 0, 200 * time.Millisecond},
		{"one of the first batch, always", 501, func(call, i int) bool { return call <= 5 && i == 0 }, []int{500, 1, 1, 1, 1, 1}, 1, 3 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fake{react: func(call int, _ [][]byte) reaction {
					return reaction{refuse: func(i int) bool { return tt.refuse(call, i) }}
				}}
				records, began := batch(tt.n, 60), time.Now()
				delivered, err := overTransport(inProcess{&f}).Resend(t.Context(), records)
				if delivered != tt.n-tt.missing || (err != nil) != (tt.missing > 0) {
					t.Errorf("Resend = %d, %v, want %d", delivered, err, tt.n-tt.missing)
				}
				if err != nil && !strings.Contains(err.Error(), "ServiceUnavailableException") {
					t.Errorf("Resend error = %v, want the code of the record", err)
				}
				if got := sizes(f.calls); !slices.Equal(got, tt.calls) || time.Since(began) != tt.paused {
					t.Errorf("calls of %v within %v, want %v within %v", got, time.Since(began), tt.calls, tt.paused)
				}
				if len(f.records) != delivered || len(f.events(t)) != delivered {
					t.Errorf("%d records and %d events delivered, want %d, each once", len(f.records), len(f.events(t)), delivered)
				}
				for _, got := range f.records {
					if !slices.ContainsFunc(records, func(one []byte) bool { return string(one)+"\n" == string(got) }) {
						t.Errorf("record %s is none of those given", got)
					}
				}
			})
		})
	}
}

func TestResendOfWholeFailures(t *testing.T) {
	for _, tt := range []struct {
		name      string
		react     func(int, [][]byte) reaction
		delivered int
		calls     []int
		err       string
		paused    time.Duration
	}{
		{"throttled twice", func(call int, _ [][]byte) reaction {
			if call <= 2 {
				return reaction{status: 503, code: "ServiceUnavailableException"}
			}
			return reaction{}
		}, 600, []int{500, 500, 500, 100}, "", 600 * time.Millisecond},
		{"throttled", always(reaction{status: 503, code: "ServiceUnavailableException"}), 0, []int{500, 500, 500, 500, 500}, "500 of 500", 3 * time.Second},
		{"dropped when done", once(reaction{dropped: true, applied: true}), 600, []int{500, 500, 100}, "", 200 * time.Millisecond},
		{"hangs once", once(reaction{after: time.Hour}), 600, []int{500, 500, 100}, "", 30*time.Second + 200*time.Millisecond},
		{"not allowed", always(reaction{status: 400, code: "AccessDeniedException"}), 0, []int{500}, "AccessDeniedException", 0},
		{"no stream, later", func(call int, _ [][]byte) reaction {
			if call == 2 {
				return reaction{status: 400, code: "ResourceNotFoundException"}
			}
			return reaction{}
		}, 500, []int{500, 100}, "ResourceNotFoundException", 0},
		{"a reply that does not match", once(reaction{status: 200, text: `{"FailedPutCount":0,"RequestResponses":[{"RecordId":"1"}]}`}), 600, []int{500, 500, 100}, "", 200 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fake{react: tt.react}
				began := time.Now()
				delivered, err := overTransport(inProcess{&f}).Resend(t.Context(), batch(600, 60))
				if delivered != tt.delivered || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("Resend = %d, %v, want %d, %q", delivered, err, tt.delivered, tt.err)
				}
				if got := sizes(f.calls); !slices.Equal(got, tt.calls) || time.Since(began) != tt.paused {
					t.Errorf("calls of %v within %v, want %v within %v", got, time.Since(began), tt.calls, tt.paused)
				}
			})
		})
	}
}

func TestResendStopsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fake{react: always(reaction{status: 503, code: "ServiceUnavailableException"})}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		delivered, err := overTransport(inProcess{&f}).Resend(ctx, batch(1, 60))
		if delivered != 0 || err == nil || time.Since(began) > time.Second {
			t.Errorf("Resend = %d, %v after %v, want an error within 1s", delivered, err, time.Since(began))
		}
	})
}

// Each record ends in exactly one newline, whatever it came with.
func TestSAUD01EachRecordIsOneLine(t *testing.T) {
	large := recordtest.Full(1)
	large.RequestedModel = strings.Repeat("m", 2<<20)
	data, err := json.MarshalIndent(large, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	var f fake
	delivered, err := overTransport(inProcess{&f}).Resend(t.Context(), [][]byte{
		[]byte(`{"event_id":"A"}`), []byte("{\"event_id\":\"B\"}\n"), []byte("{\"event_id\":\"C\"}\r\n\n\n"),
		[]byte("{\n  \"event_id\": \"D\"\n}\n"),
		{},
		[]byte("\n"), []byte("{\n"), bytes.Repeat([]byte("x"), 2<<20), data,
	})
	if delivered != 5 || err == nil || !containsAll(err.Error(), "record 4", "record 5", "record 6", "record 7") {
		t.Errorf("Resend = %d, %v, want 5 and errors of the records 4 to 7", delivered, err)
	}
	large.RequestedModel, large.DegradedProviders = large.RequestedModel[:256], nil
	want := []record.Event{{EventID: "A"}, {EventID: "B"}, {EventID: "C"}, {EventID: "D"}, large}
	if diff := cmp.Diff(want, f.events(t)); diff != "" {
		t.Errorf("records differ (-want +got):\n%s", diff)
	}
}

func containsAll(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}
