package proxy

import (
	"bytes"

	"switchboard/internal/provider"
	"switchboard/internal/sse"
)

// maxCarry is how much of an unfinished event is held back to see whether it must be
// hidden or redacted. A larger event is neither a usage chunk nor worth the wait.
const maxCarry = 16 << 10

// contentHead is how much of an event's beginning is searched for signs of content.
const contentHead = 512

// filter stands between upstream and client: it shows each event to the observer, takes
// out the usage-only chunk that the client did not ask for, takes our key out of error
// events, and ends the stream after one. All other bytes pass as they came, in slices of
// the chunk that was fed. The zero filter must be started.
type filter struct {
	scanner  sse.Scanner
	observer *provider.Stream
	hide     bool
	keys     []string

	carry     []byte // of an unfinished event, not passed yet
	passed    bool   // the beginning of the unfinished event has been passed
	scratch   []byte
	output    bool // output was seen
	ended     bool // an error event was passed: nothing after it is
	partial   bool // the input ended within an event
	errorData []byte
}

func (f *filter) start(observer *provider.Stream, hide bool, keys []string) {
	f.observer, f.hide, f.keys = observer, hide, keys
}

// feed takes a chunk and returns what of it, and of what was carried, may go to the
// client now. The slice is valid until the next call.
func (f *filter) feed(chunk []byte) ([]byte, provider.Mark) {
	if f.ended || len(chunk) == 0 {
		return nil, 0
	}
	f.scanner.Feed(chunk)
	out, copied := chunk[:0], len(f.carry) > 0
	if copied {
		out = f.scratch[:0]
	}
	var all provider.Mark
	begin := 0 // of the event under way
	for {
		event, ok := f.scanner.Next()
		if !ok {
			break
		}
		marks := f.observer.Read(event)
		all |= marks
		f.output = f.output || marks&provider.Output != 0
		raw := chunk[begin:event.End]
		whole := !f.passed
		begin = event.End
		if marks&provider.Error == 0 && !(f.hide && whole && marks&provider.UsageOnly != 0) {
			out = f.pass(out, raw, &copied)
			continue
		}
		out, copied = f.own(out, copied)
		if marks&provider.Error != 0 {
			f.errorData = append(f.errorData[:0], event.Data...)
			out = append(out, provider.Redact(append(f.carry, raw...), f.keys)...)
		}
		f.carry, f.passed = f.carry[:0], false
		if marks&provider.Error != 0 {
			f.ended = true
			return f.keep(out, copied), all
		}
	}
	tail := chunk[begin:]
	if f.passed || len(f.carry)+len(tail) > maxCarry || len(f.carry) == 0 && (len(tail) == 0 || isContent(tail)) {
		out = f.pass(out, tail, &copied)
		f.passed = f.scanner.Partial() > 0
		return f.keep(out, copied), all
	}
	if f.carry = append(f.carry, tail...); isContent(f.carry) {
		out, copied = f.own(out, copied)
		out = f.pass(out, nil, &copied)
		f.passed = true
	}
	return f.keep(out, copied), all
}

// pass adds what was carried and raw to out. Until something had to be left out, out is a
// prefix of the chunk and grows without copying.
func (f *filter) pass(out, raw []byte, copied *bool) []byte {
	if len(f.carry) > 0 {
		out = append(out, f.carry...)
		f.carry = f.carry[:0]
	}
	f.passed = false
	if *copied {
		return append(out, raw...)
	}
	return out[:len(out)+len(raw)]
}

// own moves out from the chunk to memory of our own, because bytes are about to be left out.
func (f *filter) own(out []byte, copied bool) ([]byte, bool) {
	if copied {
		return out, true
	}
	return append(f.scratch[:0], out...), true
}

func (f *filter) keep(out []byte, copied bool) []byte {
	if copied {
		f.scratch = out
	}
	return out
}

// isContent tells whether an unfinished event can be passed at once: its beginning shows
// that it brings content, so that it is neither an error nor a usage-only chunk. What does
// not show is held back until the event ends, which costs the client nothing: it cannot
// use half an event.
func isContent(head []byte) bool {
	head = head[:min(len(head), contentHead)]
	if bytes.Contains(head, []byte("error")) || bytes.Contains(head, []byte("failed")) {
		return false
	}
	return bytes.Contains(head, []byte(`"choices":[{`)) || bytes.Contains(head, []byte("_delta")) || bytes.Contains(head, []byte(".delta"))
}

// close ends the input and returns what was still carried.
func (f *filter) close() ([]byte, provider.Mark) {
	if f.ended {
		return nil, 0
	}
	f.partial = f.partial || f.scanner.Partial() > 0
	event, ok := f.scanner.Close()
	var marks provider.Mark
	if ok {
		marks = f.observer.Read(event)
		f.output = f.output || marks&provider.Output != 0
	}
	// Half an event may be half an error, whatever it says of itself.
	out := provider.Redact(f.carry, f.keys)
	f.carry = nil
	switch {
	case marks&provider.Error != 0:
		f.errorData = append(f.errorData[:0], event.Data...)
		f.ended = true
	case f.hide && !f.passed && (marks&provider.UsageOnly != 0 || bytes.Contains(out, []byte(`"choices":[]`))):
		out, f.partial = nil, false // also when the end of the stream has cut it
	}
	return out, marks
}
