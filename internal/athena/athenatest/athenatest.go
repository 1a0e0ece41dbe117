// Package athenatest is what MiniStack's Athena, which is DuckDB, needs to answer as Athena does.
package athenatest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"

	"switchboard/internal/record"
)

// functions of Trino as DuckDB's. The SELECT in front keeps the statement one that yields rows.
const functions = `SELECT 1; CREATE MACRO json_format(x) AS CAST(x AS VARCHAR);
CREATE MACRO date_add(unit, n, d) AS CAST(d + to_days(CAST(n AS INTEGER)) AS DATE); `

// WithFunctions puts the functions that DuckDB lacks in front of each statement that is started.
type WithFunctions struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w WithFunctions) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("X-Amz-Target") == "AmazonAthena.StartQueryExecution" {
		var in map[string]any
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			return nil, err
		}
		query, _ := in["QueryString"].(string)
		in["QueryString"] = functions + query
		body, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return w.RoundTripper.RoundTrip(r)
}

// PatternKey is where the pattern lies below a table's location: in a partition that no
// question reads.
const PatternKey = "dt=2001-01-01/hour=00/pattern"

// Pattern is an event with every field, whose texts look like nothing but text: DuckDB guesses
// the columns from what it finds, and takes the types of a table from nowhere else.
func Pattern() record.Event {
	e := record.Event{
		Attempts: []record.Attempt{{Status: 1}}, DegradedProviders: []string{"x"}, Switched: true, Stream: true, CreatedAt: 1, ResponseStatus: 1, LatencyMillis: 1,
	}
	fill(reflect.ValueOf(&e).Elem())
	fill(reflect.ValueOf(&e.Attempts[0]).Elem())
	return e
}

func fill(v reflect.Value) {
	one := int64(1)
	for i := range v.NumField() {
		switch field := v.Field(i); field.Kind() {
		case reflect.String:
			field.SetString("x")
		case reflect.Pointer:
			field.Set(reflect.ValueOf(&one))
		}
	}
}
