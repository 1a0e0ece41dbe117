package admin_test

import (
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/admin"
	"switchboard/internal/auth"
	"switchboard/internal/health"
	"switchboard/internal/provider"
	"switchboard/internal/wire"
)

const (
	adminKey    = "ak-test-PPPPQQQQRRRRSSSS"
	providerKey = "sk-test-AAAABBBBCCCCDDDD"
)

func newAdmin(board admin.Health) *admin.Admin {
	digest := sha256.Sum256([]byte(adminKey))
	return admin.New(admin.Options{
		Auth: auth.NewAdmin(&digest), Health: board, Logger: slog.New(slog.DiscardHandler),
		Providers: []*provider.Provider{
			{
				Identity: "A", Type: "openai", BaseURL: "https://a.test/v1", Surfaces: []wire.Surface{wire.Chat}, Billing: provider.PayAsYouGo,
				Keys:   []provider.Key{{ID: "1", Text: providerKey, Print: "0123456789abcdef"}, {ID: "second"}},
				Models: []provider.Model{{ID: "m-big", Upstream: "real-big-1"}},
			},
			{Identity: "B", Type: "anthropic", NoAuth: true},
		},
	})
}

func get(a *admin.Admin, method, path, key string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w
}

func TestProviders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board := health.NewBoard(health.Defaults())
		board.Report(health.Outcome{Provider: "A", KeyID: "second", Model: "m", Class: health.Unauthorized}, time.Now())
		board.Report(health.Outcome{Provider: "A", KeyID: "1", Model: "real-big-1", Class: health.RateLimited, RetryAfter: time.Minute}, time.Now())
		board.Report(health.Outcome{Provider: "B", Model: "m", Class: health.Overloaded}, time.Now())
		time.Sleep(45 * time.Second)
		w := get(newAdmin(board), http.MethodGet, "/admin/providers", adminKey)
		want := `{"providers":[
			{"identity":"A","type":"openai","base_url":"https://a.test/v1","surfaces":["openai-chat-completions"],"billing_model":"pay_as_you_go",
			 "models":[{"id":"m-big","upstream_model":"real-big-1","priced":false}],
			 "keys":[{"key_id":"1","usable":true},{"key_id":"second","usable":false}],
			 "health":[{"key_id":"1","model":"real-big-1","state":"degraded","reason":"rate_limited","retry_at":"2000-01-01T00:01:00Z"},
			           {"key_id":"second","state":"degraded","reason":"unauthorized","retry_at":null}]},
			{"identity":"B","type":"anthropic","base_url":"","surfaces":[],"billing_model":"","models":[],"keys":[],
			 "health":[{"model":"m","state":"trial","reason":"overloaded","retry_at":"2000-01-01T00:00:30Z"}]}]}`
		if diff := cmp.Diff(decoded(t, want), decoded(t, w.Body.String())); w.Code != 200 || diff != "" {
			t.Errorf("status %d (-want +got):\n%s", w.Code, diff)
		}
		for _, secret := range []string{providerKey, "0123456789abcdef", adminKey} {
			if strings.Contains(w.Body.String(), secret) {
				t.Errorf("the answer shows %s", secret)
			}
		}
	})
}

func decoded(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// S-SEC-04: the admin key and no other opens the admin plane.
func TestSSEC04OnlyTheAdminKey(t *testing.T) {
	a := newAdmin(health.NewBoard(health.Defaults()))
	for _, key := range []string{"", "ck-client", adminKey + "x", adminKey[:10], strings.ToLower(adminKey), providerKey} {
		for _, path := range []string{"/admin/providers", "/admin/", "/admin/nope", "/elsewhere"} {
			w := get(a, http.MethodGet, path, key)
			if w.Code != http.StatusUnauthorized || w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%s with %q = %d, want 401 as JSON", path, key, w.Code)
			}
		}
	}
	none := admin.New(admin.Options{Health: health.NewBoard(health.Defaults())})
	if w := get(none, http.MethodGet, "/admin/providers", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("without an admin key configured = %d, want 401", w.Code)
	}
}

func TestPathsAndMethods(t *testing.T) {
	a := newAdmin(health.NewBoard(health.Defaults()))
	for _, tt := range []struct {
		method, path string
		want         int
		allow        string
	}{
		{http.MethodGet, "/health", 200, ""},
		{http.MethodHead, "/health", 200, ""},
		{http.MethodGet, "/", 200, ""},
		{http.MethodPost, "/health", 405, "GET, HEAD"},
		{http.MethodHead, "/admin/providers", 200, ""},
		{http.MethodDelete, "/admin/providers", 405, "GET, HEAD"},
		{http.MethodGet, "/admin/nope", 404, ""},
	} {
		w := get(a, tt.method, tt.path, adminKey)
		if w.Code != tt.want || w.Header().Get("Allow") != tt.allow || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s = %d, Allow %q, want %d, %q", tt.method, tt.path, w.Code, w.Header().Get("Allow"), tt.want, tt.allow)
		}
	}
}
