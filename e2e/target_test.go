//go:build e2e

package e2e

import "testing"

// target is a place where the gateway can run. A scenario asserts the same in each, but for
// what its fields say.
type target struct {
	name  string
	start func(s *stack) gateway
	// tooLarge are sizes of bodies in bytes that are refused: the first by the gateway, in
	// the caller's shape, the others by what is in front of it.
	tooLarge []int
	// aborted is the outcome of a stream that its client has left.
	aborted string
}

func targets() []target {
	return []target{
		{
			name: "one machine", start: func(s *stack) gateway { return s.board() },
			tooLarge: []int{34_000_000}, aborted: "client_cancelled",
		},
		{ // Lambda does not tell that the client has left, and the answer is read to its end.
			name: "function URL", start: func(s *stack) gateway { return s.function() },
			tooLarge: []int{6_200_000, 7_000_000}, aborted: "ok",
		},
	}
}

// onEachTarget plays a scenario against a stack of its own in every target.
func onEachTarget(t *testing.T, scenario func(t *testing.T, s *stack, board gateway, on target)) {
	for _, on := range targets() {
		t.Run(on.name, func(t *testing.T) {
			s := newStack(t)
			scenario(t, s, on.start(s), on)
		})
	}
}

// gateway is a running front of a target.
type gateway interface {
	url() string
	tail() string // the end of its log, for a failing test
}

var (
	_ gateway = (*process)(nil)
	_ gateway = (*function)(nil)
)

// ledger is what the gateways of a stack leave, read from outside.
type ledger interface {
	events() []row // oldest first
	pins() []row
	texts() map[string]string // all that was written anywhere, by place
}

var (
	_ ledger = database{}
	_ ledger = (*function)(nil)
)
