package main

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/fleettest"
	"switchboard/internal/functionurl"
	"switchboard/internal/record"
)

// Prices of the rig, in nano-USD for a token.
func priceA(n tokens) usd { return usd((n.in-n.cached)*1100 + n.cached*275 + n.out*4400) }
func priceB(n tokens) usd { return usd((n.in-n.cached)*2000 + n.cached*500 + n.out*8000) }

// sums are the figures of a usage, as the API names them.
type sums struct {
	Requests   int64 `json:"requests"`
	Input      int64 `json:"input_tokens"`
	Cached     int64 `json:"cached_input_tokens"`
	Output     int64 `json:"output_tokens"`
	Total      int64 `json:"total_tokens"`
	Cost       usd   `json:"total_cost"`
	Unpriced   int64 `json:"unpriced_requests"`
	Switches   int64 `json:"switches"`
	SwitchCost usd   `json:"switch_cost"`
}

func (s *sums) add(n tokens, cost usd) {
	s.Requests++
	s.Input += n.in
	s.Cached += n.cached
	s.Output += n.out
	s.Total += n.in + n.out
	if s.Cost += cost; cost == unknown {
		s.Cost -= unknown
		s.Unpriced++
	}
}

// covered is what every answer says of what it was built from.
type covered struct {
	AsOf     *time.Time `json:"as_of"`
	Complete bool       `json:"complete"`
}

func (c covered) check(t *testing.T, what string) {
	t.Helper()
	if !c.Complete || c.AsOf == nil {
		t.Errorf("%s: complete is %v, as of %v; want true and a time", what, c.Complete, c.AsOf)
	}
}

type thread struct {
	SessionID string       `json:"session_id"`
	UserPath  string       `json:"user_path"`
	Count     int64        `json:"request_count"`
	Latest    record.Event `json:"latest"`
}

type threads struct {
	Sessions []thread
	Total    int
	covered
}

type requests struct {
	Entries []record.Event
	Total   int
	covered
}

type sessionSums struct {
	SessionID string `json:"session_id"`
	UserPath  string `json:"user_path"`
	sums
}

// told is a conversation of two tenants under one id, with a switch, and what else there is:
// a failure, a client that leaves, requests of no session and one without a price. It returns
// the figures that the providers were told to report.
func told(s *stack) (all, alpha, beta sums) {
	s.Helper()
	first, second, third := tokens{1201, 0, 33}, tokens{2417, 1153, 91}, tokens{4099, 2048, 7}
	s.a.Does(uses(first))
	s.serve(turn{session: "shared"}, http.StatusOK, "A")
	alpha.add(first, priceA(first))
	s.a.Does(uses(second))
	s.serve(turn{session: "shared"}, http.StatusOK, "A")
	alpha.add(second, priceA(second))
	s.serve(turn{key: betaKey, session: "shared"}, http.StatusOK, "A")
	beta.add(second, priceA(second))
	s.serve(turn{}, http.StatusOK, "A") // no session
	all.add(second, priceA(second))

	s.a.Does(fleettest.Fails(http.StatusTooManyRequests)) // from now on for ten minutes
	s.b.Does(uses(third))
	s.serve(turn{session: "shared"}, http.StatusOK, "B")
	alpha.add(third, priceB(third))
	alpha.Switches++
	s.serve(turn{session: "shared"}, http.StatusOK, "B")
	alpha.add(third, priceB(third))
	s.serve(turn{model: "B/unpriced"}, http.StatusOK, "B")
	all.add(third, unknown)
	s.b.Does(uses(tokens{}))
	s.serve(turn{key: betaKey, session: "silent", model: "B/m"}, http.StatusOK, "B") // says no usage
	all.add(tokens{}, unknown)
	s.serve(turn{session: "down", model: "m-down"}, http.StatusServiceUnavailable, "")
	all.Requests++ // nobody served it: it is not unpriced, it cost nothing

	s.b.Does(fleettest.Drips)
	left := s.begin(turn{session: "left", model: "B/m", more: `,"stream":true`})
	left.Body.Read(make([]byte, 10)) //nolint:errcheck // the first output, or the test fails below
	left.Body.Close()                //nolint:errcheck // it is what is tested
	all.Requests++
	for _, tenant := range []sums{alpha, beta} {
		all.Requests += tenant.Requests
		all.Input += tenant.Input
		all.Cached += tenant.Cached
		all.Output += tenant.Output
		all.Total += tenant.Total
		all.Cost += tenant.Cost
		all.Switches += tenant.Switches
	}
	return all, alpha, beta
}

// Requests through one Function URL, delivered by Firehose, are seen through the other with the
// counts and the money that the providers were told to report.
func TestEventsReachTheOperator(t *testing.T) {
	// FailWrites: that a client has left is told, which on AWS it is not.
	s := newStack(t, functionurl.Options{Environments: 2, Spread: true, Freeze: true, FailWrites: true})
	all, alpha, beta := told(s)
	s.flush()

	var entries requests
	s.get(&entries, "/admin/audit/log", "session_id", "shared", "user_path", "/team/alpha")
	entries.check(t, "log")
	var costs []usd
	var switched []bool
	for _, e := range entries.Entries {
		costs, switched = append(costs, usd(*e.CostNanoUSD)), append(switched, e.Switched)
		if e.UserPath != "/team/alpha" || e.SessionID != "shared" {
			t.Errorf("an event of %s %s in the log of /team/alpha", e.UserPath, e.SessionID)
		}
	}
	if want := []bool{false, true, false, false}; entries.Total != 4 || !cmp.Equal(switched, want) {
		t.Fatalf("log of %d, switched %v, want 4, %v: newest first", entries.Total, switched, want)
	}
	if first, second, third := priceA(tokens{1201, 0, 33}), priceA(tokens{2417, 1153, 91}), priceB(tokens{4099, 2048, 7}); !cmp.Equal(costs, []usd{third, third, second, first}) {
		t.Errorf("costs %v, want %v", costs, []usd{third, third, second, first})
	}
	moved := entries.Entries[1]
	alpha.SwitchCost = usd(*moved.SwitchCostNanoUSD)
	all.SwitchCost = alpha.SwitchCost
	if len(moved.Attempts) != 2 || moved.Attempts[0].Provider != "A" || moved.Attempts[0].Status != http.StatusTooManyRequests || moved.DecisionReason != "fallback" || moved.Provider != "B" {
		t.Errorf("the switch is %+v, want A's 429 and then B", moved)
	}

	checkThreads(s)
	checkUsage(s, all, alpha, beta)
	checkExports(s, alpha)
}

// checkThreads looks at each conversation as one row.
func checkThreads(s *stack) {
	s.Helper()
	var found threads
	s.get(&found, "/admin/audit/sessions")
	found.check(s.T, "threads")
	got := map[string]string{}
	for _, thread := range found.Sessions {
		name := thread.UserPath + " " + thread.SessionID
		if thread.SessionID == "" {
			name = thread.Latest.RequestedModel
		}
		got[name] = fmt.Sprint(thread.Count, " ", thread.Latest.Outcome)
	}
	want := map[string]string{
		"/team/alpha shared": "4 ok", "/team/beta shared": "1 ok", "/team/beta silent": "1 ok", "/team/alpha down": "1 upstream_error",
		"/team/alpha left": "1 client_cancelled", "m": "1 ok", "B/unpriced": "1 ok",
	}
	if diff := cmp.Diff(want, got); diff != "" || found.Total != len(want) {
		s.Errorf("%d threads, want %d (-want +got):\n%s", found.Total, len(want), diff)
	}
	// The filter chooses the row; the count stays that of the session (S-AUD-02).
	s.get(&found, "/admin/audit/sessions", "provider", "A", "session_id", "shared", "user_path", "/team/alpha")
	if len(found.Sessions) != 1 || found.Sessions[0].Count != 4 || found.Sessions[0].Latest.Provider != "A" {
		s.Errorf("threads by provider = %+v, want the newest of A in a session of 4", found.Sessions)
	}
}

func checkUsage(s *stack, all, alpha, beta sums) {
	s.Helper()
	var sessions struct {
		Entries []sessionSums
		covered
	}
	s.get(&sessions, "/admin/usage/sessions", "session_id", "shared")
	sessions.check(s.T, "usage of sessions")
	want := []sessionSums{{"shared", "/team/alpha", alpha}, {"shared", "/team/beta", beta}}
	if diff := cmp.Diff(want, sessions.Entries, cmp.AllowUnexported(sessionSums{})); diff != "" {
		s.Errorf("usage of sessions (-want +got):\n%s", diff)
	}
	var silent struct{ Entries []sessionSums }
	s.get(&silent, "/admin/usage/sessions", "session_id", "silent")
	if len(silent.Entries) != 1 || silent.Entries[0].Cost != unknown || silent.Entries[0].Unpriced != 1 {
		s.Errorf("usage that nobody said = %+v, want an unknown cost", silent.Entries)
	}
	// What the one who left has cost is unknown; it counts as unpriced, like all that was served.
	all.Unpriced++
	var summary struct {
		sums
		Sessions int64
		Groups   []struct{ Model, Provider string }
		covered
	}
	s.get(&summary, "/admin/usage/summary")
	summary.check(s.T, "summary")
	if diff := cmp.Diff(all, summary.sums); diff != "" || summary.Sessions != 5 {
		s.Errorf("summary of %d sessions, want 5 (-want +got):\n%s", summary.Sessions, diff)
	}
	var daily struct {
		Days []struct {
			Date string
			sums
		}
		covered
	}
	s.get(&daily, "/admin/usage/daily")
	daily.check(s.T, "daily")
	var days sums
	for _, day := range daily.Days { // two, when it is midnight
		days.Requests += day.Requests
		if day.Cost != unknown {
			days.Cost += day.Cost
		}
	}
	if days.Requests != all.Requests || days.Cost != all.Cost {
		s.Errorf("days add up to %+v, want %+v", days, all)
	}
}

// checkExports looks for the same figures in files.
func checkExports(s *stack, alpha sums) {
	s.Helper()
	read := func(path string) []map[string]string {
		rows, err := csv.NewReader(strings.NewReader(string(s.ask(http.StatusOK, http.MethodGet, path, "")))).ReadAll()
		if err != nil || len(rows) < 2 {
			s.Fatalf("%s is no table: %v, %v", path, rows, err)
		}
		var table []map[string]string
		for _, row := range rows[1:] {
			named := map[string]string{}
			for i, cell := range row {
				named[rows[0][i]] = cell
			}
			table = append(table, named)
		}
		return table
	}
	var cost int64
	table := read("/admin/audit/log?format=csv&session_id=shared&user_path=/team/alpha")
	for _, row := range table {
		n, err := strconv.ParseInt(row["cost_nano_usd"], 10, 64)
		if err != nil {
			s.Error(err)
		}
		cost += n
	}
	if len(table) != int(alpha.Requests) || usd(cost) != alpha.Cost {
		s.Errorf("log as CSV: %d rows, %d, want %d, %d", len(table), cost, alpha.Requests, alpha.Cost)
	}
	if table = read("/admin/audit/sessions?format=csv&session_id=shared&user_path=/team/alpha"); len(table) != 1 || table[0]["request_count"] != "4" {
		s.Errorf("threads as CSV: %v", table)
	}
	var total usd
	table = read("/admin/usage/sessions?format=csv&session_id=shared&user_path=/team/alpha")
	if err := total.UnmarshalJSON([]byte(table[0]["total_cost"])); err != nil || len(table) != 1 || total != alpha.Cost {
		s.Errorf("usage as CSV: %v, %v, want a cost of %d", table, err, alpha.Cost)
	}
}
