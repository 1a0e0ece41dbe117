package mem

import (
	"context"
	"errors"
	"sync"

	"switchboard/internal/record"
)

// Recorder keeps routing events in the order they came, each event_id once. The zero value
// is an empty recorder.
type Recorder struct {
	// Fault, when not nil, is asked before every Record. It is set before first use.
	Fault Fault

	mu     sync.Mutex
	events []record.Event
	seen   map[string]bool
}

var _ record.Recorder = (*Recorder)(nil)

// Record implements record.Recorder.
func (r *Recorder) Record(ctx context.Context, event *record.Event) error {
	if event.EventID == "" {
		return errors.New("mem: record: event without event_id")
	}
	run, err := r.Fault.before(ctx, OpRecord)
	if run {
		r.keep(event)
	}
	return err
}

func (r *Recorder) keep(event *record.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[event.EventID] {
		return
	}
	if r.seen == nil {
		r.seen = make(map[string]bool)
	}
	r.seen[event.EventID] = true
	r.events = append(r.events, *event)
}

// Events returns a copy of the events kept so far, oldest first.
func (r *Recorder) Events() []record.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]record.Event(nil), r.events...)
}
