package sqlite

import (
	"slices"
	"sync"
)

// pending finds the newest write of a key that is still in the queue: the next request of
// a fast client asks for it before it is committed. The zero pending is empty.
type pending[K, W comparable] struct {
	mu    sync.Mutex
	byKey map[K][]W // in the order they were put
}

// put makes w the newest pending write of key.
func (p *pending[K, W]) put(key K, w W) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byKey == nil {
		p.byKey = make(map[K][]W)
	}
	p.byKey[key] = append(p.byKey[key], w)
}

func (p *pending[K, W]) get(key K) (w W, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if queued := p.byKey[key]; len(queued) > 0 {
		return queued[len(queued)-1], true
	}
	return w, false
}

// remove takes w out: it is committed, or found no place in the queue. One that is not
// there is fine.
func (p *pending[K, W]) remove(key K, w W) {
	p.mu.Lock()
	defer p.mu.Unlock()
	queued := p.byKey[key]
	i := slices.Index(queued, w)
	switch {
	case i < 0:
	case len(queued) == 1:
		delete(p.byKey, key)
	default:
		p.byKey[key] = slices.Delete(queued, i, i+1)
	}
}
