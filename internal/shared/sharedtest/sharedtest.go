// Package sharedtest proves that a cell keeps the contract of shared.Cell.
package sharedtest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"switchboard/internal/shared"
)

// Open yields the documents of one empty store: each call of the function is another
// process's look at the document of that name.
type Open func(t *testing.T) func(id string) shared.Cell

// Run runs the suite.
func Run(t *testing.T, open Open) {
	for name, test := range map[string]func(*cells){
		"AtTheKeyboard":       atTheKeyboard,
		"NamesApart":          namesApart,
		"FormerVersionsLose":  formerVersionsLose,
		"OneOfManyWins":       oneOfManyWins,
		"CountingLosesNobody": countingLosesNobody,
		"AnyBytes":            anyBytes,
		"FarExpiry":           farExpiry,
	} {
		t.Run(name, func(t *testing.T) { test(&cells{t, open(t)}) })
	}
}

// cells reads like a session at the keyboard.
type cells struct {
	*testing.T
	at func(id string) shared.Cell
}

func (c *cells) loads(cell shared.Cell, want string, version int64) {
	c.Helper()
	data, got, err := cell.Load(c.Context())
	if err != nil || string(data) != want || got != version || version == 0 && data != nil {
		c.Fatalf("Load = %q, %d, %v, want %q, %d", data, got, err, want, version)
	}
}

func (c *cells) swap(cell shared.Cell, data string, version int64) error {
	return cell.Swap(c.Context(), []byte(data), version, time.Now().Add(time.Hour))
}

func (c *cells) swaps(cell shared.Cell, data string, version int64) {
	c.Helper()
	if err := c.swap(cell, data, version); err != nil {
		c.Fatalf("Swap(%q, %d) = %v, want success", data, version, err)
	}
}

func (c *cells) loses(cell shared.Cell, data string, version int64) {
	c.Helper()
	if err := c.swap(cell, data, version); !errors.Is(err, shared.ErrChanged) {
		c.Fatalf("Swap(%q, %d) = %v, want ErrChanged", data, version, err)
	}
}

func atTheKeyboard(c *cells) {
	mine, theirs := c.at("a"), c.at("a")
	c.loads(mine, "", 0)
	c.loses(mine, "x", 7) // what is not there has version 0
	c.swaps(mine, "one", 0)
	c.loads(mine, "one", 1)
	c.loses(theirs, "x", 0)
	c.loads(theirs, "one", 1) // what the lost Swap was measured against
	c.loses(theirs, "x", 2)
	c.swaps(theirs, "two", 1)
	c.loses(mine, "x", 1)
	c.loads(mine, "two", 2)
	c.swaps(mine, "three", 2)
	c.loads(mine, "three", 3)
}

func namesApart(c *cells) {
	for _, id := range []string{"a", "b", "A", "ü", "a/b", "a'b"} {
		c.loads(c.at(id), "", 0)
		c.swaps(c.at(id), "of "+id, 0)
	}
	c.loads(c.at("A"), "of A", 1)
	c.loads(c.at("a'b"), "of a'b", 1)
}

func formerVersionsLose(c *cells) {
	cell := c.at("a")
	c.swaps(cell, "one", 0)
	c.loses(cell, "other", 0)
	c.loads(cell, "one", 1)
	c.swaps(cell, "two", 1)
	c.loses(cell, "one", 0) // what was written before it was replaced
	c.loads(cell, "two", 2)
}

func oneOfManyWins(c *cells) {
	const writers = 16
	errs := make([]error, writers)
	var group sync.WaitGroup
	for n := range errs {
		cell := c.at("a")
		group.Go(func() { errs[n] = c.swap(cell, fmt.Sprint("of ", n), 0) })
	}
	group.Wait()
	won := -1
	for n, err := range errs {
		switch {
		case err == nil && won >= 0:
			c.Errorf("writers %d and %d both won", won, n)
		case err == nil:
			won = n
		case !errors.Is(err, shared.ErrChanged):
			c.Errorf("writer %d: %v", n, err)
		}
	}
	if won < 0 {
		c.Fatal("nobody won")
	}
	c.loads(c.at("a"), fmt.Sprint("of ", won), 1)
}

// countingLosesNobody: writers that decide again after a lost race leave a trace each.
func countingLosesNobody(c *cells) {
	const writers, each = 4, 5
	var group sync.WaitGroup
	for n := range writers {
		cell := c.at("a")
		group.Go(func() {
			for i := range each {
				for {
					data, version, err := cell.Load(c.Context())
					if err != nil {
						c.Errorf("Load: %v", err)
						return
					}
					err = c.swap(cell, string(data)+fmt.Sprintf("%d.%d ", n, i), version)
					if err == nil {
						break
					}
					if !errors.Is(err, shared.ErrChanged) {
						c.Errorf("Swap: %v", err)
						return
					}
				}
			}
		})
	}
	group.Wait()
	data, version, err := c.at("a").Load(c.Context())
	if err != nil || version != writers*each || bytes.Count(data, []byte(" ")) != writers*each {
		c.Errorf("after %d swaps: %q, %d, %v", writers*each, data, version, err)
	}
}

func anyBytes(c *cells) {
	cell := c.at("a")
	all := make([]byte, 100_000)
	for i := range all {
		all[i] = byte(i * i >> 3)
	}
	c.swaps(cell, string(all), 0)
	c.loads(cell, string(all), 1)
	all[0]++ // the cell keeps its own copy
	data, _, err := cell.Load(c.Context())
	if err != nil || bytes.Equal(data, all) {
		c.Errorf("Load shows what its writer changed later (%v)", err)
	}
	c.swaps(cell, "", 1)
	if data, version, err := c.at("a").Load(c.Context()); err != nil || len(data) != 0 || version != 2 {
		c.Errorf("Load of an empty document = %q, %d, %v, want version 2", data, version, err)
	}
}

// farExpiry: a document that is to stay says so by a time that nobody lives to see.
func farExpiry(c *cells) {
	if err := c.at("a").Swap(c.Context(), []byte("one"), 0, time.Now().AddDate(100, 0, 0)); err != nil {
		c.Fatal(err)
	}
	c.loads(c.at("a"), "one", 1)
}
