package functionurl

import "time"

// State is what an environment does.
type State string

// The states of an environment.
const (
	Empty    State = "empty"    // no process
	Starting State = "starting" // has not asked for an event yet
	Idle     State = "idle"     // waits for an event
	Frozen   State = "frozen"   // waits, and is stopped
	Busy     State = "busy"     // has at least one event that it has not ended
	Ending   State = "ending"   // killed, not gone yet
)

// Stats are counts since Start.
type Stats struct {
	Environments []Environment
	Invocations  int // handed to an environment
	ColdStarts   int // processes started
	Throttled    int // requests answered 429
	Waiting      int // in the queue now
}

// Environment is one of Stats.
type Environment struct {
	PID         int // 0: no process
	State       State
	Invocations int
	ColdStarts  int
	LastInit    time.Duration // from the start of the last process to its first request for an event
}

// Stats reports what has happened so far.
func (f *Function) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Stats{Throttled: f.throttled, Waiting: len(f.queue)}
	for i := range f.slots {
		slot := &f.slots[i]
		one := Environment{
			State: slot.env.state(), Invocations: slot.invocations, ColdStarts: slot.coldStarts, LastInit: slot.lastInit,
		}
		if slot.env != nil && slot.env.process != nil {
			one.PID = slot.env.process.Pid
		}
		s.Environments = append(s.Environments, one)
		s.Invocations += one.Invocations
		s.ColdStarts += one.ColdStarts
	}
	return s
}

func (e *environment) state() State {
	switch {
	case e == nil:
		return Empty
	case e.doomed:
		return Ending
	case !e.ready:
		return Starting
	case e.frozen:
		return Frozen
	case e.load > 0:
		return Busy
	}
	return Idle
}
