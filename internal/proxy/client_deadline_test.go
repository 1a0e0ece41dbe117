package proxy

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/health"
	"switchboard/internal/wire"
)

// stalledClient takes nothing, and gives up at its write deadline.
type stalledClient struct{ slowClient }

func (s *stalledClient) Write([]byte) (int, error) {
	timer := time.NewTimer(time.Until(s.limit))
	defer timer.Stop()
	<-timer.C
	return 0, errors.New("i/o timeout")
}

// S-LAM-05 b: a client that has stopped reading must not hold the call until the kill, which
// would take its event along.
func TestSLAM05StalledClientIsGivenUpAtTheDeadline(t *testing.T) {
	const limit = 20 * time.Second
	for name, c := range map[string]canned{
		"stream": {http.Header{"Content-Type": {"text/event-stream"}}, strings.Repeat(event, 4000) + "data: [DONE]\n\n"},
		"unary":  {http.Header{"Content-Type": {"application/json"}}, `{"pad":"` + strings.Repeat("x", 3<<20) + `"}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ctx, cancel := context.WithDeadlineCause(t.Context(), began.Add(limit), ErrDeadline)
			defer cancel()
			answer, failure := c.openWithin(ctx, t, wire.Chat, map[string]string{"stream": "true", "unary": "false"}[name])
			if failure != nil {
				t.Fatalf("%s: %v", name, failure.Cause)
			}
			defer answer.Close()
			client := &stalledClient{slowClient{header: http.Header{}}}
			ending := answer.Copy(client)
			if ending.Class != health.ClientGone || !errors.Is(ending.Cause, ErrDeadline) {
				t.Errorf("%s: Copy() = %v, %v, want client gone for the deadline", name, ending.Class, ending.Cause)
			}
			if took := time.Since(began); took < limit || took > limit+farewell {
				t.Errorf("%s: Copy() took %v, want %v and at most %v more", name, took, limit, farewell)
			}
			if want := began.Add(limit + farewell); client.limit.After(want) || client.limit.IsZero() {
				t.Errorf("%s: the end of the response may be written until %v, want %v", name, client.limit, want)
			}
		})
	}
}
