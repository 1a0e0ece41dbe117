package gateway_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"switchboard/internal/affinity"
	"switchboard/internal/proxy"
	"switchboard/internal/record"
	"switchboard/internal/upstreamtest"
)

// world is where a conversation takes place: a gateway, what it keeps, and its time.
type world interface {
	// do sends a request and returns when all is over that it set off.
	do(ctx context.Context, request *http.Request) *answer
	put(pin affinity.Pin)
	rows() []map[string]any // what is stored, by the schema's columns (DESIGN 6)
	events() []record.Event // so far, in the order of the requests
	restart()               // a fresh process over the same store
	wait(d time.Duration)   // time passes
	tempo() tempo
	header(value string) string // as the carrier can send it
	end() (log string)          // the end of it; all that it said
}

// tempo is how the time of a world relates to that of its script.
type tempo struct {
	faster time.Duration // times; 0 is 1
	slack  time.Duration // what a real machine may take for itself
}

func (t tempo) real(d time.Duration) time.Duration { return d / max(t.faster, 1) }

// script is a reply in the world's time.
func (t tempo) script(r upstreamtest.Reply) upstreamtest.Reply {
	r.Wait = t.real(r.Wait)
	steps := make([]upstreamtest.Step, 0, len(r.Steps))
	for _, s := range r.Steps {
		s.Wait = t.real(s.Wait)
		steps = append(steps, s)
	}
	r.Steps = steps
	return r
}

func (t tempo) within(took, limit time.Duration) bool { return took <= t.real(limit)+t.slack }

// lasted tells whether a measured time is the scripted one.
func (t tempo) lasted(gotMillis float64, wantMillis string) bool {
	want, err := strconv.Atoi(wantMillis)
	got := time.Duration(gotMillis) * time.Millisecond
	least := t.real(time.Duration(want) * time.Millisecond).Truncate(time.Millisecond)
	return err == nil && got >= least && got <= least+t.slack
}

// memory is a rig in this process; with a transport its providers are behind real sockets.
type memory struct {
	*rig
	t         testing.TB
	transport http.RoundTripper
}

// inBubble plays a file with a time of its own.
func inBubble(t *testing.T, archive *txtar.Archive) (changed bool) {
	synctest.Test(t, func(t *testing.T) { changed = play(t, archive, nil, inMemory) })
	return changed
}

func inMemory(t testing.TB, s *setting) world { return &memory{t: t, rig: rigOf(t, s)} }

func overSocket(t testing.TB, s *setting) world {
	transport := s.network.Listen(t, proxy.NewTransport(time.Second))
	return &memory{t: t, rig: rigOf(t, s, withTransport(transport)), transport: transport}
}

func (m *memory) put(pin affinity.Pin)   { m.store.Put(pin) }
func (m *memory) events() []record.Event { return m.recorder.Events() }
func (m *memory) end() (log string)      { return m.log.String() }
func (m *memory) wait(d time.Duration)   { time.Sleep(d) }
func (m *memory) tempo() tempo           { return tempo{} }

func (m *memory) restart() {
	if m.transport != nil {
		m.rig.restart(m.t, withTransport(m.transport))
		return
	}
	m.rig.restart(m.t)
}

func (m *memory) rows() []map[string]any {
	var rows []map[string]any
	for _, pin := range m.store.Pins() {
		rows = append(rows, columnsOf(pin))
	}
	return rows
}

func (m *memory) header(value string) string {
	if m.transport == nil {
		return value
	}
	return sendable(value)
}

// sendable is a value that a socket's client does not refuse to send.
func sendable(value string) string { return strings.ReplaceAll(value, "\x7f", "\t") }
