package admin_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/admin"
	"switchboard/internal/audit"
	"switchboard/internal/health"
	"switchboard/internal/record"
)

// fakeReader gives the answers that a test wants and keeps what was asked.
type fakeReader struct {
	threads  audit.Threads
	log      audit.Log
	sessions audit.SessionUsages
	summary  audit.Summary
	daily    audit.Days
	err      error
	filter   audit.Filter
	page     audit.Page
	asked    int
	keeping  sync.Mutex
}

func (f *fakeReader) keep(filter audit.Filter, page audit.Page) {
	f.keeping.Lock()
	defer f.keeping.Unlock()
	f.asked++
	if f.filter = filter; page != (audit.Page{}) {
		f.page = page
	}
}

func (f *fakeReader) Threads(_ context.Context, q audit.Filter, p audit.Page) (audit.Threads, error) {
	f.keep(q, p)
	return f.threads, f.err
}

func (f *fakeReader) Log(_ context.Context, q audit.Filter, p audit.Page) (audit.Log, error) {
	f.keep(q, p)
	return f.log, f.err
}

func (f *fakeReader) Sessions(_ context.Context, q audit.Filter, p audit.Page) (audit.SessionUsages, error) {
	f.keep(q, p)
	return f.sessions, f.err
}

func (f *fakeReader) Summary(_ context.Context, q audit.Filter) (audit.Summary, error) {
	f.keep(q, audit.Page{})
	return f.summary, f.err
}

func (f *fakeReader) Daily(_ context.Context, q audit.Filter) (audit.Days, error) {
	f.keep(q, audit.Page{})
	return f.daily, f.err
}

func asking(reader audit.Reader) *admin.Admin {
	o := newAdmin(health.NewBoard(health.Defaults())).Options
	o.Reader = reader
	return admin.New(o)
}

func ptr(n int64) *int64 { return &n }

func event() record.Event {
	return record.Event{
		EventID: "01K0", CreatedAt: 1772323198000, RequestID: "r1", SessionID: "s1", UserPath: "/team", RequestedModel: "smart",
		ModelName: "m-big", Provider: "A", DecisionReason: "affinity", UsageQuality: "exact", ResponseStatus: 200, Outcome: "ok", Affinity: "pinned",
		InputTokens: ptr(100), CachedInputTokens: ptr(80), CostNanoUSD: ptr(46620), Attempts: []record.Attempt{{Provider: "A", Model: "m-big", Status: 200}},
	}
}

func coverage() audit.Coverage {
	return audit.Coverage{AsOf: time.Date(2026, 3, 1, 0, 0, 1, 5e8, time.UTC), Complete: true, Unreadable: 2}
}

func filled() *fakeReader {
	usage := audit.Usage{
		Requests: 10, InputTokens: 2341, CachedInputTokens: 100, CacheWriteTokens: 5, OutputTokens: 10, InputCostNanoUSD: 46_620,
		CostNanoUSD: 46_620, Unpriced: 2, Switches: 1, SwitchCostNanoUSD: 1_500_000_000,
	}
	return &fakeReader{
		threads:  audit.Threads{Sessions: []audit.Thread{{SessionID: "s1", UserPath: "/team", RequestCount: 6, Latest: event()}}, Total: 3, Coverage: coverage()},
		log:      audit.Log{Entries: []record.Event{event()}, Total: 6, Coverage: coverage()},
		sessions: audit.SessionUsages{Entries: []audit.SessionUsage{{SessionID: "s1", UserPath: "/team", LastUsedAt: 1772323198000, Usage: usage}}, Total: 1, Coverage: coverage()},
		summary:  audit.Summary{Usage: usage, Sessions: 4, Groups: []audit.Group{{Model: "m-big", Provider: "A", Usage: usage}}, Coverage: coverage()},
		daily:    audit.Days{Days: []audit.Day{{Date: "2026-02-28", Usage: usage}}, Coverage: coverage()},
	}
}

const wantUsage = `"requests":10,"input_tokens":2341,"cached_input_tokens":100,"cache_write_tokens":5,"output_tokens":10,"total_tokens":2351,
	"input_cost":0.00004662,"output_cost":null,"total_cost":0.00004662,"unpriced_requests":2,"switches":1,"switch_cost":1.5,"cache_hit_rate":0.042716787697565144`

const wantCoverage = `"as_of":"2026-03-01T00:00:01.5Z","complete":true,"unreadable_records":2`

func TestQuestions(t *testing.T) {
	entry, _ := json.Marshal(event())
	for _, tt := range []struct{ path, want string }{
		{"/admin/audit/sessions?limit=1&offset=2&until=1772323200000", `{"sessions":[{"session_id":"s1","user_path":"/team","request_count":6,"latest":` + string(entry) + `}],"total":3,"limit":1,"offset":2,"until":1772323200000,` + wantCoverage + `}`},
		{"/admin/audit/log?until=1772323200000", `{"entries":[` + string(entry) + `],"total":6,"limit":50,"offset":0,"until":1772323200000,` + wantCoverage + `}`},
		{"/admin/usage/sessions?until=1772323200000", `{"entries":[{"session_id":"s1","user_path":"/team",` + wantUsage + `,"last_used_at":"2026-02-28T23:59:58Z"}],"total":1,"limit":50,"offset":0,"until":1772323200000,` + wantCoverage + `}`},
		{"/admin/usage/summary", `{` + wantUsage + `,"sessions":4,"groups":[{"model":"m-big","provider":"A",` + wantUsage + `}],` + wantCoverage + `}`},
		{"/admin/usage/daily", `{"days":[{"date":"2026-02-28",` + wantUsage + `}],` + wantCoverage + `}`},
	} {
		w := get(asking(filled()), http.MethodGet, tt.path, adminKey)
		if diff := cmp.Diff(decoded(t, tt.want), decoded(t, w.Body.String())); w.Code != 200 || diff != "" {
			t.Errorf("%s: status %d (-want +got):\n%s", tt.path, w.Code, diff)
		}
	}
}

// Money is written as it is, not as a float would have it.
func TestSUSE06MoneyIsExact(t *testing.T) {
	reader := filled()
	reader.summary.CostNanoUSD = 123_456_789_012_345_678
	if w := get(asking(reader), http.MethodGet, "/admin/usage/summary", adminKey); !strings.Contains(w.Body.String(), `"total_cost":123456789.012345678,`) {
		t.Errorf("summary = %s", w.Body)
	}
}

// S-USE-06: unknown is null, a request that cost nothing is 0, and a sum says what is missing.
func TestSUSE06UnknownIsNotZero(t *testing.T) {
	for _, tt := range []struct {
		usage audit.Usage
		want  string
	}{
		{audit.Usage{Requests: 1}, `"total_cost":0,"unpriced_requests":0`},
		{audit.Usage{Requests: 1, Unpriced: 1}, `"total_cost":null,"unpriced_requests":1`},
		{audit.Usage{Requests: 2, Unpriced: 1, CostNanoUSD: 7}, `"total_cost":0.000000007,"unpriced_requests":1`},
		{audit.Usage{Requests: 1}, `"cache_hit_rate":null`},
		{audit.Usage{Requests: 1, InputTokens: 4, CachedInputTokens: 3}, `"cache_hit_rate":0.75`},
		{audit.Usage{Requests: 1, InputTokens: 4}, `"cache_hit_rate":0`},
	} {
		w := get(asking(&fakeReader{summary: audit.Summary{Usage: tt.usage}}), http.MethodGet, "/admin/usage/summary", adminKey)
		if !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%+v: %s, want %s", tt.usage, w.Body, tt.want)
		}
	}
}

func TestQuestionsWithoutEvents(t *testing.T) {
	for path, want := range map[string]string{
		"/admin/audit/sessions": `"sessions":[]`, "/admin/audit/log": `"entries":[]`, "/admin/usage/sessions": `"entries":[]`,
		"/admin/usage/summary": `"groups":[]`, "/admin/usage/daily": `"days":[]`,
	} {
		w := get(asking(&fakeReader{}), http.MethodGet, path, adminKey)
		if got := w.Body.String(); w.Code != 200 || !strings.Contains(got, want) || !strings.Contains(got, `"as_of":null,"complete":false`) {
			t.Errorf("%s = %d %s", path, w.Code, got)
		}
	}
}

// S-AUD-03, S-AUD-04: what cannot be answered is refused before anything is read.
func TestQuestionsRefuse(t *testing.T) {
	for _, path := range []string{
		"/admin/audit/sessions?limit=0", "/admin/audit/log?limit=201", "/admin/usage/sessions?limit=x", "/admin/usage/summary?limit=5",
		"/admin/usage/daily?to=tomorrow", "/admin/audit/log?from=2026-03-02&to=2026-03-01", "/admin/audit/sessions?group=off",
	} {
		reader := filled()
		w := get(asking(reader), http.MethodGet, path, adminKey)
		if w.Code != 400 || reader.asked != 0 || !strings.Contains(w.Body.String(), `"code":"invalid_parameter"`) {
			t.Errorf("%s = %d %s", path, w.Code, w.Body)
		}
	}
}

// S-AUD-05: an id is asked for as the characters that it has.
func TestSAUD05QuestionsTakeIDsAsText(t *testing.T) {
	for _, id := range []string{"host/BLAH|x", "a%2Fb", "a+b c&d=e#f", "会话-1", "../admin"} {
		for _, path := range []string{"/admin/audit/sessions", "/admin/audit/log", "/admin/usage/sessions", "/admin/usage/summary", "/admin/usage/daily"} {
			reader := filled()
			w := get(asking(reader), http.MethodGet, path+"?user_path=/team&session_id="+url.QueryEscape(id), adminKey)
			if want := (audit.Filter{SessionID: id, UserPath: "/team"}); w.Code != 200 || reader.filter != want {
				t.Errorf("%s asked for %+v, want %+v", path, reader.filter, want)
			}
		}
	}
}

func TestQuestionsThatFail(t *testing.T) {
	secret := "s3://bucket: AccessDenied"
	for _, tt := range []struct {
		err  error
		want int
		code string
	}{
		{errors.New(secret), 503, "events_unavailable"},
		{fmt.Errorf("%s: %w", secret, context.DeadlineExceeded), 504, "events_timeout"},
	} {
		var log strings.Builder
		o := asking(&fakeReader{err: tt.err}).Options
		o.Logger = slog.New(slog.NewJSONHandler(&log, nil))
		w := get(admin.New(o), http.MethodGet, "/admin/audit/log", adminKey)
		if w.Code != tt.want || !strings.Contains(w.Body.String(), tt.code) || strings.Contains(w.Body.String(), "bucket") || !strings.Contains(log.String(), "AccessDenied") {
			t.Errorf("%v = %d %s, log %s", tt.err, w.Code, w.Body, log.String())
		}
	}
	if w := get(asking(nil), http.MethodGet, "/admin/audit/log", adminKey); w.Code != 503 || !strings.Contains(w.Body.String(), "no_events") {
		t.Errorf("without a reader = %d %s", w.Code, w.Body)
	}
}

func TestExport(t *testing.T) {
	for path, rows := range map[string]int{
		"/admin/audit/sessions": 1, "/admin/audit/log": 1, "/admin/usage/sessions": 1, "/admin/usage/summary": 1, "/admin/usage/daily": 1,
	} {
		w := get(asking(filled()), http.MethodGet, path+"?format=csv", adminKey)
		all, err := csv.NewReader(w.Body).ReadAll()
		if err != nil || len(all) != rows+1 || w.Header().Get("Content-Type") != "text/csv; charset=utf-8; header=present" {
			t.Errorf("%s: %v, %v, %s", path, all, err, w.Header())
		}
		name := strings.ReplaceAll(strings.TrimPrefix(path, "/admin/"), "/", "-")
		if got, want := w.Header().Get("Content-Disposition"), `attachment; filename="switchboard-`+name+`.csv"`; got != want {
			t.Errorf("%s: Content-Disposition %q, want %q", path, got, want)
		}
		if w.Header().Get("X-Switchboard-As-Of") != "2026-03-01T00:00:01.5Z" || w.Header().Get("X-Switchboard-Complete") != "true" {
			t.Errorf("%s: coverage headers %v", path, w.Header())
		}
		until := "" // the two answers are not of the same millisecond
		if !strings.HasSuffix(path, "summary") && !strings.HasSuffix(path, "daily") {
			until = "until=1772323200000"
		}
		asFile := get(asking(filled()), http.MethodGet, path+"?format=json&"+until, adminKey)
		plain := get(asking(filled()), http.MethodGet, path+"?"+until, adminKey)
		if asFile.Body.String() != plain.Body.String() || !strings.HasSuffix(asFile.Header().Get("Content-Disposition"), `.json"`) || plain.Header().Get("Content-Disposition") != "" {
			t.Errorf("%s: JSON as a file differs: %s", path, asFile.Header())
		}
	}
}

// A cell that a client chose is no formula; a number stays one.
func TestExportFormulas(t *testing.T) {
	for _, hostile := range []string{"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "=HYPERLINK(\"https://x\",\"y\")", "a,b\"c\nd", "'=1"} {
		reader := filled()
		e := &reader.log.Entries[0]
		texts := []*string{&e.EventID, &e.RequestID, &e.SessionID, &e.SessionKey, &e.SessionSource, &e.UserPath, &e.RequestedModel, &e.ModelName, &e.Provider, &e.KeyID, &e.DecisionReason}
		for _, field := range texts {
			*field = hostile
		}
		e.CostNanoUSD, e.DegradedProviders = ptr(-5), []string{hostile}
		s := &reader.sessions.Entries[0]
		s.SessionID, s.UserPath, s.SwitchCostNanoUSD = hostile, hostile, -5
		for _, path := range []string{"/admin/audit/log?format=csv", "/admin/usage/sessions?format=csv"} {
			all, err := csv.NewReader(get(asking(reader), http.MethodGet, path, adminKey).Body).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			for i, cell := range all[1] {
				if numeric := strings.HasPrefix(cell, "-0.") || cell == "-5"; !numeric && cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") {
					t.Errorf("%s: %s is %q", path, all[0][i], cell)
				}
			}
			if !slices.Contains(all[1], "-5") && !slices.Contains(all[1], "-0.000000005") {
				t.Errorf("%s: a negative number is no number: %q", path, all[1])
			}
		}
	}
}

// The columns of an export are the event's fields, none left out.
func TestExportHasEveryField(t *testing.T) {
	var want []string
	for i := range reflect.TypeFor[record.Event]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[record.Event]().Field(i).Tag.Get("json"), ",")
		want = append(want, name)
	}
	all, _ := csv.NewReader(get(asking(filled()), http.MethodGet, "/admin/audit/log?format=csv", adminKey).Body).ReadAll()
	if diff := cmp.Diff(want, all[0]); diff != "" || len(all[1]) != len(want) {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}
