package audittest

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"switchboard/internal/audit"
	"switchboard/internal/record"
)

// oracle answers by looking at every event, in the words of the contract.
type oracle struct{ events []record.Event } // newest first, each once

func newOracle(deliveries []record.Event) oracle {
	seen := map[string]bool{}
	var o oracle
	for _, e := range deliveries {
		if !seen[e.EventID] {
			seen[e.EventID] = true
			o.events = append(o.events, e)
		}
	}
	slices.SortFunc(o.events, func(a, b record.Event) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), strings.Compare(b.EventID, a.EventID))
	})
	return o
}

// threadOf names the thread of an event: its session, or itself.
func threadOf(e *record.Event) [4]string {
	if e.SessionKey == "" {
		return [4]string{3: e.EventID}
	}
	return [4]string{e.UserPath, e.SessionID, e.SessionKey, ""}
}

func chosen(f audit.Filter, e *record.Event) bool {
	at := time.UnixMilli(e.CreatedAt)
	path := f.UserPath == "" && !f.PathOnly || e.UserPath == f.UserPath ||
		!f.PathOnly && strings.HasPrefix(e.UserPath, strings.TrimSuffix(f.UserPath, "/")+"/")
	return path &&
		(f.SessionID == "" || e.SessionID == f.SessionID) &&
		(f.Model == "" || e.RequestedModel == f.Model || e.ModelName == f.Model) &&
		(f.Provider == "" || e.Provider == f.Provider) &&
		(f.Status == 0 || e.ResponseStatus == f.Status) &&
		(f.Outcome == "" || e.Outcome == f.Outcome) &&
		(f.Reason == "" || e.DecisionReason == f.Reason) &&
		(f.From.IsZero() || !at.Before(f.From)) &&
		(f.To.IsZero() || at.Before(f.To))
}

// choose are the chosen events, newest first.
func (o oracle) choose(f audit.Filter) (list []record.Event) {
	for i := range o.events {
		if chosen(f, &o.events[i]) {
			list = append(list, o.events[i])
		}
	}
	return list
}

func cut[T any](list []T, p audit.Page) []T {
	return list[min(p.Offset, len(list)):min(p.Offset+p.Limit, len(list))]
}

func (o oracle) log(f audit.Filter, p audit.Page) audit.Log {
	list := o.choose(f)
	return audit.Log{Entries: cut(list, p), Total: int64(len(list))}
}

func (o oracle) threads(f audit.Filter, p audit.Page) audit.Threads {
	whole := map[[4]string]int64{}
	for i := range o.events {
		whole[threadOf(&o.events[i])]++
	}
	seen := map[[4]string]bool{}
	var list []audit.Thread
	for _, e := range o.choose(f) {
		if name := threadOf(&e); !seen[name] {
			seen[name] = true
			list = append(list, audit.Thread{SessionID: e.SessionID, UserPath: e.UserPath, RequestCount: whole[name], Latest: e})
		}
	}
	return audit.Threads{Sessions: cut(list, p), Total: int64(len(list))}
}

func (o oracle) sessions(f audit.Filter, p audit.Page) audit.SessionUsages {
	at := map[[4]string]int{}
	var list []audit.SessionUsage
	for _, e := range o.choose(f) {
		if e.SessionKey == "" {
			continue
		}
		name := threadOf(&e)
		i, seen := at[name]
		if !seen {
			i = len(list)
			at[name] = i
			list = append(list, audit.SessionUsage{SessionID: e.SessionID, UserPath: e.UserPath, LastUsedAt: e.CreatedAt})
		}
		add(&list[i].Usage, &e)
	}
	return audit.SessionUsages{Entries: cut(list, p), Total: int64(len(list))}
}

func (o oracle) summary(f audit.Filter) audit.Summary {
	var s audit.Summary
	sessions := map[[4]string]bool{}
	for _, e := range o.choose(f) {
		add(&s.Usage, &e)
		if e.SessionKey != "" {
			sessions[threadOf(&e)] = true
		}
		i := slices.IndexFunc(s.Groups, func(g audit.Group) bool { return g.Model == e.ModelName && g.Provider == e.Provider })
		if i < 0 {
			i = len(s.Groups)
			s.Groups = append(s.Groups, audit.Group{Model: e.ModelName, Provider: e.Provider})
		}
		add(&s.Groups[i].Usage, &e)
	}
	slices.SortFunc(s.Groups, func(a, b audit.Group) int {
		return cmp.Or(cmp.Compare(b.CostNanoUSD, a.CostNanoUSD), strings.Compare(a.Model, b.Model), strings.Compare(a.Provider, b.Provider))
	})
	s.Sessions = int64(len(sessions))
	return s
}

func (o oracle) daily(f audit.Filter) audit.Days {
	var d audit.Days
	for _, e := range slices.Backward(o.choose(f)) { // oldest first
		date := time.UnixMilli(e.CreatedAt).UTC().Format(time.DateOnly)
		if n := len(d.Days); n == 0 || d.Days[n-1].Date != date {
			d.Days = append(d.Days, audit.Day{Date: date})
		}
		add(&d.Days[len(d.Days)-1].Usage, &e)
	}
	return d
}

// add is written out here, and not taken from the package under test.
func add(u *audit.Usage, e *record.Event) {
	plus := func(sum, n *int64) {
		if n != nil {
			*sum += *n
		}
	}
	u.Requests++
	plus(&u.InputTokens, e.InputTokens)
	plus(&u.CachedInputTokens, e.CachedInputTokens)
	plus(&u.CacheWriteTokens, e.CacheWriteTokens)
	plus(&u.OutputTokens, e.OutputTokens)
	plus(&u.InputCostNanoUSD, e.InputCostNanoUSD)
	plus(&u.OutputCostNanoUSD, e.OutputCostNanoUSD)
	plus(&u.CostNanoUSD, e.CostNanoUSD)
	plus(&u.SwitchCostNanoUSD, e.SwitchCostNanoUSD)
	if e.Provider != "" && e.CostNanoUSD == nil {
		u.Unpriced++
	}
	if e.Switched {
		u.Switches++
	}
}
