package athena

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/athena/types"
)

// row is one of a result as audit.Row. A value that is no number where one should be makes
// *bad true.
type row struct {
	data []types.Datum
	bad  *bool
}

// Text implements audit.Row: NULL is "".
func (r row) Text(col int) string {
	if col >= len(r.data) || r.data[col].VarCharValue == nil {
		return ""
	}
	return *r.data[col].VarCharValue
}

// Int implements audit.Row.
func (r row) Int(col int) (n int64, known bool) {
	if col >= len(r.data) || r.data[col].VarCharValue == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(*r.data[col].VarCharValue, 10, 64)
	if err != nil {
		*r.bad = true
	}
	return n, err == nil
}

// header tells whether a row has the names of the columns: the first of a SELECT's has.
func header(data []types.Datum, columns []types.ColumnInfo) bool {
	if len(data) != len(columns) {
		return false
	}
	for i := range data {
		if data[i].VarCharValue == nil || columns[i].Name == nil || *data[i].VarCharValue != *columns[i].Name {
			return false
		}
	}
	return true
}
