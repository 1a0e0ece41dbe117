package functionurl

import "time"

// slot is the place of one environment; processes come and go in it. Guarded by Function.mu.
type slot struct {
	env         *environment // nil: no process
	used        uint64       // Function.turn at the last invocation
	invocations int
	coldStarts  int
	lastInit    time.Duration
}

// turnTime is how long a request waits, where AWS would answer 429, for an environment that has
// answered its client and is about to ask for the next event. A client of AWS is a network round
// trip away and never comes so soon; one on this machine does.
const turnTime = time.Second

// admission says what became of a request that asks for an environment.
type admission int

const (
	admitted  admission = iota // placed or queued
	throttled                  // no room
	refused                    // closed
)

// admit finds an environment for inv, starts one, or queues it.
func (f *Function) admit(inv *invocation) admission {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return refused
	case len(f.queue) == 0 && f.place(inv):
		return admitted
	case f.options.Queue:
		f.queue = append(f.queue, inv)
		return admitted
	case f.turning():
		f.queue = append(f.queue, inv)
		inv.patience = time.AfterFunc(turnTime, func() { f.lose(inv) })
		return admitted
	}
	f.throttled++
	return throttled
}

// turning says whether an environment is between its answer and its next event, or about to be
// replaced. f.mu is held.
func (f *Function) turning() bool {
	for i := range f.slots {
		if e := f.slots[i].env; e != nil && (e.doomed || len(e.completed) > 0) {
			return true
		}
	}
	return false
}

// lose throttles a request whose patience is over.
func (f *Function) lose(inv *invocation) {
	if !f.withdraw(inv) {
		return
	}
	f.mu.Lock()
	f.throttled++
	f.mu.Unlock()
	inv.finish(errThrottled)
}

// withdraw takes inv out of the queue; false: it is not there any more.
func (f *Function) withdraw(inv *invocation) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, other := range f.queue {
		if other == inv {
			f.queue = append(f.queue[:i], f.queue[i+1:]...)
			return true
		}
	}
	return false
}

// dispatch gives queued requests what room there is. f.mu is held.
func (f *Function) dispatch() {
	for len(f.queue) > 0 && !f.closed && f.place(f.queue[0]) {
		f.queue[0] = nil
		f.queue = f.queue[1:]
	}
}

// place gives inv to an environment, if one has room or can be started. f.mu is held.
func (f *Function) place(inv *invocation) bool {
	i := f.choose()
	if i < 0 {
		return false
	}
	s := &f.slots[i]
	if s.env == nil {
		s.env = f.launch(i)
		s.coldStarts++
	}
	f.turn++
	s.used = f.turn
	s.invocations++
	if inv.patience != nil {
		inv.patience.Stop()
	}
	s.env.take(inv)
	return true
}

// choose is the number of the slot for the next request, or -1. f.mu is held.
func (f *Function) choose() int {
	empty, free := -1, -1
	for i := range f.slots {
		switch s := &f.slots[i]; {
		case s.env == nil:
			if empty < 0 {
				empty = i
			}
		case !s.env.hasRoom():
		case free < 0, f.options.Spread && s.used < f.slots[free].used:
			free = i
		}
	}
	if free < 0 || f.options.Spread && empty >= 0 {
		return empty
	}
	return free
}
