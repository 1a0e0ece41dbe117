package firehose_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/record/recordtest"
	"switchboard/internal/replay"
)

// TestSLAM05AnUndeliveredEventComesBack: what replay reads from the log and Resend puts is
// what Record would have put, byte for byte.
func TestSLAM05AnUndeliveredEventComesBack(t *testing.T) {
	var healthy fake
	down := fake{react: always(reaction{status: 400, code: "AccessDeniedException"})}
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	for n := range 20 {
		event := recordtest.Full(n)
		event.SessionID = "'\"\\ \x01\x7f\n 日本語🙂 \u2028 </script>&amp; \xff"
		if err := overTransport(inProcess{&healthy}).Record(t.Context(), &event); err != nil {
			t.Fatal(err)
		}
		err := overTransport(inProcess{&down}).Record(t.Context(), &event)
		if err == nil {
			t.Fatal("Record succeeded, want an error")
		}
		logger.ErrorContext(t.Context(), "undelivered routing event", slog.Any("undelivered_event", &event), slog.Any("cause", err))
	}
	var records [][]byte
	for event, err := range replay.Lines(&log) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, event.JSON)
	}
	var again fake
	if n, err := overTransport(inProcess{&again}).Resend(t.Context(), records); n != 20 || err != nil {
		t.Errorf("Resend = %d, %v, want 20", n, err)
	}
	if diff := cmp.Diff(healthy.records, again.records); diff != "" {
		t.Errorf("records differ (-recorded +put back):\n%s", diff)
	}
}
