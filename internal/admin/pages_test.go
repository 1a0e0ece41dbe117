package admin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/admin"
	"switchboard/internal/audit"
	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/record"
)

// page is a page as one line of text, to look for parts of it.
func page(t *testing.T, a *admin.Admin, path string, status int) string {
	t.Helper()
	w := get(a, http.MethodGet, path, adminKey)
	if w.Code != status || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%s = %d, %s, want %d: %s", path, w.Code, w.Header(), status, w.Body)
	}
	return strings.Join(strings.Fields(w.Body.String()), " ")
}

func has(t *testing.T, page string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

func hasNot(t *testing.T, page string, unwanted ...string) {
	t.Helper()
	for _, word := range unwanted {
		if strings.Contains(page, word) {
			t.Errorf("the page has %s", word)
		}
	}
}

func moved() record.Event {
	e := event()
	e.EventID, e.CreatedAt, e.Switched, e.SwitchCount, e.SwitchCostNanoUSD = "01K9", e.CreatedAt+1000, true, ptr(1), ptr(88_030_000)
	e.Provider, e.KeyID, e.DecisionReason = "B", "second", "fallback"
	e.Attempts = []record.Attempt{{Provider: "A", KeyID: "1", Model: "m-big", Status: 429, Error: "rate_limited"}, {Provider: "B", KeyID: "second", Model: "m", Status: 200}}
	return e
}

func TestAuditLogs(t *testing.T) {
	reader := filled()
	reader.threads.Sessions[0].Latest = moved()
	text := page(t, asking(reader), "/admin/?days=all&limit=1", 200)
	has(t, text, "<h1>Audit Logs</h1>", `aria-current="page">Audit Logs`, ">Group by session</a>", `data-session="s1" data-user-path="/team" data-count="6"`,
		`title="requests of the whole session">6<`, `<time datetime="2026-02-28T23:59:59.000Z">2026-02-28 23:59:59</time>`, "80 % cached", "$0.00004662",
		`href="/admin/ui/usage?days=all&amp;session_id=s1&amp;user_path=%2Fteam&amp;user_path_exact=true"`,
		"Show the 5 other requests", `data-source="/admin/ui/thread?days=all&amp;session_id=s1&amp;skip=01K9&amp;user_path=%2Fteam&amp;user_path_exact=true"`,
		"<strong>Moved</strong> from <b>A / key 1</b> to <b>B / key second</b> · rate_limited (429) · cold cache <span title=\"$0.08803\">$0.08803</span>",
		`<span class="badge bad">rate_limited</span>`, "1–1 of 3", `rel="next" href="/admin/?days=all&amp;limit=1&amp;offset=1&amp;until=`,
		`href="/admin/audit/sessions?format=csv&amp;limit=1&amp;offset=0"`, "2</strong> records could not be read", "Events up to")
	if reader.filter != (audit.Filter{}) || reader.page != (audit.Page{Limit: 1}) {
		t.Errorf("asked for %+v, %+v", reader.filter, reader.page)
	}
}

// Without a script the others are unfolded by a link; they are of this session and user path
// alone, whatever the filter of the page, and the one that is the row is not among them.
func TestAuditLogsUnfolded(t *testing.T) {
	newer := moved()
	older := event()
	older.Provider, older.KeyID = "C", "third"
	for _, path := range []string{"/admin/?days=all&status=429&open=01K9", "/admin/ui/thread?session_id=s1&user_path=/team&user_path_exact=true&skip=01K9"} {
		reader := filled()
		reader.threads.Sessions[0].Latest = newer
		second := newer
		second.EventID = "01K8"
		reader.log = audit.Log{Entries: []record.Event{newer, second, older}, Total: 300}
		text := page(t, asking(reader), path, 200)
		has(t, text, `data-event="01K8"`, `data-event="01K0"`, "from <b>C / key third</b> to <b>B / key second</b>", "297 more")
		hasNot(t, text, `data-event="01K9"`, "Show the 5 other")
		if want := (audit.Filter{SessionID: "s1", UserPath: "/team", PathOnly: true}); reader.filter != want || reader.page.Limit != audit.MaxLimit {
			t.Errorf("%s: asked for %+v, %+v, want %+v", path, reader.filter, reader.page, want)
		}
	}
	page(t, asking(filled()), "/admin/ui/thread?skip=x", 400)
}

// A session of no user path is not that of a tenant.
func TestAuditLogsOfNoUserPath(t *testing.T) {
	reader := filled()
	reader.threads.Sessions[0].UserPath, reader.threads.Sessions[0].Latest.UserPath = "", ""
	has(t, page(t, asking(reader), "/admin/?days=all", 200), `href="/admin/ui/usage?days=all&amp;session_id=s1&amp;user_path_exact=true"`)
	page(t, asking(reader), "/admin/ui/usage?days=all&session_id=s1&user_path_exact=true", 200)
	if want := (audit.Filter{SessionID: "s1", PathOnly: true}); reader.filter != want {
		t.Errorf("asked for %+v, want %+v", reader.filter, want)
	}
}

func TestAuditLogsOfSingleRequests(t *testing.T) {
	reader := filled()
	single := &reader.threads.Sessions[0]
	single.SessionID, single.RequestCount, single.Latest.SessionID, single.Latest.CostNanoUSD, single.Latest.InputTokens = "", 1, "", nil, nil
	text := page(t, asking(reader), "/admin/?days=all", 200)
	has(t, text, "no session", `title="unknown"><span class="sr">cost </span>---`, "<span class=\"sr\">tokens </span>---")
	hasNot(t, text, "Show the", "data-source", `data-action="usage"`)
	has(t, page(t, asking(reader), "/admin/?days=all&group=request", 200), `id="entries"`, `data-event="01K0"`, "All its requests",
		`<a href="/admin/?days=all&amp;group=request" aria-current="true">Every request</a>`, "/admin/audit/log?format=json")
}

func TestUsageAnalytics(t *testing.T) {
	reader := filled()
	text := page(t, asking(reader), "/admin/ui/usage?from=2026-02-27&to=2026-03-01", 200)
	has(t, text, "<h1>Usage Analytics</h1>", `id="total-requests">10<`, "≥ $0.00004662</span>", "Usage by Recent Session", `id="total-cached">4.2 %<`,
		`<a class="chip" href="/admin/ui/usage?from=2026-02-27&amp;session_id=s1&amp;to=2026-03-01&amp;user_path=%2Fteam&amp;user_path_exact=true"`,
		`title="unknown">---</td>`, "Tokens per day", "Known cost per day", `<th scope="row"><a href="/admin/ui/usage?from=2026-02-27&amp;to=2026-02-27">2026-02-27</a>`,
		`<th scope="row"><a href="/admin/ui/usage?from=2026-03-01&amp;to=2026-03-01">2026-03-01</a>`, "Showing 2026-02-27 00:00 to 2026-03-02 00:00 UTC.",
		`href="/admin/usage/sessions?format=csv&amp;from=2026-02-27&amp;limit=50&amp;offset=0&amp;to=2026-03-01"`, "cold caches $1.50",
		`href="/admin/ui/usage?from=2026-02-27&amp;model=m-big&amp;provider=A&amp;to=2026-03-01"`)
	has(t, text, "2 without a known cost")
}

func TestPagesSayWhichFiltersAreSet(t *testing.T) {
	for _, path := range []string{"/admin/", "/admin/ui/usage"} {
		text := page(t, asking(filled()), path+"?session_id=a%2Bb&user_path=/t&user_path_exact=true&model=m&days=30", 200)
		has(t, text, `data-filter="session"`, "a&#43;b (/t)", `href="`+path+`?days=30&amp;model=m"`,
			`data-filter="model"`, `href="`+path+`?days=30&amp;session_id=a%2Bb&amp;user_path=%2Ft&amp;user_path_exact=true"`, "the last 30 days", `value="a&#43;b"`)
	}
}

// Without dates a page is about the last week, and says so.
func TestPagesAreAboutAWeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is 2000-01-01
		reader := filled()
		has(t, page(t, asking(reader), "/admin/", 200), "the last 7 days, today included (UTC)", "/admin/audit/sessions?format=csv&amp;from=1999-12-26&amp;limit=50&amp;offset=0")
		if want := time.Date(1999, 12, 26, 0, 0, 0, 0, time.UTC); reader.filter != (audit.Filter{From: want}) {
			t.Errorf("asked for %+v", reader.filter)
		}
		page(t, asking(reader), "/admin/?days=1&from=&to=", 200)
		if want := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); reader.filter != (audit.Filter{From: want}) {
			t.Errorf("today asked for %+v", reader.filter)
		}
		page(t, asking(reader), "/admin/?days=7&to=1999-12-31", 200)
		if want := (audit.Filter{To: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}); reader.filter != want {
			t.Errorf("an end alone asked for %+v", reader.filter)
		}
	})
}

func TestPagesRefuse(t *testing.T) {
	for _, path := range []string{"/admin/", "/admin/ui/usage"} {
		for query, want := range map[string]string{
			"?limit=0": "1 to 200", "?to=tomorrow": "neither a UTC day", "?from=2026-03-02&to=2026-03-01": "is after to", "?days=5": "not one of", "?x=1": "not a parameter",
			"?session_id=a&session_id=b": "more than once", "?status=4xx": "100 to 599",
		} {
			reader := filled()
			has(t, page(t, asking(reader), path+query, 400), want, `id="filters"`, `role="alert"`)
			if reader.asked != 0 {
				t.Errorf("%s asked the reader", path+query)
			}
		}
		has(t, page(t, asking(nil), path, 503), "No store of routing events")
		text := page(t, asking(&fakeReader{err: errors.New("s3://bucket: AccessDenied")}), path, 503)
		has(t, text, "the log says why")
		hasNot(t, text, "bucket")
	}
	has(t, page(t, asking(filled()), "/admin/ui/usage?to=tomorrow", 400), `value="tomorrow" aria-invalid="true" aria-describedby="e-to"`)
}

func TestEmptyPagesSayWhatToDo(t *testing.T) {
	for path, want := range map[string]string{
		"/admin/": "Point a client at the base URL", "/admin/?model=x": "Clear them", "/admin/ui/usage": "Tokens and cost are counted", "/admin/ui/usage?model=x": "Clear them",
	} {
		has(t, page(t, asking(&fakeReader{}), path, 200), `id="empty"`, want)
	}
	o := asking(&fakeReader{}).Options
	o.Providers = nil
	has(t, page(t, admin.New(o), "/admin/ui/providers", 200), "Add one under <code>providers:</code>")
	beyond := &fakeReader{threads: audit.Threads{Total: 7}}
	has(t, page(t, asking(beyond), "/admin/?offset=100", 200), "past the end of 7", `rel="prev"`)
}

// A page that was built from a part of the events says so, and goes on loading.
func TestPagesAreHonest(t *testing.T) {
	for _, path := range []string{"/admin/?days=all", "/admin/?days=all&group=request", "/admin/ui/usage?days=all"} {
		reader := filled()
		c := audit.Coverage{AsOf: time.Date(2026, 3, 1, 0, 0, 1, 0, time.UTC), Pending: 1117, Unreadable: 3, Since: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)}
		reader.threads.Coverage, reader.log.Coverage, reader.daily.Coverage = c, c, c // of the usage page's three answers the worst counts
		text := page(t, asking(reader), path, 200)
		has(t, text, `data-complete="false" data-pending="1117" data-unreadable="3"`, "Incomplete.", "1,117 files", "2026-03-01 00:00:01", "Older events than", "2026-02-01 00:00:00",
			`<meta http-equiv="refresh" content="2;url=`, "again=1")
		has(t, page(t, asking(reader), path+"&again=41", 200), "again=42")
		hasNot(t, page(t, asking(reader), path+"&again=60", 200), "http-equiv=\"refresh\"")
	}
}

// slowReader answers when it is let.
type slowReader struct {
	*fakeReader
	let chan struct{}
}

func (s *slowReader) Threads(ctx context.Context, f audit.Filter, p audit.Page) (audit.Threads, error) {
	select {
	case <-s.let:
		return s.fakeReader.Threads(ctx, f, p)
	case <-ctx.Done():
		return audit.Threads{}, ctx.Err()
	}
}

// A slow page is begun before its content is there.
func TestSlowPageShowsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowReader{filled(), make(chan struct{})}
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/admin/?days=all", nil)
		r.Header.Set("Authorization", "Bearer "+adminKey)
		done := make(chan struct{})
		go func() { defer close(done); asking(slow).ServeHTTP(w, r) }()
		time.Sleep(time.Second) // of the bubble's clock
		synctest.Wait()
		head := w.Body.String()
		has(t, head, "<title>Audit Logs", `id="loading" role="status"`)
		hasNot(t, head, "<h1>")
		close(slow.let)
		<-done
		has(t, w.Body.String(), head, "<h1>Audit Logs</h1>", "</html>")
		if !w.Flushed || strings.Count(w.Body.String(), "<main") != 1 {
			t.Error("the head was not sent alone")
		}
	})
}

func TestSlowPageThatNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/admin/", nil)
		r.Header.Set("Authorization", "Bearer "+adminKey)
		began := time.Now()
		asking(&slowReader{filled(), make(chan struct{})}).ServeHTTP(w, r)
		has(t, w.Body.String(), "Reading the events took too long", `id="filters"`, "</html>")
		if took := time.Since(began); took >= time.Minute {
			t.Errorf("it used up the deadline: %s", took)
		}
	})
}

func TestProvidersPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board := health.NewBoard(health.Defaults())
		board.Report(health.Outcome{Provider: "A", KeyID: "1", Model: "real-big-1", Class: health.RateLimited, RetryAfter: 90 * time.Second}, time.Now())
		text := page(t, newAdmin(board), "/admin/ui/providers", 200)
		has(t, text, `data-provider="A" data-state="degraded"`, "key 1, model real-big-1", "rate_limited", "in 1 min 30 s", "2000-01-01 00:01:30 UTC",
			`data-provider="B" data-state="ok"`, "needs none", "second: without a value", "https://a.test/v1", "real-big-1", "no price")
		hasNot(t, text, providerKey, "0123456789abcdef")
	})
}

func hostileTexts() []string {
	return []string{
		"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, "javascript:alert(1)", "</title><script>alert(1)</script>",
		"]]><svg/onload=alert(1)>", "{{.}}", "${alert(1)}", "&lt;script&gt;", "a%2Fb?c=d&e=f#g", "`", "\u202egnp", strings.Repeat("<b>", 60),
	}
}

// Whatever a client or the configuration says is text on every page, in every place.
func TestPagesShowTextAsText(t *testing.T) {
	for _, hostile := range hostileTexts() {
		e := moved()
		for _, field := range []*string{
			&e.EventID, &e.RequestID, &e.SessionID, &e.SessionKey, &e.SessionSource, &e.UserPath, &e.APISurface, &e.RequestedModel, &e.ModelName, &e.Provider,
			&e.KeyID, &e.BillingModel, &e.DecisionReason, &e.UsageQuality, &e.Outcome, &e.Affinity,
		} {
			*field = hostile
		}
		e.DegradedProviders, e.Attempts = []string{hostile}, []record.Attempt{{Provider: hostile, KeyID: hostile, Model: hostile, Error: hostile}}
		usage := audit.Usage{Requests: 1, InputTokens: 10, CostNanoUSD: 1}
		reader := &fakeReader{
			threads:  audit.Threads{Sessions: []audit.Thread{{SessionID: hostile, UserPath: hostile, RequestCount: 3, Latest: e}}, Total: 1},
			log:      audit.Log{Entries: []record.Event{e, event()}, Total: 2},
			sessions: audit.SessionUsages{Entries: []audit.SessionUsage{{SessionID: hostile, UserPath: hostile, Usage: usage}}, Total: 1},
			summary:  audit.Summary{Usage: usage, Groups: []audit.Group{{Model: hostile, Provider: hostile, Usage: usage}}},
			daily:    audit.Days{Days: []audit.Day{{Date: hostile, Usage: usage}}},
		}
		o := asking(reader).Options
		o.Providers = []*provider.Provider{{
			Identity: hostile, Type: hostile, BaseURL: hostile, Keys: []provider.Key{{ID: hostile}}, Models: []provider.Model{{ID: hostile, Upstream: hostile + "2"}},
		}}
		asked := url.QueryEscape(hostile)
		for _, path := range []string{
			"/admin/?days=all", "/admin/?days=all&open=" + asked, "/admin/?group=request", "/admin/ui/usage", "/admin/ui/providers", "/admin/ui/thread?session_id=" + asked,
			"/admin/?session_id=" + asked + "&user_path=" + asked + "&model=" + asked + "&provider=" + asked, "/admin/ui/usage?session_id=" + asked,
			"/admin/login?next=" + asked,
		} {
			text := page(t, admin.New(o), path, 200)
			if fault := dangerous(text); fault != "" {
				t.Errorf("%s with %q has %s", path, hostile, fault)
			}
		}
		for _, path := range []string{"/admin/?to=" + asked, "/admin/?status=" + asked, "/admin/?" + asked + "=1"} {
			if fault := dangerous(page(t, admin.New(o), path, 400)); fault != "" {
				t.Errorf("%s with %q has %s", path, hostile, fault)
			}
		}
	}
}

// dangerous finds what only a text that got out of its place can have put there.
func dangerous(page string) string {
	lower := strings.ToLower(page)
	for _, word := range []string{"<script>", "<img src=x", "<svg/", " onmouseover='", " onerror=alert(1)>", "<b><b>", `href="javascript:`, "zgotmplz"} {
		if strings.Contains(lower, word) {
			return word
		}
	}
	if n := strings.Count(lower, "<script"); n > 1 {
		return fmt.Sprintf("%d scripts", n)
	}
	for _, attribute := range []string{" style=", " onclick=", " onload="} {
		if strings.Contains(lower, attribute) {
			return attribute
		}
	}
	return ""
}

// A page of the largest size is still a page.
func TestHugePage(t *testing.T) {
	reader := filled()
	long := strings.Repeat("x", 200)
	for i := range audit.MaxLimit {
		e := moved()
		e.EventID, e.SessionID, e.RequestedModel, e.UserPath = fmt.Sprint(i), long, long, "/"+long
		reader.threads.Sessions = append(reader.threads.Sessions, audit.Thread{SessionID: long, UserPath: "/" + long, RequestCount: 1 << 40, Latest: e})
	}
	reader.threads.Total = 1 << 50
	if text := page(t, asking(reader), "/admin/?days=all&limit=200", 200); len(text) > 2<<20 {
		t.Errorf("the page has %d bytes", len(text))
	}
	for range 3000 {
		reader.daily.Days = append(reader.daily.Days, audit.Day{Date: "2026-01-01"})
	}
	page(t, asking(reader), "/admin/ui/usage?from=0001-01-01&to=9999-12-31", 200)
}

// badReader panics, as a bug would.
type badReader struct{ *fakeReader }

func (badReader) Daily(context.Context, audit.Filter) (audit.Days, error) {
	panic("a bug at s3://bucket")
}

func (badReader) Threads(context.Context, audit.Filter, audit.Page) (audit.Threads, error) {
	panic("a bug at s3://bucket")
}

// A panic beside the handler ends neither the process nor the page.
func TestPagesOutliveAPanic(t *testing.T) {
	for path, status := range map[string]int{"/admin/": 500, "/admin/ui/usage": 503} {
		text := page(t, asking(badReader{filled()}), path, status)
		has(t, text, "</html>")
		hasNot(t, text, "bucket")
	}
}
