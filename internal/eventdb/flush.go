package eventdb

import (
	"cmp"
	"fmt"
	"slices"

	"zombiezen.com/go/sqlite"

	"switchboard/internal/audit"
)

// Flush writes the sums. Call it before COMMIT.
func (in *Inserter) Flush() error {
	if err := in.flush(); err != nil {
		return fmt.Errorf("eventdb: %w", err)
	}
	in.reset()
	return nil
}

func (in *Inserter) flush() error {
	threads := make([]*thread, 0, len(in.threads))
	for _, t := range in.threads {
		if t.requests > 0 {
			threads = append(threads, t)
		}
	}
	// In the order of the tables: neighbours share pages.
	slices.SortFunc(threads, func(a, b *thread) int { return cmp.Compare(a.id, b.id) })
	for _, t := range threads {
		if err := in.flushThread(t); err != nil {
			return err
		}
	}
	days, served := in.sum(threads)
	for name, usage := range days {
		if err := in.flushDay(name, usage); err != nil {
			return err
		}
	}
	for path, c := range in.counts {
		in.addCount.BindInt64(1, path)
		in.addCount.BindInt64(2, c.events)
		in.addCount.BindInt64(3, c.sessions)
		in.addCount.BindInt64(4, c.singles)
		if err := run(in.addCount); err != nil {
			return err
		}
	}
	for kind, requests := range served {
		in.addKind.BindInt64(1, kind)
		in.addKind.BindInt64(2, requests)
		if err := run(in.addKind); err != nil {
			return err
		}
	}
	return nil
}

// sum adds up the cells: by day and name, and the requests by kind and by user path.
func (in *Inserter) sum(threads []*thread) (days map[dayName]*audit.Usage, served map[int64]int64) {
	type kindDay struct{ kind, day int64 }
	kindDays := map[kindDay]*audit.Usage{}
	for _, t := range threads {
		for i := range t.cells {
			c := &t.cells[i]
			addTo(kindDays, kindDay{c.kind, c.day}, &c.usage)
		}
	}
	days, served = map[dayName]*audit.Usage{}, map[int64]int64{}
	for name, usage := range kindDays {
		k := in.named[name.kind]
		served[name.kind] += usage.Requests
		for _, path := range [...]int64{k.path, everybody} {
			in.count(path).events += usage.Requests
			addTo(days, dayName{path, name.day, k.requestedModel, k.modelName, k.provider, k.decisionReason, k.outcome, k.status}, usage)
		}
	}
	return days, served
}

func addTo[K comparable](sums map[K]*audit.Usage, key K, usage *audit.Usage) {
	if sum := sums[key]; sum != nil {
		sum.Add(*usage)
		return
	}
	sum := *usage
	sums[key] = &sum
}

func (in *Inserter) flushThread(t *thread) error {
	in.addThread.BindInt64(1, t.id)
	in.addThread.BindInt64(2, t.requests)
	in.addThread.BindInt64(3, t.firstAt)
	in.addThread.BindText(4, t.newest)
	if err := run(in.addThread); err != nil {
		return err
	}
	slices.SortFunc(t.cells, func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.day, b.day), cmp.Compare(a.kind, b.kind))
	})
	for i := range t.cells {
		c := &t.cells[i]
		in.addCell.BindInt64(1, t.id)
		in.addCell.BindInt64(2, c.day)
		in.addCell.BindInt64(3, c.kind)
		in.addCell.BindText(4, c.newest)
		bindUsage(in.addCell, 5, &c.usage)
		if err := run(in.addCell); err != nil {
			return err
		}
	}
	return nil
}

func (in *Inserter) flushDay(n dayName, usage *audit.Usage) error {
	in.addDay.BindInt64(1, n.path)
	in.addDay.BindInt64(2, n.day)
	in.addDay.BindText(3, n.requestedModel)
	in.addDay.BindText(4, n.modelName)
	in.addDay.BindText(5, n.provider)
	in.addDay.BindText(6, n.decisionReason)
	in.addDay.BindText(7, n.outcome)
	in.addDay.BindInt64(8, int64(n.status))
	bindUsage(in.addDay, 9, usage)
	return run(in.addDay)
}

func bindUsage(stmt *sqlite.Stmt, param int, u *audit.Usage) {
	for i, sum := range u.Fields() {
		stmt.BindInt64(param+i, sum)
	}
}
