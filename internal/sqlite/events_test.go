package sqlite_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	zombie "zombiezen.com/go/sqlite"

	"switchboard/internal/record"
	"switchboard/internal/record/recordtest"
	"switchboard/internal/sqlite"
)

// rawConn opens the file beside the store, as another program would.
func rawConn(t *testing.T, path string) *zombie.Conn {
	t.Helper()
	c, err := zombie.OpenConn(path, zombie.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// sql runs one statement there and returns its rows, each as column name to value.
func sql(t *testing.T, c *zombie.Conn, statement string) (rows []map[string]any) {
	t.Helper()
	stmt, _, err := c.PrepareTransient(statement)
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Finalize()
	for {
		more, err := stmt.Step()
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		if !more {
			return rows
		}
		row := make(map[string]any)
		for col := range stmt.ColumnCount() {
			switch stmt.ColumnType(col) {
			case zombie.TypeInteger:
				row[stmt.ColumnName(col)] = stmt.ColumnInt64(col)
			case zombie.TypeText:
				row[stmt.ColumnName(col)] = stmt.ColumnText(col)
			case zombie.TypeNull:
				row[stmt.ColumnName(col)] = nil
			default:
				t.Fatalf("column %s has type %v", stmt.ColumnName(col), stmt.ColumnType(col))
			}
		}
		rows = append(rows, row)
	}
}

// readEvents rebuilds the events from the columns alone, by their JSON names.
func readEvents(t *testing.T, path string) []record.Event {
	t.Helper()
	var events []record.Event
	for _, row := range sql(t, rawConn(t, path), "SELECT * FROM routing_events") {
		for name, value := range row {
			switch {
			case value == nil:
				delete(row, name)
			case name == "attempts" || name == "degraded_providers":
				row[name] = json.RawMessage(value.(string))
			case name == "switched" || name == "stream":
				row[name] = value.(int64) == 1
			}
		}
		text, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		var event record.Event
		if err := json.Unmarshal(text, &event); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		events = append(events, event)
	}
	return events
}

func TestRecorderKeepsTheContract(t *testing.T) {
	recordtest.Run(t, func(t *testing.T) recordtest.Backend {
		path := filepath.Join(t.TempDir(), "sessions.db")
		db, err := sqlite.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return recordtest.Backend{
			Recorder: db,
			Close:    db.Close,
			Read:     func(t *testing.T) []record.Event { return readEvents(t, path) },
		}
	})
}

// A field added to the event needs a column of its name.
func TestEveryEventFieldHasAColumn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	open(t, path, nil)
	var columns, fields []string
	for _, row := range sql(t, rawConn(t, path), "PRAGMA table_info(routing_events)") {
		columns = append(columns, row["name"].(string))
	}
	event := reflect.TypeFor[record.Event]()
	for i := range event.NumField() {
		name, _, _ := strings.Cut(event.Field(i).Tag.Get("json"), ",")
		fields = append(fields, name)
	}
	slices.Sort(columns)
	slices.Sort(fields)
	if !slices.Equal(columns, fields) {
		t.Errorf("columns = %q\nwant the event's %q", columns, fields)
	}
}

func TestRecorded(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "sessions.db"), nil)
	for _, n := range []int{1, 3} {
		rec(t, db, n)
	}
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for n := range 5 {
		ids = append(ids, recordtest.Full(n).EventID)
	}
	for range 2 { // the statement is kept
		got, err := db.Recorded(t.Context(), append(ids, ids[1]))
		if want := map[string]bool{ids[1]: true, ids[3]: true}; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Recorded = %v, %v, want %v", got, err, want)
		}
	}
}
