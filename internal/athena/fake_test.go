package athena_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"switchboard/internal/athena"
)

// script is how a query of the fake goes.
type script struct {
	states    []string // at each look; the last one stays. Default SUCCEEDED
	scanned   []int64  // likewise
	reason    string
	retryable bool
	columns   []string
	rows      [][]any // string, int64 or int, or nil for NULL
	page      int     // rows in one answer, default 1000
}

// fake is Athena's four operations as its API reference describes them.
type fake struct {
	// play says how the n-th query goes, from 1.
	play func(n int, sql string) script
	// refuse is the code of an error instead of an answer to the n-th call of an operation,
	// from 1, or "".
	refuse func(op string, n int) string
	// slow is how long a call takes.
	slow func(op string) time.Duration

	mu      sync.Mutex
	calls   []call
	queries []*query
	tokens  map[string]string // of start, to the query's id
}

type call struct {
	op, id string
	at     time.Time
}

type query struct {
	script
	sql, database, workgroup string
	looks                    int
}

func (f *fake) Do(r *http.Request) (*http.Response, error) {
	op := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonAthena.")
	if f.slow != nil {
		select {
		case <-time.After(f.slow(op)):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	w := httptest.NewRecorder()
	f.serve(w, r, op)
	return w.Result(), nil
}

type input struct {
	QueryString, WorkGroup, ClientRequestToken string
	QueryExecutionContext                      struct{ Database string }
	QueryExecutionID                           string `json:"QueryExecutionId"`
	NextToken                                  string
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request, op string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var in input
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		answer(w, http.StatusBadRequest, map[string]any{"__type": "SerializationException"})
		return
	}
	f.calls = append(f.calls, call{op, in.QueryExecutionID, time.Now()})
	if f.refuse != nil {
		if code := f.refuse(op, f.countLocked(op)); code != "" {
			answer(w, http.StatusBadRequest, map[string]any{"__type": code, "Message": "line 1:2: no 'secret value' here"})
			return
		}
	}
	if op == "StartQueryExecution" {
		f.start(w, in)
		return
	}
	n := 0
	if _, err := fmt.Sscanf(in.QueryExecutionID, "query-%d", &n); err != nil || n < 1 || n > len(f.queries) {
		answer(w, http.StatusBadRequest, map[string]any{"__type": "InvalidRequestException", "Message": "no such query"})
		return
	}
	q := f.queries[n-1]
	switch op {
	case "GetQueryExecution":
		f.look(w, q, in.QueryExecutionID)
	case "GetQueryResults":
		results(w, q, in.NextToken)
	case "StopQueryExecution":
		q.states, q.looks = []string{"CANCELLED"}, 0
		answer(w, http.StatusOK, map[string]any{})
	}
}

func (f *fake) start(w http.ResponseWriter, in input) {
	id, known := f.tokens[in.ClientRequestToken]
	if !known {
		q := &query{sql: in.QueryString, database: in.QueryExecutionContext.Database, workgroup: in.WorkGroup}
		f.queries = append(f.queries, q)
		if f.play != nil {
			q.script = f.play(len(f.queries), in.QueryString)
		}
		id = fmt.Sprintf("query-%d", len(f.queries))
		if f.tokens == nil {
			f.tokens = map[string]string{}
		}
		f.tokens[in.ClientRequestToken] = id
	}
	answer(w, http.StatusOK, map[string]any{"QueryExecutionId": id})
}

func (f *fake) look(w http.ResponseWriter, q *query, id string) {
	at := func(n int) int { return min(q.looks, n-1) }
	state := "SUCCEEDED"
	if len(q.states) > 0 {
		state = q.states[at(len(q.states))]
	}
	execution := map[string]any{"QueryExecutionId": id, "Query": q.sql, "WorkGroup": q.workgroup}
	status := map[string]any{"State": state}
	if state == "FAILED" || state == "CANCELLED" {
		status["StateChangeReason"] = q.reason
		status["AthenaError"] = map[string]any{"Retryable": q.retryable, "ErrorMessage": q.reason}
	}
	execution["Status"] = status
	if len(q.scanned) > 0 {
		execution["Statistics"] = map[string]any{"DataScannedInBytes": q.scanned[at(len(q.scanned))]}
	}
	q.looks++
	answer(w, http.StatusOK, map[string]any{"QueryExecution": execution})
}

func results(w http.ResponseWriter, q *query, token string) {
	var rows, columns []any
	for _, name := range q.columns {
		columns = append(columns, map[string]any{"Name": name, "Type": "varchar"})
	}
	from, page := 0, q.page
	if page == 0 {
		page = 1000
	}
	if token == "" {
		var names []any
		for _, name := range q.columns {
			names = append(names, name)
		}
		rows = append(rows, data(names))
	} else if _, err := fmt.Sscanf(token, "from %d", &from); err != nil {
		answer(w, http.StatusBadRequest, map[string]any{"__type": "InvalidRequestException"})
		return
	}
	to := min(from+page, len(q.rows))
	for _, row := range q.rows[from:to] {
		rows = append(rows, data(row))
	}
	out := map[string]any{"ResultSet": map[string]any{"Rows": rows, "ResultSetMetadata": map[string]any{"ColumnInfo": columns}}}
	if to < len(q.rows) {
		out["NextToken"] = fmt.Sprintf("from %d", to)
	}
	answer(w, http.StatusOK, out)
}

func data(row []any) map[string]any {
	var list []any
	for _, value := range row {
		datum := map[string]any{}
		if value != nil {
			datum["VarCharValue"] = fmt.Sprint(value)
		}
		list = append(list, datum)
	}
	return map[string]any{"Data": list}
}

func answer(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (f *fake) countLocked(op string) int {
	n := 0
	for _, c := range f.calls {
		if c.op == op {
			n++
		}
	}
	return n
}

func (f *fake) count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.countLocked(op)
}

func (f *fake) times(op string) (list []time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c.op == op {
			list = append(list, c.at)
		}
	}
	return list
}

func (f *fake) statements() (list []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range f.queries {
		list = append(list, q.sql)
	}
	return list
}

// noon is when the tests take place.
func noon() time.Time { return time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC) }

type rig struct {
	*athena.Reader
	fake *fake
	log  *bytes.Buffer
}

func open(t *testing.T, f *fake, edit ...func(*athena.Options)) rig {
	t.Helper()
	log := &bytes.Buffer{}
	o := athena.Options{
		Database: "events", Workgroup: "audit", Now: noon,
		Logger: slog.New(slog.NewJSONHandler(log, nil)),
	}
	for _, one := range edit {
		one(&o)
	}
	r, err := athena.New(athena.NewClient(config(f)), o)
	if err != nil {
		t.Fatal(err)
	}
	return rig{r, f, log}
}

func config(client aws.HTTPClient) aws.Config {
	return aws.Config{
		Region: "eu-west-1", HTTPClient: client, BaseEndpoint: aws.String("http://athena.invalid"),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	}
}

// daily is a script that answers Daily with days of so many requests.
func daily(requests ...int) script {
	s := script{columns: slices.Concat([]string{"day"}, usageColumns())}
	for i, n := range requests {
		row := []any{time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly), n}
		for range usageColumns()[1:] {
			row = append(row, 0)
		}
		s.rows = append(s.rows, row)
	}
	return s
}
