package sqlite

import "testing"

// A write that found no place in the queue goes; those still in the queue stay pending,
// and one that has been committed in between does not come back.
func TestPendingFindsTheNewestInTheQueue(t *testing.T) {
	var p pending[string, *int]
	first, second, refused := new(int), new(int), new(int)
	want := func(when string, want *int) {
		t.Helper()
		if got, found := p.get("k"); got != want || found != (want != nil) {
			t.Errorf("%s: get = %p, %t, want %p", when, got, found, want)
		}
	}
	want("empty", nil)
	p.put("k", first)
	p.put("k", refused)
	want("newest", refused)
	p.remove("k", refused)
	want("refused, the first is still queued", first)

	p.put("k", refused)
	p.remove("k", first) // committed while the other waited for a place
	p.remove("k", refused)
	want("refused, the first is committed", nil)

	p.put("k", first)
	p.put("k", second)
	p.remove("k", first)
	want("the first is committed", second)
	p.remove("k", second)
	p.remove("k", second)
	want("all are committed", nil)
	if len(p.byKey) != 0 {
		t.Errorf("%d keys left, want 0", len(p.byKey))
	}
}
