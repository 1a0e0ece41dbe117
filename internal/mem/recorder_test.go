package mem_test

import (
	"errors"
	"testing"

	"switchboard/internal/mem"
	"switchboard/internal/record"
	"switchboard/internal/record/recordtest"
)

func TestRecorderKeepsTheContract(t *testing.T) {
	recordtest.Run(t, func(*testing.T) recordtest.Backend {
		recorder := &mem.Recorder{}
		return recordtest.Backend{
			Recorder: recorder,
			Read:     func(*testing.T) []record.Event { return recorder.Events() },
		}
	})
}

func TestFaultDecidesWhetherTheEventIsKept(t *testing.T) {
	lost := errors.New("answer lost")
	for _, applied := range []bool{true, false} {
		recorder := &mem.Recorder{Fault: func(string) (bool, error) { return applied, lost }}
		if err := recorder.Record(t.Context(), &record.Event{EventID: "1"}); !errors.Is(err, lost) {
			t.Errorf("Record error = %v, want %v", err, lost)
		}
		if got := len(recorder.Events()); (got == 1) != applied {
			t.Errorf("applied %t: %d events kept", applied, got)
		}
	}
}
