package dynamo_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/affinity"
	"switchboard/internal/dynamo"
)

// riding is a rig whose document rides when due says so.
func riding(t *testing.T) (r *rig, d *dynamo.Document, due *atomic.Bool) {
	r, due = newRig(t), new(atomic.Bool)
	due.Store(true)
	d = r.store.Document("health")
	r.store.Ride(d, func(time.Time) bool { return due.Load() })
	return r, d, due
}

func TestRideReadsBothInOneCall(t *testing.T) {
	r, d, due := riding(t)
	want := r.serve("s", "a")
	r.swaps(r.another().Document("health"), "one", 0)
	r.wire.reset()
	if got := r.look(want.Ref); got != want {
		t.Errorf("Lookup = %+v, want %+v", got, want)
	}
	r.loads(d, "one", 1)
	r.wantCalls("BatchGetItem")
	due.Store(false)
	r.look(want.Ref)
	r.loads(d, "one", 1)
	r.wantCalls("GetItem", "GetItem")
}

func TestRideOfWhatIsNotThere(t *testing.T) {
	r, d, _ := riding(t)
	if _, err := r.store.Lookup(t.Context(), pin("s", "").Ref, r.now); !errors.Is(err, affinity.ErrNotFound) {
		t.Errorf("Lookup = %v, want ErrNotFound", err)
	}
	r.loads(d, "", 0)
	r.wantCalls("BatchGetItem")
}

// What was read waits for its Load; further Lookups need not read it again.
func TestRideIsTakenOnce(t *testing.T) {
	r, d, _ := riding(t)
	want := r.serve("s", "a")
	r.wire.reset()
	r.look(want.Ref)
	r.look(want.Ref)
	r.loads(d, "", 0)
	r.look(want.Ref)
	r.wantCalls("BatchGetItem", "GetItem", "BatchGetItem")
}

// The document must not be what a pin fails for: when both cannot be read together, the pin
// is read alone.
func TestRideThatIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		reply func() *http.Response
		calls []string
	}{
		"no table":  {func() *http.Response { return refusal(400, "ResourceNotFoundException", "x") }, []string{"BatchGetItem", "GetItem"}},
		"no right":  {func() *http.Response { return refusal(400, "AccessDeniedException", "x") }, []string{"BatchGetItem", "GetItem"}},
		"throttled": {func() *http.Response { return refusal(400, "ThrottlingException", "x") }, []string{"BatchGetItem", "BatchGetItem", "GetItem"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, _ := riding(t)
			want := r.serve("s", "a")
			r.wire.breaks(func(op string, _ int) broken {
				if op == "BatchGetItem" {
					return broken{reply: tt.reply()}
				}
				return broken{}
			})
			if got := r.look(want.Ref); got != want {
				t.Errorf("Lookup = %+v, want %+v", got, want)
			}
			r.wantCalls(tt.calls...)
		})
	}
}

// No answer at all is no answer about the pin either: there is no time for a third attempt.
func TestRideWithoutAnAnswer(t *testing.T) {
	r, d, _ := riding(t)
	r.serve("s", "a")
	r.wire.breaks(always(broken{before: syscall.ECONNRESET}))
	if _, err := r.store.Lookup(t.Context(), pin("s", "").Ref, r.now); !errors.Is(err, dynamo.ErrUnavailable) {
		t.Errorf("Lookup = %v, want ErrUnavailable", err)
	}
	r.wantCalls("BatchGetItem", "BatchGetItem")
	r.loads(d, "", 0)
	r.wantCalls("GetItem")
}

// S-DB-04c: a store that has used up the Lookup's time does not get as much again from the
// Load that follows it in the same request. The one after that asks anew.
func TestSDB04SilentRideCostsTheBudgetOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.breaks(always(broken{wait: true}))
		store := dynamo.New(dynamo.NewClient(config("http://store.invalid", w)), "sessions", "state", nil)
		d := store.Document("health")
		store.Ride(d, func(time.Time) bool { return true })
		within := func(do func(ctx context.Context) error) (time.Duration, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
			defer cancel()
			began := time.Now()
			err := do(ctx)
			return time.Since(began), err
		}
		load := func(ctx context.Context) error {
			_, _, err := d.Load(ctx)
			return err
		}
		for range 2 {
			if took, err := within(func(ctx context.Context) error {
				_, err := store.Lookup(ctx, pin("s", "a").Ref, time.Now())
				return err
			}); took != 250*time.Millisecond || err == nil {
				t.Errorf("Lookup = %v after %v, want an error after 250ms", err, took)
			}
			if took, err := within(load); took != 0 || !errors.Is(err, dynamo.ErrUnavailable) {
				t.Errorf("Load = %v after %v, want ErrUnavailable at once", err, took)
			}
		}
		if took, _ := within(load); took != 250*time.Millisecond {
			t.Errorf("the next Load took %v, want it to ask", took)
		}
	})
}

func TestUnprocessedKeys(t *testing.T) {
	reply := func(body string) *http.Response {
		resp := refusal(200, "", "")
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		return resp
	}
	unprocessed := func(table, key string) string { return `{"` + table + `":{"Keys":[` + key + `]}}` }
	r, d, _ := riding(t)
	want := r.serve("s", "a")
	sessions := unprocessed(r.sessions, `{"session_id":{"S":"s"},"model_name":{"S":"m"}}`)
	state := unprocessed(r.state, `{"id":{"S":"document:health"}}`)

	r.wire.breaks(once(broken{reply: reply(`{"Responses":{},"UnprocessedKeys":` + sessions + `}`)}))
	if _, err := r.store.Lookup(t.Context(), want.Ref, r.now); !errors.Is(err, dynamo.ErrThrottled) {
		t.Errorf("Lookup with the pin unprocessed = %v, want ErrThrottled", err)
	}
	r.loads(d, "", 0)
	r.wantCalls("BatchGetItem")

	r.wire.breaks(once(broken{reply: reply(`{"Responses":{},"UnprocessedKeys":` + state + `}`)}))
	if _, err := r.store.Lookup(t.Context(), want.Ref, r.now); !errors.Is(err, affinity.ErrNotFound) {
		t.Errorf("Lookup with the document unprocessed = %v, want what was answered of the pin", err)
	}
	r.swaps(r.another().Document("health"), "one", 0)
	r.loads(d, "one", 1)
	r.wantCalls("BatchGetItem", "PutItem", "GetItem")
}

// A Load during the Lookup that brings the document waits for it.
func TestLoadWaitsForTheRide(t *testing.T) {
	r, d, _ := riding(t)
	want := r.serve("s", "a")
	r.swaps(r.another().Document("health"), "one", 0)
	onItsWay, loading := make(chan struct{}), make(chan struct{})
	r.wire.breaks(func(string, int) broken {
		close(onItsWay)
		<-loading
		return broken{}
	})
	var group sync.WaitGroup
	group.Go(func() { r.look(want.Ref) })
	<-onItsWay
	group.Go(func() {
		if data, version, err := d.Load(t.Context()); err != nil || string(data) != "one" || version != 1 {
			t.Errorf("Load = %q, %d, %v", data, version, err)
		}
	})
	close(loading)
	group.Wait()
	if calls := r.wire.calls(); len(calls) != 1 {
		t.Errorf("calls = %v, want one for both", calls)
	}
}

// Many Lookups at once: one brings the document, and every pin is right.
func TestRideUnderContention(t *testing.T) {
	r, d, _ := riding(t)
	want := r.serve("s", "a")
	r.swaps(r.another().Document("health"), "one", 0)
	r.wire.reset()
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			if got, err := r.store.Lookup(t.Context(), want.Ref, r.now); err != nil || got != want {
				t.Errorf("Lookup = %+v, %v, want %+v", got, err, want)
			}
		})
	}
	group.Wait()
	r.loads(d, "one", 1)
	batches := 0
	for _, op := range r.wire.calls() {
		if op == "BatchGetItem" {
			batches++
		}
	}
	if calls := r.wire.calls(); len(calls) != 100 || batches != 1 {
		t.Errorf("%d calls, %d of them for both, want 100 and 1", len(calls), batches)
	}
}

// Everything that is due rides in the same call, and nothing else does.
func TestSeveralRide(t *testing.T) {
	r := newRig(t)
	one, two, three := r.store.Document("one"), r.store.Document("two"), r.store.Document("three")
	dueTwo := new(atomic.Bool)
	dueTwo.Store(true)
	r.store.Ride(one, func(time.Time) bool { return true })
	r.store.Ride(two, func(time.Time) bool { return dueTwo.Load() })
	r.store.Ride(three, func(time.Time) bool { return true })
	want := r.serve("s", "a")
	r.swaps(r.another().Document("two"), "of two", 0)
	r.swaps(r.another().Document("one"), "of one", 0)
	r.wire.reset()
	if got := r.look(want.Ref); got != want {
		t.Errorf("Lookup = %+v, want %+v", got, want)
	}
	r.loads(one, "of one", 1)
	r.loads(two, "of two", 1)
	r.loads(three, "", 0)
	r.wantCalls("BatchGetItem")
	dueTwo.Store(false)
	r.look(want.Ref)
	r.loads(three, "", 0)
	r.loads(two, "of two", 1)
	r.loads(one, "of one", 1)
	r.wantCalls("BatchGetItem", "GetItem")
}

// A document that the table did not get to is read by itself; the others are not.
func TestOneOfSeveralIsUnprocessed(t *testing.T) {
	r := newRig(t)
	one, two := r.store.Document("one"), r.store.Document("two")
	for _, d := range []*dynamo.Document{one, two} {
		r.store.Ride(d, func(time.Time) bool { return true })
	}
	r.swaps(r.another().Document("one"), "of one", 0)
	reply := refusal(200, "", "")
	body := `{"Responses":{},"UnprocessedKeys":{"` + r.state + `":{"Keys":[{"id":{"S":"document:one"}}]}}}`
	reply.Body, reply.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	r.wire.breaks(once(broken{reply: reply}))
	if _, err := r.store.Lookup(t.Context(), pin("s", "").Ref, r.now); !errors.Is(err, affinity.ErrNotFound) {
		t.Errorf("Lookup = %v, want ErrNotFound", err)
	}
	r.loads(two, "", 0)
	r.wantCalls("BatchGetItem")
	r.loads(one, "of one", 1)
	r.wantCalls("GetItem")
}

// Who edits a document reads it as it is.
func TestCurrentDocumentReadsConsistently(t *testing.T) {
	r := newRig(t)
	r.loads(r.store.Document("one").Current(), "", 0)
	if sent := string(r.wire.sent[len(r.wire.sent)-1]); !strings.Contains(sent, `"ConsistentRead":true`) {
		t.Errorf("sent %s, want a consistent read", sent)
	}
}

// Without a Lookup the documents that are due come in one call as well.
func TestBring(t *testing.T) {
	r := newRig(t)
	one, two := r.store.Document("one"), r.store.Document("two")
	r.store.Bring(t.Context(), r.now)
	for _, d := range []*dynamo.Document{one, two} {
		r.store.Ride(d, func(time.Time) bool { return true })
	}
	r.swaps(r.another().Document("two"), "of two", 0)
	r.wire.reset()
	r.store.Bring(t.Context(), r.now)
	r.loads(one, "", 0)
	r.loads(two, "of two", 1)
	r.wantCalls("BatchGetItem")
	r.wire.breaks(once(broken{reply: refusal(400, "AccessDeniedException", "x")}))
	r.store.Bring(t.Context(), r.now)
	r.loads(two, "of two", 1)
	r.wantCalls("BatchGetItem", "GetItem")
}
