package sqlite

import "sync"

// pending finds the newest write of a key that is still in the queue: the next request of
// a fast client asks for it before it is committed. The zero pending is empty.
type pending[K comparable, W comparable] struct {
	mu    sync.Mutex
	byKey map[K]W
}

// put makes w the pending write of key and returns the one before, or zero.
func (p *pending[K, W]) put(key K, w W) (before W) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byKey == nil {
		p.byKey = make(map[K]W)
	}
	before = p.byKey[key]
	p.byKey[key] = w
	return before
}

func (p *pending[K, W]) get(key K) (w W, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w, found = p.byKey[key]
	return w, found
}

// remove takes w out, unless a later one has taken its place; before, if it is not zero,
// is pending again.
func (p *pending[K, W]) remove(key K, w, before W) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var none W
	switch {
	case p.byKey[key] != w:
	case before != none:
		p.byKey[key] = before
	default:
		delete(p.byKey, key)
	}
}
