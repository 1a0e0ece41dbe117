package dynamo_test

import (
	"log/slog"
	"testing"
	"time"

	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/virtual"
)

// What a request with a session reads at most, with everything due: one call for its pin, the
// shared health and the saved virtual models.
func TestAPinnedRequestReadsInOneCall(t *testing.T) {
	r := newRig(t)
	providers := []*provider.Provider{{Identity: "A", Models: []provider.Model{{ID: "m", Upstream: "m"}}}}
	logger := slog.New(slog.DiscardHandler)
	document, saved := r.store.Document(health.DocumentID), r.store.Document(virtual.DocumentID)
	board := health.NewShared(health.Defaults(), document, nil, logger)
	models, err := virtual.New(providers, nil, saved, logger)
	if err != nil {
		t.Fatal(err)
	}
	r.store.Ride(document, board.Due)
	r.store.Ride(saved, models.Due)

	operator, err := virtual.New(providers, nil, r.another().Document(virtual.DocumentID).Current(), logger)
	if err != nil {
		t.Fatal(err)
	}
	change, err := virtual.ParseChange([]byte(`{"source":"smart","target_model":"A/m"}`))
	if err == nil {
		_, err = operator.Save(t.Context(), change)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := r.serve("s", "a")

	request := func(after time.Duration) {
		t.Helper()
		now := r.now.Add(after)
		r.wire.reset()
		if got, err := r.store.Lookup(t.Context(), want.Ref, now); err != nil || got != want {
			t.Fatalf("Lookup = %+v, %v, want %+v", got, err, want)
		}
		board.Refresh(t.Context(), now)
		models.Refresh(t.Context(), now)
		if !models.For("").HasVirtual("smart") {
			t.Errorf("after %v: smart is not known", after)
		}
	}
	request(0)
	r.wantCalls("BatchGetItem")
	request(0)
	r.wantCalls("GetItem")
	request(2 * time.Second) // the health alone is due
	r.wantCalls("BatchGetItem")
	request(time.Minute)
	r.wantCalls("BatchGetItem")
}
