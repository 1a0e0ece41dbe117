package eventdb

import (
	"context"
	"fmt"
	"strings"
	"time"

	"switchboard/internal/audit"
)

const (
	// mergedPaths is how many user paths' threads are merged in order.
	mergedPaths = 4
	// gathered is how many rows are rather collected and sorted than sought among all.
	gathered = 20_000
)

// plan is how a question is answered: from which tables and in which order. It changes how
// long an answer takes, never what it is.
type plan struct {
	f audit.Filter

	byKind bool // the filter names what is in event_kind, apart from the user path
	byPath bool
	byTime bool

	paths                     []int64 // chosen, up to mergedPaths+1
	threads, sessions, events int64   // as far as counted: -1 is unknown

	all       int64 // events of all
	pathTotal int64 // threads of the chosen paths
	fewKinds  bool  // few events are of the chosen kinds: their index is worth it
	fewDays   bool  // and of the chosen days

	// For Log.
	page   audit.Page
	walk   bool  // back in time, from before on
	before int64 // milliseconds
}

func (q *question) prepare() error {
	f := q.filter
	q.plan = plan{
		f: f, threads: -1, sessions: -1, events: -1,
		byKind: f.Model != "" || f.Provider != "" || f.Status != 0 || f.Outcome != "" || f.Reason != "",
		byPath: f.PathOnly || f.UserPath != "",
		byTime: !f.From.IsZero() || !f.To.IsZero(),
	}
	q.sql = audit.SQL{
		Dialect: audit.Dialect{Relations: q.plan.relations},
		Rows: func(_ context.Context, s audit.Statement, each func(audit.Row) error) error {
			return q.rows(s, func(row row) error { return each(row) })
		},
	}
	if err := q.countPaths(); err != nil {
		return err
	}
	if q.plan.byTime {
		if err := q.countDays(); err != nil {
			return err
		}
	}
	if q.plan.byKind || q.plan.byPath && q.plan.byTime {
		return q.countKinds()
	}
	return nil
}

// countPaths reads the counters of the chosen user paths.
func (q *question) countPaths() error {
	p := &q.plan
	v := &audit.Values{}
	where := "id <> " + fmt.Sprint(everybody)
	if p.byPath {
		where += " AND " + p.f.PathWhere(v, "user_path")
	} else {
		where = "id = " + fmt.Sprint(everybody)
	}
	var events, sessions, singles int64
	err := q.rows(audit.Statement{SQL: "SELECT id, events, sessions, singles FROM event_path WHERE " + where, Args: v.Args}, func(row row) error {
		if len(p.paths) <= mergedPaths {
			p.paths = append(p.paths, row.n(0))
		}
		events += row.n(1)
		sessions += row.n(2)
		singles += row.n(3)
		return nil
	})
	if err != nil {
		return err
	}
	p.pathTotal = sessions + singles
	if !p.byKind && !p.byTime && p.f.SessionID == "" {
		p.events, p.sessions, p.threads = events, sessions, sessions+singles
	}
	return q.rows(audit.Statement{SQL: "SELECT events FROM event_path WHERE id = " + fmt.Sprint(everybody)}, func(row row) error {
		p.all = row.n(0)
		return nil
	})
}

// worth is the part of all below which looking up each is quicker than looking through all.
const worth = 8

// countKinds finds out whether the chosen kinds are worth their index.
func (q *question) countKinds() error {
	p := &q.plan
	v := &audit.Values{}
	return q.rows(audit.Statement{SQL: "SELECT COALESCE(SUM(k.requests), 0) FROM event_kind k WHERE " + p.kindWhere(v), Args: v.Args}, func(row row) error {
		chosen := row.n(0)
		p.fewKinds = chosen*worth < p.all
		if !p.byTime && p.f.SessionID == "" {
			p.events = chosen
		}
		return nil
	})
}

// pageOf decides how to find a page of so many chosen events. Walking back in time meets it
// after about all/matching*(offset+limit) events, unless the chosen ones are all old: so the
// walk begins with the newest day that has some.
func (q *question) pageOf(ctx context.Context, page audit.Page) error {
	p := &q.plan
	p.page = page
	if p.events < 0 {
		err := q.sql.Rows(ctx, q.sql.LogTotal(p.f), func(row audit.Row) error {
			p.events, _ = row.Int(0)
			return nil
		})
		if err != nil {
			return err
		}
	}
	const thread = 5 // gathering reads more of a thread than what is chosen
	named := (p.byKind || p.byPath) && p.f.SessionID == ""
	if !named || p.events*(p.events/max(int64(page.Offset+page.Limit), 1))*thread < p.all {
		return nil
	}
	v := &audit.Values{}
	where := append(p.span().touched(v, "d.day"), p.dayWhere(v)...)
	return q.rows(audit.Statement{SQL: "SELECT MAX(d.day) FROM event_day d" + all(where), Args: v.Args}, func(row row) error {
		day, any := row.Int(0)
		p.walk, p.before = any, (day+1)*dayMillis
		return nil
	})
}

// dayWhere is the filter over event_day d, but for the days.
func (p *plan) dayWhere(v *audit.Values) []string {
	path := "d.path = " + v.Int(everybody)
	if p.byPath {
		path = "d.path IN (" + p.pathQuery(v) + ")"
	}
	return append([]string{path}, p.nameWhere(v, "d.")...)
}

// countDays finds out whether the chosen days are.
func (q *question) countDays() error {
	p := &q.plan
	v := &audit.Values{}
	where := append(p.span().touched(v, "day"), "path = "+v.Int(everybody))
	return q.rows(audit.Statement{SQL: "SELECT COALESCE(SUM(requests), 0) FROM event_day" + all(where), Args: v.Args}, func(row row) error {
		p.fewDays = row.n(0)*worth < p.all
		return nil
	})
}

// kindWhere is the filter over event_kind k.
func (p *plan) kindWhere(v *audit.Values) string {
	var where []string
	if p.byPath {
		where = append(where, "k.path IN ("+p.pathQuery(v)+")")
	}
	where = append(where, p.nameWhere(v, "k.")...)
	return strings.Join(where, " AND ")
}

// nameWhere is the filter over the names that event_kind and event_day share.
func (p *plan) nameWhere(v *audit.Values, alias string) []string {
	named := audit.Filter{Model: p.f.Model, Provider: p.f.Provider, Status: p.f.Status, Outcome: p.f.Outcome, Reason: p.f.Reason}
	return named.Where(v, alias)
}

func (p *plan) pathQuery(v *audit.Values) string {
	return "SELECT id FROM event_path WHERE " + p.f.PathWhere(v, "user_path")
}

// span is a range of time as whole days and what is left over at its ends.
type span struct {
	fromDay, toDay int64      // days [fromDay, toDay)
	open           [2]bool    // no bound below, above
	edges          [][2]int64 // milliseconds [from, to)
}

func (p *plan) span() span {
	var s span
	bound := func(t time.Time) (open bool, day, rest int64) {
		if t.IsZero() {
			return true, 0, 0
		}
		ms := audit.Millis(t)
		day = floorDay(ms)
		return false, day, ms - day*dayMillis
	}
	var fromRest, toRest int64
	s.open[0], s.fromDay, fromRest = bound(p.f.From)
	s.open[1], s.toDay, toRest = bound(p.f.To)
	bounded := !s.open[0] && !s.open[1]
	from, to := s.fromDay*dayMillis+fromRest, s.toDay*dayMillis+toRest
	switch {
	case bounded && from >= to:
		s.toDay = s.fromDay // nothing
	case bounded && s.fromDay == s.toDay:
		s.edges = [][2]int64{{from, to}}
	default:
		if fromRest > 0 {
			s.fromDay++
			s.edges = append(s.edges, [2]int64{from, s.fromDay * dayMillis})
		}
		if toRest > 0 {
			s.edges = append(s.edges, [2]int64{s.toDay * dayMillis, to})
		}
	}
	return s
}

// days are the whole days as a predicate over a column of days.
func (s span) days(v *audit.Values, column string) []string {
	var where []string
	if !s.open[0] {
		where = append(where, column+" >= "+v.Int(s.fromDay))
	}
	if !s.open[1] {
		where = append(where, column+" < "+v.Int(s.toDay))
	}
	return where
}

// touched are the days that are chosen, whole or in part.
func (s span) touched(v *audit.Values, column string) []string {
	for _, edge := range s.edges {
		s.fromDay = min(s.fromDay, floorDay(edge[0]))
		s.toDay = max(s.toDay, floorDay(edge[1]-1)+1)
	}
	return s.days(v, column)
}

// edge is what is left over as a predicate over event e.
func (s span) edge(v *audit.Values) string {
	parts := make([]string, len(s.edges))
	for i, edge := range s.edges {
		parts[i] = "e.created_at >= " + v.Int(edge[0]) + " AND e.created_at < " + v.Int(edge[1])
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}
