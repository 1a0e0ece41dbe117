package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/affinity"
	"switchboard/internal/dynamo"
	"switchboard/internal/shared"
)

// refusal is an answer of the service that is an error.
func refusal(status int, code, message string) *http.Response {
	body := fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":%q}`, code, message)
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// once breaks the first request.
func once(do broken) func(string, int) broken {
	return func(_ string, n int) broken {
		if n == 1 {
			return do
		}
		return broken{}
	}
}

func always(do broken) func(string, int) broken {
	return func(string, int) broken { return do }
}

// writes are all writes of a store, each with what it needs and what it must leave.
func writes(r *rig) map[string]func() (prepare func(), write func() error, check func() error) {
	type three = func() (func(), func() error, func() error)
	var read affinity.Pin
	sees := func(want func() affinity.Pin) func() error {
		return func() error {
			got, err := r.store.Lookup(r.Context(), want().Ref, r.now)
			if diff := cmp.Diff(want(), got); err != nil || diff != "" {
				return fmt.Errorf("Lookup: %w (-want +got):\n%s", err, diff)
			}
			return nil
		}
	}
	var got affinity.Pin
	written := sees(func() affinity.Pin { return got })
	return map[string]three{
		"Assign": func() (func(), func() error, func() error) {
			return func() {}, func() (err error) {
				got, err = r.store.Assign(r.Context(), pin("s", "a"), nil, r.now, idle)
				return err
			}, written
		},
		"Confirm": func() (func(), func() error, func() error) {
			return func() { read = r.claim("s", "a") }, func() (err error) {
				got, err = r.store.Confirm(r.Context(), read, r.now.Add(time.Minute), idle)
				return err
			}, written
		},
		"Reassign": func() (func(), func() error, func() error) {
			return func() { read = r.claim("s", "a") }, func() (err error) {
				got, err = r.store.Reassign(r.Context(), read, to("b"), r.now.Add(time.Minute), idle)
				return err
			}, written
		},
		"IncrementSwitch": func() (func(), func() error, func() error) {
			return func() { read = r.serve("s", "a") }, func() (err error) {
				move := affinity.Move{To: to("b"), RequestID: "r1", CostNanoUSD: 7}
				got, err = r.store.IncrementSwitch(r.Context(), read, move, r.now.Add(time.Minute), idle)
				if err == nil && (got.SwitchCount != 1 || got.SwitchCostNanoUSD != 7 || got.Provider != "b") {
					return fmt.Errorf("IncrementSwitch = %+v, want one switch", got)
				}
				return err
			}, written
		},
		"Withdraw": func() (func(), func() error, func() error) {
			return func() { read = r.claim("s", "a") }, func() error {
					return r.store.Withdraw(r.Context(), read)
				}, func() error {
					if _, err := r.store.Lookup(r.Context(), read.Ref, r.now); !errors.Is(err, affinity.ErrNotFound) {
						return fmt.Errorf("Lookup after Withdraw: %w, want ErrNotFound", err)
					}
					return nil
				}
		},
		"AddUsage": func() (func(), func() error, func() error) {
			var want affinity.Pin
			return func() { read = r.serve("s", "a") }, func() error {
				want = read
				want.InputTokens, want.OutputTokens, want.LastInputTokens, want.CostNanoUSD, want.Requests = 10, 1, 10, 5, 1
				return r.store.AddUsage(r.Context(), read.Ref, affinity.Usage{InputTokens: 10, OutputTokens: 1, CostNanoUSD: 5}, r.now, idle)
			}, sees(func() affinity.Pin { return want })
		},
		"PutAlias": func() (func(), func() error, func() error) {
			a := affinity.Alias{ResponseID: "resp", SessionKey: "s", Target: to("a"), ExpiresAt: r.now.Add(idle)}
			return func() {}, func() error { return r.store.PutAlias(r.Context(), a) }, func() error {
				if got, err := r.store.LookupAlias(r.Context(), "resp", r.now); err != nil || got != a {
					return fmt.Errorf("LookupAlias = %+v, %w, want %+v", got, err, a)
				}
				return nil
			}
		},
		"Swap": func() (func(), func() error, func() error) {
			d := r.store.Document("health")
			return func() {}, func() error {
					return d.Swap(r.Context(), []byte("one"), 0, r.now.Add(idle))
				}, func() error {
					if data, version, err := r.another().Document("health").Load(r.Context()); err != nil || string(data) != "one" || version != 1 {
						return fmt.Errorf("Load = %q, %d, %w", data, version, err)
					}
					return nil
				}
		},
	}
}

// S-DB-03c: the write was applied, its answer was lost, and the client's own retry met its own
// condition. It is success, and done once.
func TestSDB03RetriedWritesRecogniseThemselves(t *testing.T) {
	for lossName, loss := range map[string]error{
		"EOF": io.EOF, "cut": io.ErrUnexpectedEOF, "reset": syscall.ECONNRESET, "pipe": syscall.EPIPE,
	} {
		for _, name := range []string{"Assign", "Confirm", "Reassign", "IncrementSwitch", "Withdraw", "AddUsage", "PutAlias", "Swap"} {
			t.Run(name+"/"+lossName, func(t *testing.T) {
				r := newRig(t)
				prepare, write, check := writes(r)[name]()
				prepare()
				r.wire.breaks(once(broken{after: loss}))
				if err := write(); err != nil {
					t.Errorf("%s whose first answer was lost: %v, want success", name, err)
				}
				if calls := r.wire.calls(); len(calls) != 2 || calls[0] != calls[1] {
					t.Errorf("calls = %v, want the write twice", calls)
				}
				if err := check(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// The same, when the caller repeats a write after all attempts of the first were lost.
func TestSDB03RepeatedWritesRecogniseThemselves(t *testing.T) {
	for _, name := range []string{"Assign", "Confirm", "Reassign", "IncrementSwitch", "Withdraw", "PutAlias", "Swap"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			prepare, write, check := writes(r)[name]()
			prepare()
			r.wire.breaks(always(broken{after: io.ErrUnexpectedEOF}))
			if err := write(); !errors.Is(err, dynamo.ErrUnavailable) {
				t.Errorf("%s without an answer: %v, want ErrUnavailable", name, err)
			}
			r.wire.reset()
			if err := write(); err != nil {
				t.Errorf("%s again: %v, want success", name, err)
			}
			if err := check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// S-LAM-06: what a freeze leaves behind is retried once, on a new connection where the old
// one is dead.
func TestSLAM06FirstCallAfterAFreeze(t *testing.T) {
	skewed := func() *http.Response {
		return refusal(http.StatusBadRequest, "InvalidSignatureException", "Signature expired: 20260101T000000Z is now earlier than 20260101T010000Z")
	}
	for _, tt := range []struct {
		name  string
		do    func() broken
		drops int
	}{
		{"EOF", func() broken { return broken{before: io.EOF} }, 1},
		{"cut", func() broken { return broken{before: io.ErrUnexpectedEOF} }, 1},
		{"reset", func() broken { return broken{before: syscall.ECONNRESET} }, 1},
		{"pipe", func() broken { return broken{before: syscall.EPIPE} }, 1},
		{"closed", func() broken { return broken{before: errors.New("http: server closed idle connection")} }, 1},
		{"signature", func() broken { return broken{reply: skewed()} }, 0},
		{"throttled", func() broken {
			return broken{reply: refusal(http.StatusBadRequest, "ThrottlingException", "Rate exceeded")}
		}, 0},
		{"internal", func() broken { return broken{reply: refusal(500, "InternalServerError", "")} }, 0},
		{"unavailable", func() broken { return broken{reply: refusal(503, "ServiceUnavailable", "")} }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			want := r.serve("s", "a")
			drops := r.wire.drops
			r.wire.breaks(once(tt.do()))
			if got := r.look(want.Ref); got != want {
				t.Errorf("Lookup = %+v, want %+v", got, want)
			}
			if calls := r.wire.calls(); len(calls) != 2 {
				t.Errorf("calls = %v, want two attempts", calls)
			}
			if got := r.wire.drops - drops; got != tt.drops {
				t.Errorf("pooled connections dropped %d times, want %d", got, tt.drops)
			}
		})
	}
}

// S-DB-04c: two attempts, then it is a fault that says its kind, and nothing of a secret.
func TestSDB04FaultsAreTranslated(t *testing.T) {
	canonical := "The request signature we calculated does not match. Canonical String: x-amz-security-token:session-token secret-access-key AKIDEXAMPLE"
	for _, tt := range []struct {
		name     string
		do       func() broken
		want     error
		attempts int
	}{
		{"throttled", func() broken {
			return broken{reply: refusal(400, "ProvisionedThroughputExceededException", "slow down")}
		}, dynamo.ErrThrottled, 2},
		{"throttling", func() broken { return broken{reply: refusal(400, "ThrottlingException", "slow down")} }, dynamo.ErrThrottled, 2},
		{"limit", func() broken { return broken{reply: refusal(400, "RequestLimitExceeded", "slow down")} }, dynamo.ErrThrottled, 2},
		{"internal", func() broken { return broken{reply: refusal(500, "InternalServerError", "oops")} }, dynamo.ErrUnavailable, 2},
		{"unavailable", func() broken { return broken{reply: refusal(503, "ServiceUnavailable", "oops")} }, dynamo.ErrUnavailable, 2},
		{"no table", func() broken { return broken{reply: refusal(400, "ResourceNotFoundException", "no such table")} }, dynamo.ErrRefused, 1},
		{"no permission", func() broken { return broken{reply: refusal(400, "AccessDeniedException", "not authorized")} }, dynamo.ErrRefused, 1},
		{"signature", func() broken { return broken{reply: refusal(400, "InvalidSignatureException", canonical)} }, dynamo.ErrRefused, 2},
		{"incomplete", func() broken { return broken{reply: refusal(400, "IncompleteSignatureException", canonical)} }, dynamo.ErrRefused, 1},
		{"validation", func() broken { return broken{reply: refusal(400, "ValidationException", "invalid")} }, dynamo.ErrRefused, 1},
		{"refused", func() broken { return broken{before: syscall.ECONNREFUSED} }, dynamo.ErrUnavailable, 2},
		{"reset", func() broken { return broken{before: syscall.ECONNRESET} }, dynamo.ErrUnavailable, 2},
		{"EOF", func() broken { return broken{before: io.EOF} }, dynamo.ErrUnavailable, 2},
		{"HTML", func() broken {
			resp := refusal(502, "x", "")
			resp.Body = io.NopCloser(strings.NewReader("<html>bad gateway</html>"))
			return broken{reply: resp}
		}, dynamo.ErrUnavailable, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			read := r.serve("s1", "a")
			for op, call := range map[string]func() error{
				"Lookup":   func() error { _, err := r.store.Lookup(r.Context(), read.Ref, r.now); return err },
				"Assign":   func() error { _, err := r.store.Assign(r.Context(), pin("s2", "a"), nil, r.now, idle); return err },
				"Confirm":  func() error { _, err := r.store.Confirm(r.Context(), read, r.now, idle); return err },
				"Reassign": func() error { _, err := r.store.Reassign(r.Context(), read, to("a"), r.now, idle); return err },
				"IncrementSwitch": func() error {
					_, err := r.store.IncrementSwitch(r.Context(), read, affinity.Move{To: to("b"), RequestID: "r"}, r.now, idle)
					return err
				},
				"Withdraw":    func() error { return r.store.Withdraw(r.Context(), read) },
				"AddUsage":    func() error { return r.store.AddUsage(r.Context(), read.Ref, affinity.Usage{}, r.now, idle) },
				"PutAlias":    func() error { return r.store.PutAlias(r.Context(), affinity.Alias{ResponseID: "s1"}) },
				"LookupAlias": func() error { _, err := r.store.LookupAlias(r.Context(), "s1", r.now); return err },
				"Load":        func() error { _, _, err := r.store.Document("s1").Load(r.Context()); return err },
				"Swap":        func() error { return r.store.Document("s1").Swap(r.Context(), nil, 0, r.now) },
			} {
				r.wire.breaks(func(string, int) broken { return tt.do() })
				err := call()
				if !errors.Is(err, tt.want) || errors.Is(err, affinity.ErrNotFound) || errors.Is(err, affinity.ErrConflict) || errors.Is(err, shared.ErrChanged) {
					t.Errorf("%s error = %v, want %v", op, err, tt.want)
					continue
				}
				for _, secret := range []string{"session-token", "secret-access-key", "AKIDEXAMPLE", r.url} {
					if strings.Contains(err.Error(), secret) {
						t.Errorf("%s error %q has %q in it", op, err, secret)
					}
				}
				if calls := r.wire.calls(); len(calls) > 2*tt.attempts || tt.name != "validation" && len(calls) != tt.attempts {
					t.Errorf("%s: calls = %v, want %d attempts", op, calls, tt.attempts)
				}
				if !strings.Contains(err.Error(), "s1") && !strings.Contains(err.Error(), "s2") {
					t.Errorf("%s error %q does not name its key", op, err)
				}
			}
		})
	}
}

// S-DB-04c: a store that does not answer costs the caller's budget and no more.
func TestSDB04SilenceEndsWithTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.breaks(always(broken{wait: true}))
		store := dynamo.New(dynamo.NewClient(config("http://store.invalid", w)), "sessions", "state", nil)
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := store.Lookup(ctx, pin("s", "a").Ref, began)
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 260*time.Millisecond {
			t.Errorf("Lookup = %v after %v, want deadline exceeded after 250ms", err, took)
		}
		if calls := w.calls(); len(calls) != 1 {
			t.Errorf("calls = %v, want no second attempt", calls)
		}
	})
}

// Retries pause for less than a person, or a budget, would notice.
func TestBackoffFitsInTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.breaks(always(broken{before: syscall.ECONNRESET}))
		store := dynamo.New(dynamo.NewClient(config("http://store.invalid", w)), "sessions", "state", nil)
		for range 50 { // no token bucket may run dry
			w.reset()
			w.breaks(always(broken{before: syscall.ECONNRESET}))
			began := time.Now()
			_, err := store.Lookup(t.Context(), pin("s", "a").Ref, began)
			if took := time.Since(began); !errors.Is(err, dynamo.ErrUnavailable) || took < 10*time.Millisecond || took > 25*time.Millisecond {
				t.Fatalf("Lookup = %v after %v, want unavailable after 10 to 25ms", err, took)
			}
			if calls := w.calls(); len(calls) != 2 {
				t.Fatalf("calls = %v, want two attempts", calls)
			}
		}
	})
}
