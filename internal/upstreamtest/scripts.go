package upstreamtest

import "sync"

// Script is what one upstream says, by the number of the call; also apart for calls that
// carry a certain credential. Safe for concurrent use.
type Script struct {
	mu      sync.Mutex
	replies map[string]map[int]Reply // by credential; "" for any. 0 is every other call
	counts  map[string]int
}

// Set makes r the answer to call n (from 1; 0 for all others) with the credential, or with
// any when it is empty.
func (s *Script) Set(credential string, n int, r Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.replies == nil {
		s.replies, s.counts = map[string]map[int]Reply{}, map[string]int{}
	}
	if s.replies[credential] == nil {
		s.replies[credential] = map[int]Reply{}
	}
	s.replies[credential][n] = r
}

// Answer is the script as an Answer.
func (s *Script) Answer(c Call) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	credential := c.Credential()
	if s.replies[credential] == nil {
		credential = ""
	}
	if s.counts == nil {
		return Reply{Fail: ErrUnscripted}
	}
	s.counts[credential]++
	if r, ok := s.replies[credential][s.counts[credential]]; ok {
		return r
	}
	if r, ok := s.replies[credential][0]; ok {
		return r
	}
	return Reply{Fail: ErrUnscripted}
}
