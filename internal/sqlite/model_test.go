package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"switchboard/internal/affinity"
	"switchboard/internal/mem"
	"switchboard/internal/sqlite"
)

// Any sequence of calls, with any clocks and any earlier reads, gives the same answers and
// rows as the store in memory.
func TestAnySequenceAgreesWithMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := open(t, path, nil)
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		both := pair{rt: rt, db: db, mem: &mem.Store{}, round: round}
		rt.Repeat(map[string]func(*rapid.T){
			"assign": func(rt *rapid.T) {
				p, now, idle := both.fresh(rt), both.now(rt), both.idle(rt)
				var stale *affinity.Pin
				if rapid.Bool().Draw(rt, "stale") {
					read := both.read(rt)
					stale = &read
				}
				both.agree("Assign", p.Ref, now, func(s affinity.Store) (affinity.Pin, error) {
					return s.Assign(t.Context(), p, stale, now, idle)
				})
			},
			"confirm": func(rt *rapid.T) {
				read, now, idle := both.read(rt), both.now(rt), both.idle(rt)
				both.agree("Confirm", read.Ref, now, func(s affinity.Store) (affinity.Pin, error) {
					return s.Confirm(t.Context(), read, now, idle)
				})
			},
			"reassign": func(rt *rapid.T) {
				read, to, now, idle := both.read(rt), both.target(rt), both.now(rt), both.idle(rt)
				both.agree("Reassign", read.Ref, now, func(s affinity.Store) (affinity.Pin, error) {
					return s.Reassign(t.Context(), read, to, now, idle)
				})
			},
			"switch": func(rt *rapid.T) {
				read, now, idle := both.read(rt), both.now(rt), both.idle(rt)
				move := affinity.Move{To: both.target(rt), RequestID: both.request(rt), CostNanoUSD: 5}
				both.agree("IncrementSwitch", read.Ref, now, func(s affinity.Store) (affinity.Pin, error) {
					return s.IncrementSwitch(t.Context(), read, move, now, idle)
				})
			},
			"withdraw": func(rt *rapid.T) {
				read, now := both.read(rt), both.now(rt)
				both.agree("Withdraw", read.Ref, now, func(s affinity.Store) (affinity.Pin, error) {
					return affinity.Pin{}, s.Withdraw(t.Context(), read)
				})
			},
			"usage": func(rt *rapid.T) {
				ref, now, idle := both.ref(rt), both.now(rt), both.idle(rt)
				usage := affinity.Usage{InputTokens: rapid.Int64Range(0, 9).Draw(rt, "input"), OutputTokens: 1, CachedTokens: 2, CostNanoUSD: 3}
				both.agree("AddUsage", ref, now, func(s affinity.Store) (affinity.Pin, error) {
					return affinity.Pin{}, s.AddUsage(t.Context(), ref, usage, now, idle)
				})
			},
		})
	})
}

// pair is the store under test and its model.
type pair struct {
	rt    *rapid.T
	db    *sqlite.DB
	mem   *mem.Store
	round int
	reads []affinity.Pin // every pin ever returned
}

func (p *pair) ref(rt *rapid.T) affinity.Ref {
	return affinity.Ref{SessionKey: fmt.Sprint(p.round, "-", rapid.IntRange(0, 1).Draw(rt, "session")), Model: "m"}
}

func (p *pair) target(rt *rapid.T) affinity.Target {
	return affinity.Target{
		Provider: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "provider"),
		KeyID:    rapid.SampledFrom([]string{"k1", "k2"}).Draw(rt, "key"),
		KeyPrint: rapid.SampledFrom([]string{"", "p1", "p2"}).Draw(rt, "print"),
		Model:    rapid.SampledFrom([]string{"m1", "m2"}).Draw(rt, "model"),
	}
}

func (p *pair) fresh(rt *rapid.T) affinity.Pin {
	return affinity.Pin{Ref: p.ref(rt), Target: p.target(rt), Served: rapid.Bool().Draw(rt, "served"), LastSwitchRequestID: p.request(rt)}
}

func (p *pair) request(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"", "r1", "r2", "r3"}).Draw(rt, "request")
}

func (p *pair) now(rt *rapid.T) time.Time {
	return now.Add(time.Duration(rapid.IntRange(0, 20).Draw(rt, "now")) * 700 * time.Millisecond)
}

func (p *pair) idle(rt *rapid.T) time.Duration {
	return time.Duration(rapid.IntRange(1, 15).Draw(rt, "idle")) * time.Second
}

// read is a pin as some request has read it, or one that never was.
func (p *pair) read(rt *rapid.T) affinity.Pin {
	if len(p.reads) == 0 {
		read := p.fresh(rt)
		read.Epoch = 1
		return read
	}
	// The newest reads are the likeliest.
	return p.reads[len(p.reads)-1-min(rapid.IntRange(0, 5).Draw(rt, "read"), len(p.reads)-1)]
}

func (p *pair) agree(op string, ref affinity.Ref, now time.Time, do func(s affinity.Store) (affinity.Pin, error)) {
	want, wantErr := do(p.mem)
	got, err := do(p.db)
	if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, wantErr) {
		p.rt.Fatalf("%s: error %v, want %v (-want +got):\n%s", op, err, wantErr, diff)
	}
	if want != (affinity.Pin{}) {
		p.reads = append(p.reads, want)
	}
	if err := p.db.Flush(p.rt.Context()); err != nil {
		p.rt.Fatal(err)
	}
	for _, at := range []time.Time{now, now.Add(-10 * time.Second)} {
		want, wantErr := p.mem.Lookup(p.rt.Context(), ref, at)
		got, err := p.db.Lookup(p.rt.Context(), ref, at)
		if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, wantErr) {
			p.rt.Fatalf("Lookup after %s: error %v, want %v (-want +got):\n%s", op, err, wantErr, diff)
		}
	}
}
