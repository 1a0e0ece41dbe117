package admin_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"switchboard/internal/admin"
	"switchboard/internal/health"
	"switchboard/internal/mem"
	"switchboard/internal/provider"
	"switchboard/internal/route"
	"switchboard/internal/virtual"
	"switchboard/internal/wire"
)

// editing is a browser, logged in, before virtual models: "fixed" is declared, "smart" is saved.
func editing(t *testing.T) (*browser, *virtual.Models) {
	t.Helper()
	providers := []*provider.Provider{{
		Identity: "A", Type: "openai", Surfaces: []wire.Surface{wire.Chat}, Keys: []provider.Key{{ID: "1", Text: providerKey}},
		Models: []provider.Model{{ID: "m", Upstream: "m"}, {ID: "n", Upstream: "n"}},
	}}
	models, err := virtual.New(providers, []route.Virtual{{Source: "fixed", Affinity: true, Targets: []route.VirtualTarget{{Model: "A/m"}}}}, &mem.Cell{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	save(t, models, `{"source":"smart","targets":[{"model":"A/m","weight":2},{"model":"A/n"}],"user_paths":["/team/alpha"],"description":"<b>old</b>"}`)
	o := newAdmin(health.NewBoard(health.Defaults())).Options
	o.Models = models
	b := &browser{T: t, a: admin.New(o)}
	b.logIn()
	return b, models
}

func save(t *testing.T, models *virtual.Models, body string) {
	t.Helper()
	c, err := virtual.ParseChange([]byte(body))
	if err == nil {
		_, err = models.Save(t.Context(), c)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (b *browser) post(token string, fields url.Values) (int, string, string) {
	b.Helper()
	fields.Set("csrf", token)
	w := b.send(http.MethodPost, "/admin/ui/virtual-models", fields.Encode())
	return w.Code, w.Header().Get("Location"), strings.Join(strings.Fields(w.Body.String()), " ")
}

func smart(more ...string) url.Values {
	v := url.Values{
		"source": {"smart"}, "old_source": {"smart"}, "version": {"1"}, "strategy": {"failover"}, "session_affinity": {"true"}, "enabled": {"true"},
		"description": {"new"}, "user_paths": {"/team/alpha\r\n\r\n /team/beta \r\n"}, "target_model": {"", "A/n", " ", "A/m"}, "target_weight": {"", "3", "9", ""},
	}
	for i := 0; i < len(more); i += 2 {
		v.Set(more[i], more[i+1])
	}
	return v
}

func TestVirtualModelsPage(t *testing.T) {
	b, _ := editing(t)
	text := page(t, b.a, "/admin/ui/virtual-models", 200)
	has(t, text, `data-model="fixed" data-declared="true"`, `data-model="smart" data-declared="false"`, "A/m</span> <span class=\"dim\">× 2</span>", "/team/alpha",
		`href="/admin/ui/virtual-models?edit=smart"`, "&lt;b&gt;old&lt;/b&gt;", `id="nav-models"`)
	hasNot(t, text, "edit=fixed", `id="editor"`)
	text = page(t, b.a, "/admin/ui/virtual-models?edit=smart", 200)
	has(t, text, `name="version" value="1"`, `name="old_source" value="smart"`, `name="target_model" value="A/m"`, `name="target_weight" value="2"`, "<option selected>round_robin", "Remove…")
	has(t, page(t, b.a, "/admin/ui/virtual-models?edit=", 200), "New virtual model</h2>", `name="old_source" value=""`)
	has(t, page(t, b.a, "/admin/ui/virtual-models?edit=fixed", 403), "declares the virtual model")
	has(t, page(t, b.a, "/admin/ui/virtual-models?edit=nope", 404), "no saved virtual model")
	hasNot(t, page(t, asking(filled()), "/admin/", 200), `id="nav-models"`)
	page(t, asking(filled()), "/admin/ui/virtual-models", 503)
}

func TestVirtualModelSaved(t *testing.T) {
	b, models := editing(t)
	status, location, text := b.post(b.form(), smart())
	if status != http.StatusSeeOther || location != "/admin/ui/virtual-models?saved=smart" {
		t.Fatalf("save = %d %s %s", status, location, text)
	}
	has(t, page(t, b.a, location, 200), "smart is saved")
	l, err := models.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, _ := l.Find("smart")
	if got.Strategy != "failover" || got.Description != "new" || len(got.Targets) != 2 || got.Targets[0] != (virtual.Target{Model: "A/n", Weight: 3}) ||
		got.Targets[1] != (virtual.Target{Model: "A/m", Weight: 1}) || strings.Join(got.UserPaths, " ") != "/team/alpha /team/beta" || !got.Affinity || !got.Enabled {
		t.Errorf("saved %+v", got)
	}
	off := smart("version", "2")
	off.Del("session_affinity")
	off.Del("enabled")
	if status, _, text := b.post(b.form(), off); status != http.StatusSeeOther {
		t.Fatalf("save = %d %s", status, text)
	}
	l, _ = models.List(t.Context())
	if got, _ := l.Find("smart"); got.Affinity || got.Enabled {
		t.Errorf("boxes that are not ticked: %+v", got)
	}
}

func TestVirtualModelForms(t *testing.T) {
	b, models := editing(t)
	token := b.form()
	for _, tt := range []struct {
		name   string
		fields url.Values
		status int
		want   string
	}{
		{"new", smart("source", "x/y", "old_source", ""), 303, "saved=x"},
		{"renamed", smart("source", "clever", "version", "2"), 303, "saved=clever"},
		{"more rows", smart("do", "rows"), 200, `name="target_model" value="A/n"`},
		{"no name", smart("source", ""), 400, `id="e-source"`},
		{"no targets", smart("target_model", ""), 400, `class="fault"`},
		{"weight", smart("target_weight", "x"), 200, ""},
		{"declared", smart("source", "fixed", "old_source", "fixed", "version", "3"), 403, "declares the virtual model"},
		{"gone", smart("do", "remove", "old_source", "nope", "version", "3"), 404, "no saved virtual model"},
		{"bad version", smart("version", "x"), 400, "version"},
		{"removed", smart("do", "remove", "old_source", "clever", "version", "3"), 303, "removed=clever"},
	} {
		if tt.name == "weight" {
			tt.fields["target_weight"], tt.status, tt.want = []string{"", "x", "", ""}, 400, "targets[0].weight: is not a whole number"
		}
		status, location, text := b.post(token, tt.fields)
		if status != tt.status || !strings.Contains(location+text, tt.want) {
			t.Errorf("%s = %d %s, want %d, %s: %s", tt.name, status, location, tt.status, tt.want, text)
		}
		if status >= 400 && !strings.Contains(text, `value="A/m"`) && tt.name != "no targets" {
			t.Errorf("%s: what was typed is lost", tt.name)
		}
	}
	l, _ := models.List(t.Context())
	if _, ok := l.Find("clever"); ok || len(l.Models) != 2 {
		t.Errorf("left are %+v", l.Models)
	}
}

// Who edits what somebody else has saved in between is shown that, and decides.
func TestVirtualModelSavedInBetween(t *testing.T) {
	b, models := editing(t)
	save(t, models, `{"source":"smart","targets":[{"model":"A/n","weight":7}],"strategy":"cost"}`)
	status, _, text := b.post(b.form(), smart())
	if status != http.StatusConflict {
		t.Fatalf("save = %d", status)
	}
	has(t, text, `id="stale"`, "There is now: cost, on, targets A/n × 7", `name="version" value="2"`, `value="new"`, "<option selected>failover")
	if status, _, _ := b.post(b.form(), smart("version", "2")); status != http.StatusSeeOther {
		t.Errorf("the second try = %d", status)
	}
	if status, _, text := b.post(b.form(), smart("do", "remove", "version", "2")); status != http.StatusConflict || !strings.Contains(text, `id="stale"`) {
		t.Errorf("removing what has changed = %d", status)
	}
}

func TestVirtualModelFormNeedsItsToken(t *testing.T) {
	b, models := editing(t)
	for _, token := range []string{"", "x"} {
		if status, _, _ := b.post(token, smart()); status != http.StatusForbidden {
			t.Errorf("save with token %q = %d", token, status)
		}
	}
	if l, _ := models.List(t.Context()); l.Version != 1 {
		t.Errorf("something was saved: version %d", l.Version)
	}
}

func TestVirtualModelFormsShowTextAsText(t *testing.T) {
	b, _ := editing(t)
	for _, hostile := range hostileTexts() {
		fields := smart("source", hostile, "old_source", hostile, "version", hostile, "strategy", hostile, "description", hostile, "user_paths", hostile)
		fields["target_model"], fields["target_weight"] = []string{hostile}, []string{hostile}
		for _, do := range []string{"save", "rows", "remove"} {
			fields.Set("do", do)
			if _, _, text := b.post(b.form(), fields); dangerous(text) != "" {
				t.Errorf("%s of %q has %s", do, hostile, dangerous(text))
			}
		}
		for _, name := range []string{"edit", "saved", "removed"} {
			text := b.send(http.MethodGet, "/admin/ui/virtual-models?"+name+"="+url.QueryEscape(hostile), "").Body.String()
			if dangerous(text) != "" {
				t.Errorf("%s=%q has %s", name, hostile, dangerous(text))
			}
		}
	}
}

// deadModels is a store that does not answer.
type deadModels struct{ admin.Models }

func (deadModels) List(context.Context) (virtual.Listing, error) {
	return virtual.Listing{}, errors.New("dial tcp 10.0.0.1: refused")
}

func TestVirtualModelsPageWithoutItsStore(t *testing.T) {
	o := newAdmin(health.NewBoard(health.Defaults())).Options
	o.Models = deadModels{}
	text := page(t, admin.New(o), "/admin/ui/virtual-models", 503)
	has(t, text, "does not answer now")
	hasNot(t, text, "10.0.0.1")
}
