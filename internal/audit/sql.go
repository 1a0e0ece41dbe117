package audit

import "context"

// SQL asks an engine the questions and reads its answers. What the answers were built from
// (Coverage) is not its business.
type SQL struct {
	Dialect
	// Rows runs one statement and hands over each of its rows, which are good until each
	// returns. It returns each's error at once.
	Rows func(ctx context.Context, s Statement, each func(Row) error) error
}

// Threads is Reader's.
func (q SQL) Threads(ctx context.Context, f Filter, p Page) (answer Threads, err error) {
	err = q.Rows(ctx, q.Dialect.Threads(f, p), func(row Row) error {
		latest, err := ScanEvent(row, 4)
		answer.Total, _ = row.Int(0)
		count, _ := row.Int(3)
		answer.Sessions = append(answer.Sessions, Thread{
			UserPath: row.Text(1), SessionID: row.Text(2), RequestCount: count, Latest: latest,
		})
		return err
	})
	if err == nil && len(answer.Sessions) == 0 {
		answer.Total, err = q.total(ctx, p, q.ThreadsTotal(f))
	}
	return answer, err
}

// Log is Reader's.
func (q SQL) Log(ctx context.Context, f Filter, p Page) (answer Log, err error) {
	err = q.Rows(ctx, q.Dialect.Log(f, p), func(row Row) error {
		event, err := ScanEvent(row, 1)
		answer.Total, _ = row.Int(0)
		answer.Entries = append(answer.Entries, event)
		return err
	})
	if err == nil && len(answer.Entries) == 0 {
		answer.Total, err = q.total(ctx, p, q.LogTotal(f))
	}
	return answer, err
}

// Sessions is Reader's.
func (q SQL) Sessions(ctx context.Context, f Filter, p Page) (answer SessionUsages, err error) {
	err = q.Rows(ctx, q.Dialect.Sessions(f, p), func(row Row) error {
		answer.Total, _ = row.Int(0)
		answer.Entries = append(answer.Entries, SessionUsage{
			UserPath: row.Text(1), SessionID: row.Text(2), LastUsedAt: TimeOfKey(row.Text(3)), Usage: ScanUsage(row, 4),
		})
		return nil
	})
	if err == nil && len(answer.Entries) == 0 {
		answer.Total, err = q.total(ctx, p, q.SessionsTotal(f))
	}
	return answer, err
}

// Summary is Reader's.
func (q SQL) Summary(ctx context.Context, f Filter) (answer Summary, err error) {
	err = q.Rows(ctx, q.Dialect.Summary(f), func(row Row) error {
		answer.Sessions, _ = row.Int(0)
		group := Group{Model: row.Text(1), Provider: row.Text(2), Usage: ScanUsage(row, 3)}
		answer.Groups = append(answer.Groups, group)
		answer.Usage.Add(group.Usage)
		return nil
	})
	return answer, err
}

// Daily is Reader's.
func (q SQL) Daily(ctx context.Context, f Filter) (answer Days, err error) {
	err = q.Rows(ctx, q.Dialect.Daily(f), func(row Row) error {
		answer.Days = append(answer.Days, Day{Date: row.Text(0), Usage: ScanUsage(row, 1)})
		return nil
	})
	return answer, err
}

// total is asked for when a page has no row that would say it: it lies beyond the end, or
// there is nothing.
func (q SQL) total(ctx context.Context, p Page, s Statement) (total int64, err error) {
	if p.Offset == 0 && p.Limit > 0 {
		return 0, nil
	}
	err = q.Rows(ctx, s, func(row Row) error {
		total, _ = row.Int(0)
		return nil
	})
	return total, err
}
