package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/internal/emulator"
	"switchboard/internal/functionurl"
	"switchboard/internal/record"
)

func numbered(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(prefix, i)
	}
	return list
}

// A pinned provider dies under 200 parallel requests of one session and one of each of 200
// others, over four environments that are frozen between invocations: every client is
// answered, each session is switched once, and each request has its one event.
func TestFleetSwitchesEachSessionOnce(t *testing.T) {
	f := newFleet(t, functionurl.Options{Environments: 4, Freeze: true, Spread: true})
	others := numbered("s-", 200)
	for i, r := range f.atOnce(append([]string{"hot"}, others...), "") {
		if !r.whole() || r.provider != "A" {
			t.Fatalf("request %d before: %+v, want A", i, r)
		}
	}
	f.providers["A"].Does(fails)
	sessions := others
	for range 200 {
		sessions = append(sessions, "hot")
	}
	answered := map[string]bool{}
	for i, r := range f.atOnce(sessions, "") {
		if !r.whole() || r.provider != "B" {
			t.Errorf("request %d of %s: %+v, want B", i, sessions[i], r)
		}
		answered[r.requestID] = true
	}
	events, _ := f.events()
	if len(events) != 601 {
		t.Errorf("%d events, want 601", len(events))
	}
	switched := map[string]int{}
	for _, e := range events {
		if e.Switched {
			switched[e.SessionID]++
		}
		delete(answered, e.RequestID)
		if e.Affinity == "unknown" {
			t.Errorf("event %s: the store did not answer in time", e.EventID)
		}
	}
	if len(answered) != 0 {
		t.Errorf("%d answered requests have no event", len(answered))
	}
	for _, session := range append([]string{"hot"}, others...) {
		row := f.row(session)
		if row["provider_identity"] != "B" || fmt.Sprint(row["switch_count"]) != "1" || switched[session] != 1 {
			t.Errorf("%s: row at %v with %v switches, %d events say so; want B, 1, 1", session, row["provider_identity"], row["switch_count"], switched[session])
		}
	}
	if row := f.row("hot"); fmt.Sprint(row["total_requests"]) != "201" || fmt.Sprint(row["total_input_tokens"]) != "2010" {
		t.Errorf("hot: %v requests, %v tokens; want 201, 2010", row["total_requests"], row["total_input_tokens"])
	}
	if calls := f.providers["A"].Calls(); calls > 201+50 {
		t.Errorf("%d calls to a dead provider, want that all environments learn of it", calls-201)
	}
}

// First requests of one session at the same time, over four environments: one claim.
func TestFleetClaimsOnce(t *testing.T) {
	f := newFleet(t, functionurl.Options{Environments: 4, Freeze: true, Spread: true})
	sessions := make([]string, 100)
	for i := range sessions {
		sessions[i] = "new"
	}
	for i, r := range f.atOnce(sessions, "") {
		if !r.whole() {
			t.Errorf("request %d: %+v", i, r)
		}
	}
	f.function.Rest()
	row := f.row("new")
	if row["provider_identity"] != "A" || fmt.Sprint(row["switch_count"]) != "0" || fmt.Sprint(row["total_requests"]) != "100" {
		t.Errorf("row %v, want A, no switch, 100 requests", row)
	}
}

// kill -9 of environments during streams: only what was in flight there fails or, when its
// answer was whole already, lacks its event; each kill costs one request at most.
func TestFleetSurvivesKills(t *testing.T) {
	f := newFleet(t, functionurl.Options{Environments: 4, Freeze: true, Spread: true})
	f.providers["A"].Does(streams(5, 20*time.Millisecond))
	var kills sync.WaitGroup
	var killed atomic.Int32
	stop := make(chan struct{})
	kills.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(400 * time.Millisecond):
			}
			if f.function.Kill(n%4) == nil {
				killed.Add(1)
			}
		}
	})
	replies := f.atOnce(numbered("k-", 200), `,"stream":true`)
	close(stop)
	kills.Wait()
	failed := int32(0)
	whole := map[string]bool{}
	for _, r := range replies {
		if r.whole() && strings.HasSuffix(r.body, "[DONE]\n\n") {
			whole[r.requestID] = true
			continue
		}
		failed++
		if r.err == nil && r.status == http.StatusOK {
			t.Errorf("a cut answer looks complete: %q", r.body)
		}
	}
	events, _ := f.events()
	for _, e := range events {
		delete(whole, e.RequestID)
	}
	if lost := failed + int32(len(whole)); killed.Load() == 0 || lost > killed.Load() {
		t.Errorf("%d requests failed and %d events are missing by %d kills, want at most one for each", failed, len(whole), killed.Load())
	}
}

// undelivered are the events that the log has whole.
func (f *fleet) undelivered() map[string]record.Event {
	events := map[string]record.Event{}
	for line := range strings.Lines(f.function.Log.String()) {
		_, text, found := strings.Cut(line, "{")
		var entry struct {
			Event *record.Event `json:"undelivered_event"`
		}
		if found && json.Unmarshal([]byte("{"+text), &entry) == nil && entry.Event != nil {
			events[entry.Event.EventID] = *entry.Event
		}
	}
	return events
}

// DynamoDB that is slow, throttles or is gone costs stickiness and nothing else, and is used
// again as soon as it is back.
func TestFleetWithoutItsStore(t *testing.T) {
	f := newFleet(t, functionurl.Options{Environments: 2, Freeze: true})
	if r := f.ask("s", ""); !r.whole() || r.provider != "A" {
		t.Fatalf("before: %+v", r)
	}
	for _, tt := range []struct {
		name  string
		fault emulator.Fault
	}{
		{"slow", emulator.Fault{Delay: time.Second}},
		{"throttling", emulator.Fault{Code: "ProvisionedThroughputExceededException"}},
		{"failing", emulator.Fault{Code: "InternalServerError", Status: 500}},
		{"gone", emulator.Fault{DropBefore: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f.function.Rest()
			f.cloud.SetFault(func(service, _ string, _ []byte) emulator.Fault {
				if service != emulator.DynamoDB {
					return emulator.Fault{}
				}
				return tt.fault
			})
			for n := range 3 {
				r := f.ask("s", "")
				if !r.whole() || r.provider != "A" || r.took > 900*time.Millisecond {
					t.Errorf("request %d: %+v, want A within 250 ms and a bit", n, r)
				}
				events, _ := f.events()
				if e := find(events, r.requestID); e == nil || e.Affinity != "unknown" {
					t.Errorf("request %d: event %+v, want affinity unknown", n, e)
				}
			}
			f.cloud.SetFault(nil)
			r := f.ask("s", "")
			events, _ := f.events()
			if e := find(events, r.requestID); !r.whole() || e == nil || e.Affinity != "pinned" {
				t.Errorf("back: %+v, event %+v, want pinned", r, e)
			}
		})
	}
}

func find(events map[string]record.Event, requestID string) *record.Event {
	for _, e := range events {
		if e.RequestID == requestID {
			return &e
		}
	}
	return nil
}

// A Firehose that is slow, fails, or applies and does not say so harms no stream; each event
// is delivered or in the log, whole.
func TestFleetWithoutItsRecorder(t *testing.T) {
	f := newFleet(t, functionurl.Options{Environments: 4, Freeze: true, Spread: true})
	f.providers["A"].Does(streams(3, 5*time.Millisecond))
	f.ask("warm", "")
	var calls atomic.Int32
	for _, tt := range []struct {
		name  string
		fault func(n int32) emulator.Fault
	}{
		{"slow", func(int32) emulator.Fault { return emulator.Fault{Delay: 3 * time.Second} }},
		{"failing", func(int32) emulator.Fault { return emulator.Fault{Code: "ServiceUnavailableException", Status: 503} }},
		{"failing now and then", func(n int32) emulator.Fault {
			if n%2 == 0 {
				return emulator.Fault{Code: "ServiceUnavailableException", Status: 503}
			}
			return emulator.Fault{}
		}},
		{"losing its answers", func(n int32) emulator.Fault { return emulator.Fault{DropAfter: n%2 == 0} }},
		{"gone", func(int32) emulator.Fault { return emulator.Fault{DropBefore: true} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f.function.Rest()
			f.cloud.SetFault(func(service, _ string, _ []byte) emulator.Fault {
				if service != emulator.Firehose {
					return emulator.Fault{}
				}
				return tt.fault(calls.Add(1))
			})
			replies := f.atOnce(numbered(tt.name, 4), `,"stream":true`)
			f.function.Rest()
			f.cloud.SetFault(nil)
			events, _ := f.events()
			lost := f.undelivered()
			for n, r := range replies {
				if !r.whole() || !strings.HasSuffix(r.body, "[DONE]\n\n") || r.took > time.Second {
					t.Errorf("stream %d: %+v, want it whole and unharmed", n, r)
				}
				if find(events, r.requestID) == nil && find(lost, r.requestID) == nil {
					t.Errorf("the event of %s is neither delivered nor in the log", r.requestID)
				}
			}
		})
	}
}

// S-LAM-05b over the real binary: the time limit of the function ends the stream with an
// in-band error, and the event is there.
func TestSLAM05DeadlineOfTheFunction(t *testing.T) {
	f := newFleet(t, functionurl.Options{Timeout: 8 * time.Second})
	f.providers["A"].Does(streams(1000, 50*time.Millisecond))
	r := f.ask("long", `,"stream":true`)
	if r.err != nil || r.status != 200 || !strings.Contains(r.body, `"code":"timeout"`) || strings.Contains(r.body, "[DONE]") {
		t.Errorf("status %d, %v, …%q; want an in-band timeout at the end", r.status, r.err, r.body[max(0, len(r.body)-300):])
	}
	if r.took > 6*time.Second {
		t.Errorf("took %v of 8 s", r.took)
	}
	events, _ := f.events()
	if e := find(events, r.requestID); e == nil || e.Outcome != record.OutcomeTimeout {
		t.Errorf("event %+v, want outcome timeout", e)
	}
	if s := f.function.Stats(); s.ColdStarts != 1 {
		t.Errorf("%d cold starts, want that the environment lives on", s.ColdStarts)
	}
}

// Chunks reach the client as the provider sends them: nothing on the way collects them.
func TestFleetDoesNotBuffer(t *testing.T) {
	f := newFleet(t, functionurl.Options{})
	gate := make(chan struct{})
	f.providers["A"].Does(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for n := range 5 {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%d\"}}]}\n\n", n)
			w.(http.Flusher).Flush()
			<-gate // the next chunk is sent when the client has this one
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	})
	request, err := http.NewRequest(http.MethodPost, f.function.URL+"/v1/chat/completions", strings.NewReader(`{"model":"m","stream":true,"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+clientKey)
	response, err := f.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	seen := ""
	buffer := make([]byte, 4096)
	for n := range 5 {
		for !strings.Contains(seen, fmt.Sprintf(`"content":"%d"`, n)) {
			read, err := response.Body.Read(buffer)
			if err != nil {
				t.Fatalf("chunk %d: %v after %q", n, err, seen)
			}
			seen += string(buffer[:read])
		}
		gate <- struct{}{}
	}
}
