package dynamo

import (
	"strings"

	"switchboard/internal/affinity"
)

// expression builds the texts of one conditional write. Every name in them is a #placeholder:
// a list of reserved words that grows can never break a request.
type expression struct {
	names  map[string]string
	values item
	sets   strings.Builder
	adds   strings.Builder
	where  strings.Builder
}

func newExpression() *expression {
	return &expression{names: make(map[string]string, 16), values: make(item, 16)}
}

// name is the placeholder of a column.
func (e *expression) name(column string) string {
	placeholder := "#" + column
	e.names[placeholder] = column
	return placeholder
}

// value binds a value; role tells values of one column apart.
func (e *expression) value(role, column string, v attr) string {
	placeholder := ":" + role + "_" + column
	e.values[placeholder] = v
	return placeholder
}

func (e *expression) set(column string, v attr) {
	if e.sets.Len() > 0 {
		e.sets.WriteString(", ")
	}
	e.sets.WriteString(e.name(column))
	e.sets.WriteString(" = ")
	e.sets.WriteString(e.value("new", column, v))
}

// add adds in place: a read and a write would lose what others add in between.
func (e *expression) add(column string, n int64) {
	if e.adds.Len() > 0 {
		e.adds.WriteString(", ")
	}
	e.adds.WriteString(e.name(column))
	e.adds.WriteByte(' ')
	e.adds.WriteString(e.value("more", column, number(n)))
}

// and adds a condition that must hold too.
func (e *expression) and(condition string) {
	if e.where.Len() > 0 {
		e.where.WriteString(" AND ")
	}
	e.where.WriteString(condition)
}

// or adds a condition that is enough by itself.
func (e *expression) or(condition string) {
	if e.where.Len() > 0 {
		e.where.WriteString(" OR ")
	}
	e.where.WriteString(condition)
}

// is compares a column; a column that is absent or of another type than v fails.
func (e *expression) is(column, operator, role string, v attr) string {
	return e.name(column) + " " + operator + " " + e.value(role, column, v)
}

func (e *expression) absent(column string) string {
	return "attribute_not_exists(" + e.name(column) + ")"
}

// still says that a column is as it was in an item that was read: of the same type and
// value, or absent again.
func (e *expression) still(raw item, column string) string {
	if v, there := raw[column]; there {
		return e.is(column, "=", "old", v)
	}
	return e.absent(column)
}

// identity is what makes a row "as read" (affinity.Store).
var identity = [...]string{colProvider, colKeyID, colKeyPrint, colEpoch}

// asRead says that the row is as read. Where the item itself was read, raw, its absent
// columns count as well.
func (e *expression) asRead(read *affinity.Pin, raw item) string {
	if raw == nil {
		raw = item{
			colProvider: text(read.Provider), colKeyID: text(read.KeyID),
			colKeyPrint: text(read.KeyPrint), colEpoch: number(read.Epoch),
		}
	}
	var terms [len(identity)]string
	for i, column := range identity {
		terms[i] = e.still(raw, column)
	}
	return strings.Join(terms[:], " AND ")
}

// unmoved says that the row is still what was found, as far as a write depends on it. A move
// depends on whether the pin has served, and overwrites the rest of the target, which must
// not be malformed: overwritten, it would never have been logged.
func (e *expression) unmoved(found *row, moves bool) {
	p := &found.pin
	e.and(e.asRead(p, found.raw))
	switch {
	case found.raw != nil && moves:
		for _, column := range [...]string{colActive, colTargetModel, colSurface, colSwitchRequest} {
			e.and(e.still(found.raw, column))
		}
	case found.raw != nil:
		e.and(e.still(found.raw, colActive))
	case moves:
		e.and(e.is(colActive, "=", "old", truth(p.Served)))
		e.and(e.is(colTargetModel, "=", "old", text(p.Target.Model)))
		e.and(e.is(colSurface, "=", "old", text(p.Surface)))
		e.and(e.is(colSwitchRequest, "=", "old", text(p.LastSwitchRequestID)))
	default:
		e.and("attribute_type(" + e.name(colActive) + ", " + e.value("type", colActive, text("BOOL")) + ")")
	}
}

// update is the update expression; nil without one.
func (e *expression) update() *string {
	var parts []string
	if e.sets.Len() > 0 {
		parts = append(parts, "SET "+e.sets.String())
	}
	if e.adds.Len() > 0 {
		parts = append(parts, "ADD "+e.adds.String())
	}
	return ptr(strings.Join(parts, " "))
}

func (e *expression) condition() *string { return ptr(e.where.String()) }

// bound is the values; an empty map of them is refused.
func (e *expression) bound() item {
	if len(e.values) == 0 {
		return nil
	}
	return e.values
}

func ptr[T any](v T) *T { return &v }
