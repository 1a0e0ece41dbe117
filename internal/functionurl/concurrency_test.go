//go:build linux

package functionurl

import (
	"strconv"
	"strings"
	"sync"
	"testing"
)

func TestMaxConcurrency(t *testing.T) {
	f := start(t, "faults", Options{MaxConcurrency: 3, Freeze: true})
	var releases []func()
	for range 3 {
		releases = append(releases, busy(t, f))
	}
	if status, _, _ := f.send(t, "POST", "/", nil); status != 429 {
		t.Errorf("the fourth = %d, want 429", status)
	}
	for i, release := range releases {
		release()
		if status, body, _ := f.send(t, "POST", "/", script(well("x")...)); status != 200 || body != "x" {
			t.Errorf("with %d running = %d %q, want 200", 2-i, status, body)
		}
	}
	until(t, "frozen", func() bool { return f.Stats().Environments[0].State == Frozen })
	if s := f.Stats(); s.ColdStarts != 1 || s.Invocations != 6 {
		t.Errorf("Stats() = %+v, want one process and 6 invocations", s)
	}
	// A crash loses all that run in the process.
	results := make(chan int, 2)
	g := newGate(t)
	go func() {
		status, _, _ := f.send(t, "POST", "/", script("wait "+g.addr(), "hang"))
		results <- status
	}()
	g.reached(t)
	go func() {
		status, _, _ := f.send(t, "POST", "/", script("exit 1"))
		results <- status
	}()
	for range 2 {
		if got := <-results; got != 502 {
			t.Errorf("status = %d, want 502", got)
		}
	}
}

func TestOfficialClientWithMaxConcurrency(t *testing.T) {
	f := start(t, "wrapped", Options{MaxConcurrency: 4, Queue: true})
	parallel(t, f, 40)
	if s := f.Stats(); s.ColdStarts != 1 || s.Invocations != 40 {
		t.Errorf("Stats() = %+v, want 40 invocations of one process", s)
	}
}

// parallel sends n requests at once and checks that each gets its own answer.
func parallel(t *testing.T, f *started, n int) {
	t.Helper()
	var clients sync.WaitGroup
	for i := range n {
		clients.Go(func() {
			want := strings.Repeat(strconv.Itoa(i)+" ", 1000)
			if status, body, err := f.send(t, "POST", "/echo", strings.NewReader(want)); status != 200 || body != want || err != nil {
				t.Errorf("request %d = %d, %d bytes, %v, want its own %d", i, status, len(body), err, len(want))
			}
		})
	}
	clients.Wait()
}

func TestTwoHundredAtOnceOverFour(t *testing.T) {
	for _, freeze := range []bool{false, true} {
		f := start(t, "wrapped", Options{Environments: 4, Queue: true, Freeze: freeze})
		parallel(t, f, 200)
		if s := f.Stats(); s.ColdStarts != 4 || s.Invocations != 200 || s.Waiting != 0 {
			t.Errorf("freeze %v: Stats() = %+v, want 200 invocations of 4 processes", freeze, s)
		}
	}
}

func TestSpread(t *testing.T) {
	for spread, want := range map[bool]string{true: "0 1 2 0 1 2 0", false: "0 0 0 0 0 0 0"} {
		var mu sync.Mutex
		var got []string
		var cold int
		f := start(t, "faults", Options{Environments: 3, Spread: spread, OnInvoke: func(i Invocation) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, strconv.Itoa(i.Environment))
			if i.Cold {
				cold++
			}
		}})
		for range 7 {
			f.send(t, "POST", "/", script(well("x")...))
			until(t, "all rest", func() bool {
				for _, e := range f.Stats().Environments {
					if e.State == Busy {
						return false
					}
				}
				return true
			})
		}
		mu.Lock()
		if s := strings.Join(got, " "); s != want || cold != f.Stats().ColdStarts {
			t.Errorf("spread %v: environments %s, %d cold, want %s", spread, s, cold, want)
		}
		mu.Unlock()
	}
}
