package gateway

import (
	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/route"
)

// keysInARow is how many keys of one provider may fail before others have their turn: one
// dead key among several is common, and so is an account that is out of everything.
const keysInARow = 2

// queue is the attempts still to be made. What a failure says of attempts to come puts
// them last; nothing is dropped.
type queue struct {
	now      []route.Attempt
	more     func() []route.Attempt
	deferred []route.Attempt
	skipped  []route.Attempt // on trial by another request
	avoid    []avoidance
	keys     map[*provider.Provider]int // failures of a key alone
}

// avoidance is what is put last: a provider, or one model of it.
type avoidance struct {
	provider *provider.Provider
	model    string // upstream name; empty for all
}

// next returns the next attempt that skip does not leave out.
func (q *queue) next(skip func(route.Attempt) bool) (route.Attempt, bool) {
	for {
		for len(q.now) > 0 {
			a := q.now[0]
			q.now = q.now[1:]
			switch {
			case q.avoids(a):
				q.deferred = append(q.deferred, a)
			case skip(a):
				q.skipped = append(q.skipped, a)
			default:
				return a, true
			}
		}
		switch {
		case q.more != nil:
			q.now, q.more = q.more(), nil
		case len(q.deferred) > 0:
			q.now, q.deferred, q.avoid = q.deferred, nil, nil
		default:
			return route.Attempt{}, false
		}
	}
}

// learn puts last what the failure makes pointless: other keys of a provider that is down,
// of a model that is overloaded or missing there, or of an account whose keys fail in a row.
func (q *queue) learn(failed route.Attempt, class health.Class) {
	switch class {
	case health.ServerError, health.Connection, health.Timeout:
		q.avoid = append(q.avoid, avoidance{provider: failed.Provider})
	case health.Overloaded, health.ModelNotFound:
		q.avoid = append(q.avoid, avoidance{failed.Provider, failed.Model.Upstream})
	case health.RateLimited, health.NoCredit, health.Unauthorized:
		if q.keys == nil {
			q.keys = map[*provider.Provider]int{}
		}
		if q.keys[failed.Provider]++; q.keys[failed.Provider] >= keysInARow {
			q.avoid = append(q.avoid, avoidance{provider: failed.Provider})
		}
	}
}

func (q *queue) avoids(a route.Attempt) bool {
	for _, one := range q.avoid {
		if one.provider == a.Provider && (one.model == "" || one.model == a.Model.Upstream) {
			return true
		}
	}
	return false
}

// rest is what was not tried: left over at max_attempts, or on trial by another request.
func (q *queue) rest() (rest untried) {
	rest.onTrial = q.skipped
	rest.left = len(q.now)+len(q.deferred) > 0
	if q.more != nil {
		rest.left = rest.left || len(q.more()) > 0
	}
	return rest
}

// untried is what a request did not ask.
type untried struct {
	onTrial []route.Attempt
	left    bool // max_attempts came first
}
