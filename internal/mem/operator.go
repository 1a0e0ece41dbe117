package mem

import (
	"cmp"
	"context"
	"slices"
	"time"

	"switchboard/internal/affinity"
)

// Names of the operator's operations that a Fault sees.
const (
	OpPins  = "pins"
	OpClear = "clear"
)

var _ affinity.Operator = (*Operator)(nil)

// Operator is a Store as operators see it. A type of its own, because a Store's Pins are all
// its rows.
type Operator struct{ *Store }

// Pins implements affinity.Operator, in the order of the keys.
func (o Operator) Pins(ctx context.Context, q affinity.PinQuery, now time.Time) (affinity.PinPage, error) {
	if _, err := o.Fault.before(ctx, OpPins); err != nil {
		return affinity.PinPage{}, err
	}
	var after *affinity.Ref
	if q.Cursor != "" {
		ref, err := affinity.ParseCursor(q.Cursor)
		if err != nil {
			return affinity.PinPage{}, err
		}
		after = &ref
	}
	rows := o.Store.Pins()
	slices.SortFunc(rows, func(a, b affinity.Pin) int { return compareRefs(a.Ref, b.Ref) })
	var page affinity.PinPage
	for i := range rows {
		row := &rows[i]
		if !row.ExpiresAt.After(now) || !q.Chooses(row) || after != nil && compareRefs(row.Ref, *after) <= 0 {
			continue
		}
		if len(page.Pins) == max(1, q.Limit) {
			page.Next = affinity.Cursor(page.Pins[len(page.Pins)-1].Ref)
			break
		}
		page.Pins = append(page.Pins, *row)
	}
	return page, nil
}

func compareRefs(a, b affinity.Ref) int {
	return cmp.Or(cmp.Compare(a.SessionKey, b.SessionKey), cmp.Compare(a.Model, b.Model))
}

// Clear implements affinity.Operator.
func (s *Store) Clear(ctx context.Context, read affinity.Pin) error {
	_, err := s.write(ctx, OpClear, func() (affinity.Pin, error) {
		row, ok := s.pins[read.Ref]
		switch {
		case !ok:
			return row, affinity.ErrNotFound
		case !asRead(row, read):
			return row, affinity.ErrConflict
		}
		delete(s.pins, read.Ref)
		return row, nil
	})
	return err
}
