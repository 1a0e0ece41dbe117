package route

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"slices"
)

// keyPlace is a key with its place for a session.
type keyPlace struct {
	key  int // position in account.keys
	hash [sha256.Size]byte
}

// keysOf orders the keys of a target that are left. A session's order is a rendezvous hash
// over its store key: it depends on the texts of the keys alone, so that adding or removing
// one moves only the sessions that it wins or loses. Without a session, or with
// session_sticky_keys: false, the keys take turns. Valid until the next call.
func (w *walk) keysOf(s *seat) []keyPlace {
	keys := w.keys[:0]
	for k := range s.account.keys {
		if !w.out[s.slot+k] {
			keys = append(keys, keyPlace{key: k})
		}
	}
	w.keys = keys[:0]
	if len(keys) < 2 {
		return keys
	}
	if s.account.loose() || w.in.SessionKey == "" {
		rotate(keys, w.draw(s.account.turn, len(keys)))
		return keys
	}
	session := []byte(w.in.SessionKey)
	for i := range keys {
		mac := hmac.New(sha256.New, []byte(s.account.keys[keys[i].key].Text))
		mac.Write(session)
		mac.Sum(keys[i].hash[:0])
	}
	slices.SortStableFunc(keys, func(a, b keyPlace) int {
		return cmp.Or(
			bytes.Compare(b.hash[:], a.hash[:]),
			cmp.Compare(s.account.keys[a.key].ID, s.account.keys[b.key].ID),
		)
	})
	return keys
}

// rotate turns a list left by n places.
func rotate[T any](list []T, n int) {
	slices.Reverse(list[:n])
	slices.Reverse(list[n:])
	slices.Reverse(list)
}
