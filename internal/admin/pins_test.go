package admin_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"switchboard/internal/admin"
	"switchboard/internal/affinity"
	"switchboard/internal/auth"
	"switchboard/internal/gateway"
	"switchboard/internal/health"
	"switchboard/internal/mem"
	"switchboard/internal/provider"
	"switchboard/internal/proxy"
	"switchboard/internal/route"
	"switchboard/internal/session"
	"switchboard/internal/wire"
)

const clientKey = "ck-test-SSSSTTTTUUUUVVVV"

// desk is an admin plane over a data plane whose providers can only be talked about.
type desk struct {
	*testing.T
	admin *admin.Admin
	store *mem.Store
	board *health.Memory
	log   *strings.Builder
}

type noCalls struct{ t *testing.T }

func (n noCalls) RoundTrip(r *http.Request) (*http.Response, error) {
	n.t.Errorf("a provider was called: %s", r.URL)
	return nil, errors.New("not here")
}

func deskProviders() []*provider.Provider {
	nano := int64(2_000_000_000)
	cached := int64(500_000_000)
	model := func(id string) provider.Model {
		return provider.Model{ID: id, Upstream: "real-" + id, Pricing: &provider.Pricing{Rates: provider.Rates{Input: &nano, CachedInput: &cached, Output: &nano}}}
	}
	made := func(identity string, surfaces []wire.Surface, keys ...string) *provider.Provider {
		p := &provider.Provider{Identity: identity, Type: "openai", BaseURL: "https://x.test/v1", Surfaces: surfaces, StickyKeys: true, Billing: provider.PayAsYouGo, Models: []provider.Model{model("m")}}
		for _, id := range keys {
			text := providerKey + identity + id
			p.Keys = append(p.Keys, provider.Key{ID: id, Text: text, Print: provider.KeyPrint(text)})
		}
		return p
	}
	chat := []wire.Surface{wire.Chat, wire.Responses}
	loose := made("L", chat, "1", "2")
	loose.StickyKeys = false
	return []*provider.Provider{made("A", chat, "1"), made("B", chat, "1", "2"), made("C", []wire.Surface{wire.Messages}, "1"), made("K", chat), loose}
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{T: t, store: &mem.Store{}, board: health.NewBoard(health.Defaults()), log: &strings.Builder{}}
	providers := deskProviders()
	catalog, err := route.NewCatalog(providers, []route.Virtual{
		{Source: "loose", Strategy: "failover", Affinity: true, Targets: []route.VirtualTarget{{Model: "A/m"}, {Model: "B/m"}}},
		{Source: "smart", Strategy: "cost", Affinity: true, Targets: []route.VirtualTarget{{Model: "A/m"}, {Model: "B/m"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	identifier, err := session.New(session.Settings{Enabled: true, AutoDetect: true, BuiltinRules: true}, auth.Headers()...)
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewJSONHandler(d.log, nil))
	data := gateway.New(gateway.Options{
		Catalog: catalog, Identifier: identifier, Store: d.store, Aliases: d.store, Recorder: &mem.Recorder{}, Board: d.board,
		Auth:      auth.New(false, []auth.Key{{Name: "alpha", SHA256: sha256.Sum256([]byte(clientKey)), UserPath: "/team/alpha"}}),
		Transport: noCalls{t}, Timeouts: proxy.Timeouts{}, MaxAttempts: 4, MaxBody: 1 << 20, IdleTTL: time.Hour, Logger: logger,
	})
	digest := sha256.Sum256([]byte(adminKey))
	d.admin = admin.New(admin.Options{
		Auth: auth.NewAdmin(&digest), Providers: providers, Health: d.board, Logger: logger,
		Pins: mem.Operator{Store: d.store}, Router: data, IdleTTL: time.Hour,
	})
	return d
}

// pin puts a served pin of a tenant's session to provider's first key.
func (d *desk) pin(userPath, id, model, to string) affinity.Pin {
	now := time.Now().UTC().Truncate(time.Second)
	pin := affinity.Pin{
		Ref:    affinity.Ref{SessionKey: session.Scope(userPath, id), Model: model},
		Target: affinity.Target{Provider: to, KeyID: "1", KeyPrint: provider.KeyPrint(providerKey + to + "1"), Model: "real-m", Surface: "openai-chat-completions"}, UserPath: userPath,
		ClientSessionID: id, AssignedAt: now, LastUsedAt: now, ExpiresAt: now.Add(time.Hour), Served: true, Epoch: 3, SwitchCount: 2,
		LastInputTokens: 1000, Requests: 7,
	}
	d.store.Put(pin)
	return pin
}

// do sends a request with the admin key; headers are "Name: value".
func (d *desk) do(method, target, body string, headers ...string) (int, map[string]any) {
	d.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+adminKey)
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	d.admin.ServeHTTP(w, r)
	var v map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		d.Fatalf("%s %s: %d %q: %v", method, target, w.Code, w.Body, err)
	}
	for _, secret := range []string{providerKey, adminKey, clientKey, provider.KeyPrint(providerKey + "A1")} {
		if strings.Contains(w.Body.String(), secret) || strings.Contains(d.log.String(), secret) {
			d.Errorf("%s %s shows %s", method, target, secret)
		}
	}
	return w.Code, v
}

func sessions(v map[string]any) string {
	var list []string
	all, _ := v["sessions"].([]any)
	for _, one := range all {
		row := one.(map[string]any)
		list = append(list, fmt.Sprint(row["user_path"], ":", row["session_id"], ":", row["model_name"]))
	}
	return strings.Join(list, " ")
}

func TestSessionsList(t *testing.T) {
	d := newDesk(t)
	d.pin("", "s1", "m", "A")
	d.pin("/team", "s1", "m", "A")
	d.pin("/team/alpha", "s1", "m", "B")
	d.pin("/team/alpha", "s1", "smart", "B")
	d.pin("/team/alpha", "s2", "m", "B")
	d.pin("/teamwork", "s1", "m", "B")
	for _, tt := range []struct {
		query url.Values
		want  int
		only  string
	}{
		{url.Values{}, 6, ""},
		{url.Values{"session_id": {"s1"}}, 5, "s1"},
		{url.Values{"session_id": {"s1"}, "user_path": {""}}, 5, "s1"}, // a form sends its empty fields
		{url.Values{"session_id": {"s1"}, "user_path_exact": {"true"}}, 1, ":s1:m"},
		{url.Values{"session_id": {"s1"}, "user_path": {"/team"}}, 1, "/team:s1:m"},
		{url.Values{"session_id": {"s1"}, "user_path": {"/team/alpha"}}, 2, "/team/alpha:s1:"},
		{url.Values{"session_id": {"s1"}, "user_path": {"/team/alpha"}, "model": {"smart"}}, 1, "smart"},
		{url.Values{"user_path": {"/team"}}, 4, "/team"},
		{url.Values{"user_path": {"/team"}, "user_path_exact": {"true"}}, 1, "/team:s1:m"},
		{url.Values{"user_path": {"/team/"}}, 4, "/team"},
		{url.Values{"model": {"smart"}}, 1, "smart"},
		{url.Values{"session_id": {"S1"}}, 0, ""},
		{url.Values{"session_id": {"' OR 1=1 --"}}, 0, ""},
	} {
		for _, limit := range []string{"", "1", "2", "200"} {
			q, seen := url.Values{}, []string{}
			for name, v := range tt.query {
				q[name] = v
			}
			if limit != "" {
				q.Set("limit", limit)
			}
			for {
				status, v := d.do(http.MethodGet, "/admin/sessions?"+q.Encode(), "")
				if status != 200 {
					t.Fatalf("%v: %d %v", q, status, v)
				}
				seen = append(seen, strings.Fields(sessions(v))...)
				next, more := v["next_cursor"].(string)
				if !more {
					break
				}
				q.Set("cursor", next)
			}
			if len(seen) != tt.want || strings.Count(strings.Join(seen, " "), tt.only) < tt.want {
				t.Errorf("GET %v = %v, want %d with %q", q, seen, tt.want, tt.only)
			}
		}
	}
}

func TestSessionsRefusals(t *testing.T) {
	d := newDesk(t)
	d.pin("", "s1", "m", "A")
	for _, tt := range []struct{ method, query, names, says string }{
		{"GET", "limit=0", "limit", "1 to 200"},
		{"GET", "limit=201", "limit", "1 to 200"},
		{"GET", "limit=x", "limit", "1 to 200"},
		{"GET", "limit=1&limit=2", "limit", "more than once"},
		{"GET", "cursor=nonsense", "cursor", "next_cursor"},
		{"GET", "provider=A", "provider", "not a parameter"},
		{"GET", "from=", "from", "not a parameter"},
		{"GET", "nope=1", "nope", "session_id"},
		{"GET", "session_id=%00", "session_id", "control"},
		{"GET", "session_id=%ff", "session_id", "text"},
		{"GET", "epoch=1", "epoch", "not a parameter"},
		{"DELETE", "", "model", "missing"},
		{"DELETE", "session_id=s1", "model", "missing"},
		{"DELETE", "model=m", "session_id", "missing"},
		{"DELETE", "session_id=s1&model=m&epoch=0", "epoch", "1 to 9223372036854775807"},
		{"DELETE", "session_id=s1&model=m&epoch=-3", "epoch", "1 to 9223372036854775807"},
		{"DELETE", "session_id=s1&model=m&epoch=9223372036854775808", "epoch", "1 to 9223372036854775807"},
		{"DELETE", "session_id=s1&model=m&epoch=three", "epoch", "1 to 9223372036854775807"},
	} {
		status, v := d.do(tt.method, "/admin/sessions?"+tt.query, "")
		told, _ := v["error"].(map[string]any)
		if message := fmt.Sprint(told["message"]); status != 400 || told["param"] != tt.names || !strings.Contains(message, tt.says) || told["type"] != "invalid_request_error" {
			t.Errorf("%s ?%.60s = %d %v, want 400 naming %s and %q", tt.method, tt.query, status, v, tt.names, tt.says)
		}
	}
	if len(d.store.Pins()) != 1 {
		t.Error("a refused deletion deleted")
	}
}

func TestClearSession(t *testing.T) {
	for _, tt := range []struct {
		name, query, match string
		status, left       int
	}{
		{"unconditional", "session_id=s1&user_path=/team/alpha&model=m", "", 200, 2},
		{"as seen", "session_id=s1&user_path=/team/alpha&model=m&epoch=3", "", 200, 2},
		{"as seen, by tag", "session_id=s1&user_path=/team/alpha&model=m", `"3"`, 200, 2},
		{"any tag", "session_id=s1&user_path=/team/alpha&model=m", "*", 200, 2},
		{"changed", "session_id=s1&user_path=/team/alpha&model=m&epoch=2", "", 409, 3},
		{"changed, by tag", "session_id=s1&user_path=/team/alpha&model=m", `"4"`, 409, 3},
		{"bad tag", "session_id=s1&user_path=/team/alpha&model=m", `"x"`, 400, 3},
		{"another's", "session_id=s1&user_path=/team/beta&model=m", "", 404, 3},
		{"the path's alone", "session_id=s1&user_path=/team&model=m", "", 404, 3},
		{"the tenantless", "session_id=s1&model=m", "", 200, 2},
		{"another model", "session_id=s1&user_path=/team/alpha&model=n", "", 404, 3},
		{"a store key is no id", "session_id=" + session.Scope("/team/alpha", "s1") + "&model=m", "", 404, 3},
	} {
		d := newDesk(t)
		d.pin("", "s1", "m", "A")
		d.pin("/team/alpha", "s1", "m", "A")
		d.pin("/team/alpha", "s1", "smart", "A")
		var headers []string
		if tt.match != "" {
			headers = append(headers, "If-Match: "+tt.match)
		}
		status, v := d.do(http.MethodDelete, "/admin/sessions?"+tt.query, "", headers...)
		if status != tt.status || len(d.store.Pins()) != tt.left {
			t.Errorf("%s: %d %v with %d left, want %d with %d", tt.name, status, v, len(d.store.Pins()), tt.status, tt.left)
		}
		if row, _ := v["session"].(map[string]any); status == 409 && row["epoch"] != 3.0 {
			t.Errorf("%s: the conflict shows %v, want the row as it is", tt.name, v)
		}
	}
}

// Ids are opaque: whatever is in them, they name one session, and it can be cleared.
func TestSessionIdsAreOpaque(t *testing.T) {
	for _, id := range []string{"host/BLAH|x", "a%2Fb", "a+b c&d=e#f", "会话-1", "../admin", "<script>alert(1)</script>", "'; DROP TABLE x", "*", "%", "_"} {
		d := newDesk(t)
		d.pin("/t", id, "m", "A")
		d.pin("/t", "neighbour", "m", "A")
		q := url.Values{"session_id": {id}, "user_path": {"/t"}}
		status, v := d.do(http.MethodGet, "/admin/sessions?"+q.Encode(), "")
		if all, _ := v["sessions"].([]any); status != 200 || len(all) != 1 || all[0].(map[string]any)["session_id"] != id {
			t.Errorf("%q: %d %v, want that session alone", id, status, v)
		}
		q.Set("model", "m")
		if status, v = d.do(http.MethodDelete, "/admin/sessions?"+q.Encode(), ""); status != 200 || len(d.store.Pins()) != 1 {
			t.Errorf("%q: DELETE = %d %v with %d left, want it alone cleared", id, status, v, len(d.store.Pins()))
		}
	}
}

// S-SEC-04: a client key, and none, open nothing here.
func TestSSEC04OperatorsNeedTheAdminKey(t *testing.T) {
	d := newDesk(t)
	d.pin("", "s1", "m", "A")
	for _, key := range []string{clientKey, "", providerKey + "A1"} {
		for _, one := range []struct{ method, path string }{
			{"GET", "/admin/sessions"}, {"DELETE", "/admin/sessions?session_id=s1&model=m"}, {"PUT", "/admin/sessions/pin"}, {"POST", "/admin/explain"},
		} {
			if status, _ := d.do(one.method, one.path, "{}", "Authorization: Bearer "+key); status != 401 {
				t.Errorf("%s %s with %q = %d, want 401", one.method, one.path, key, status)
			}
		}
	}
	if len(d.store.Pins()) != 1 {
		t.Error("a pin is gone")
	}
}

// A store that fails is a 503 without its words, which are in the log.
func TestSessionStoreFaults(t *testing.T) {
	d := newDesk(t)
	d.pin("", "s1", "m", "A")
	d.store.Fault = func(op string) (bool, error) { return false, errors.New("dynamo: AccessDenied for arn:aws:secret") }
	for _, one := range []struct{ method, path, body string }{
		{"GET", "/admin/sessions", ""},
		{"DELETE", "/admin/sessions?session_id=s1&model=m", ""},
		{"PUT", "/admin/sessions/pin", `{"session_id":"s1","model":"m","provider":"B","epoch":3}`},
	} {
		status, v := d.do(one.method, one.path, one.body)
		if status != 503 || strings.Contains(fmt.Sprint(v), "arn:") || !strings.Contains(d.log.String(), "AccessDenied") {
			t.Errorf("%s = %d %v, want 503 and the cause in the log", one.method, status, v)
		}
	}
}

// A row that keeps changing is not cleared blindly, nor for ever.
func TestClearOfARestlessRow(t *testing.T) {
	d := newDesk(t)
	d.pin("", "s1", "m", "A")
	tries := 0
	d.store.Fault = func(op string) (bool, error) {
		if op == mem.OpClear {
			tries++
			return false, affinity.ErrConflict
		}
		return false, nil
	}
	if status, v := d.do(http.MethodDelete, "/admin/sessions?session_id=s1&model=m", ""); status != 503 || tries != 5 || len(d.store.Pins()) != 1 {
		t.Errorf("DELETE = %d %v after %d tries, want 503 after five", status, v, tries)
	}
}
