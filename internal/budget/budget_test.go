package budget

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestEndsInTimeWhoeverAsks(t *testing.T) {
	for _, waits := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, release := With(t.Context(), time.Second)
			defer release()
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) != time.Second {
				t.Errorf("Deadline() = %v, %v, want in 1s", deadline, ok)
			}
			if err := ctx.Err(); err != nil {
				t.Errorf("Err() at once = %v, want nil", err)
			}
			if waits {
				<-ctx.Done()
			} else {
				time.Sleep(time.Second)
			}
			if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Err() after the budget = %v, want deadline exceeded", err)
			}
		})
	}
}

func TestParentEndsItToo(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	quiet, release := With(parent, time.Minute)
	defer release()
	asked, releaseAsked := With(parent, time.Minute)
	defer releaseAsked()
	done := asked.Done()
	cancel()
	<-done
	for name, ctx := range map[string]context.Context{"quiet": quiet, "asked": asked} {
		if err := ctx.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: Err() = %v, want canceled", name, err)
		}
	}
}

func TestSoonerDeadlineOfTheParent(t *testing.T) {
	parent, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ctx, release := With(parent, time.Hour)
	defer release()
	want, _ := parent.Deadline()
	if got, _ := ctx.Deadline(); !got.Equal(want) {
		t.Errorf("Deadline() = %v, want the parent's %v", got, want)
	}
}

// A context made from it sees its end.
func TestChildContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, release := With(t.Context(), time.Second)
		defer release()
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		<-child.Done()
		if !errors.Is(child.Err(), context.DeadlineExceeded) {
			t.Errorf("Err() = %v, want deadline exceeded", child.Err())
		}
	})
}

func TestAllocations(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		ctx, release := With(t.Context(), time.Second)
		if ctx.Err() != nil {
			t.Error("ended at once")
		}
		release()
	}); n > 2 {
		t.Errorf("%v allocations, want at most 2", n)
	}
}
