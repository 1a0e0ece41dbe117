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
	"sync"
	"testing"

	"switchboard/internal/admin"
	"switchboard/internal/auth"
	"switchboard/internal/health"
	"switchboard/internal/mem"
	"switchboard/internal/provider"
	"switchboard/internal/route"
	"switchboard/internal/virtual"
	"switchboard/internal/wire"
)

// modelDesk is an admin plane over virtual models in cell.
type modelDesk struct {
	*testing.T
	admin *admin.Admin
	log   *strings.Builder
}

func newModelDesk(t *testing.T, cell *mem.Cell) *modelDesk {
	t.Helper()
	d := &modelDesk{T: t, log: &strings.Builder{}}
	var providers []*provider.Provider
	for _, identity := range []string{"A", "B"} {
		providers = append(providers, &provider.Provider{
			Identity: identity, Type: "openai", Surfaces: []wire.Surface{wire.Chat}, Models: []provider.Model{{ID: "m", Upstream: "m"}},
			Keys: []provider.Key{{ID: "1", Text: providerKey + identity}},
		})
	}
	declared := []route.Virtual{{Source: "fixed", Affinity: true, Targets: []route.VirtualTarget{{Model: "A/m"}}}}
	logger := slog.New(slog.NewJSONHandler(d.log, nil))
	models, err := virtual.New(providers, declared, cell, logger)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256([]byte(adminKey))
	d.admin = admin.New(admin.Options{Auth: auth.NewAdmin(&digest), Providers: providers, Health: health.NewBoard(health.Defaults()), Models: models, Logger: logger})
	return d
}

const modelsPath = "/admin/virtual-models"

// asks sends a request with the admin key; a header line is "Name: value".
func (d *modelDesk) asks(method, path, body string, headers ...string) (status int, answer map[string]any, header http.Header) {
	d.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+adminKey)
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	d.admin.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		d.Fatalf("%s %s: %d %q: %v", method, path, w.Code, w.Body, err)
	}
	return w.Code, answer, w.Header()
}

func (d *modelDesk) puts(body string, headers ...string) map[string]any {
	d.Helper()
	status, answer, _ := d.asks(http.MethodPut, modelsPath, body, headers...)
	if status != http.StatusOK {
		d.Fatalf("PUT %s = %d %v", body, status, answer)
	}
	return answer
}

func TestVirtualModelsThroughTheAPI(t *testing.T) {
	d := newModelDesk(t, &mem.Cell{})
	status, l, header := d.asks(http.MethodGet, modelsPath, "")
	if models, _ := l["virtual_models"].([]any); status != 200 || len(models) != 1 || l["version"] != 0.0 || header.Get("ETag") != `"0"` {
		t.Errorf("first list = %d %v (%s)", status, l, header.Get("ETag"))
	}
	got := d.puts(`{"source":"smart","strategy":"failover","targets":[{"model":"B/m","weight":2},{"model":"A/m"}],"user_paths":["/team/"],"description":"<b>d</b>","version":0}`)
	text, _ := json.Marshal(got)
	want := `{"version":1,"virtual_model":{"declared":false,"description":"\u003cb\u003ed\u003c/b\u003e","enabled":true,"hides_model":false,"session_affinity":true,"source":"smart","strategy":"failover","targets":[{"model":"B/m","weight":2},{"model":"A/m","weight":1}],"user_paths":["/team"]}}`
	if string(text) != want {
		t.Errorf("PUT = %s, want %s", text, want)
	}
	d.puts(`{"source":"smart/er","old_source":"smart","target_model":"B/m"}`, `If-Match: "1"`)
	_, l, header = d.asks(http.MethodGet, modelsPath, "")
	if text, _ := json.Marshal(l); !strings.Contains(string(text), `"source":"smart/er"`) || strings.Contains(string(text), `"source":"smart"`) || header.Get("ETag") != `"2"` {
		t.Errorf("after the rename: %s (%s)", text, header.Get("ETag"))
	}
	status, answer, _ := d.asks(http.MethodDelete, modelsPath+"?version=2&source="+url.QueryEscape("smart/er"), "")
	if status != 200 || answer["removed"] != "smart/er" || answer["version"] != 3.0 {
		t.Errorf("DELETE = %d %v", status, answer)
	}
	for _, line := range []string{"virtual model saved by the operator", "virtual model removed by the operator"} {
		if !strings.Contains(d.log.String(), line) {
			t.Errorf("the log lacks %q", line)
		}
	}
}

func TestVirtualModelRefusals(t *testing.T) {
	d := newModelDesk(t, &mem.Cell{})
	d.puts(`{"source":"low","target_model":"A/m"}`)
	d.puts(`{"source":"high","target_model":"low"}`)
	put := func(body string) [3]string { return [3]string{http.MethodPut, modelsPath, body} }
	remove := func(query string) [3]string { return [3]string{http.MethodDelete, modelsPath + query, ""} }
	for _, tt := range []struct {
		request [3]string
		ifMatch string
		status  int
		code    string
		param   string
		message string
	}{
		{put(`{`), "", 400, "invalid_parameter", "body", "JSON"},
		{put(``), "", 400, "invalid_parameter", "body", "JSON"},
		{put(`{"source":"x","target_model":"Z/z"}`), "", 400, "invalid_parameter", "targets[0].model", `"Z/z"`},
		{put(`{"source":"x","targets":[{"model":"m","weight":0}]}`), "", 400, "invalid_parameter", "targets[0].weight", "1 to 1000"},
		{put(`{"source":"low","target_model":"high"}`), "", 400, "invalid_parameter", "targets", "low -> high -> low"},
		{put(`{"source":"x","target_model":"m","wieght":1}`), "", 400, "invalid_parameter", "wieght", "no such field"},
		{put(`{"source":"fixed","target_model":"m"}`), "", 403, "declared", "source", `"fixed"`},
		{put(`{"source":"y","old_source":"x","target_model":"m"}`), "", 404, "virtual_model_not_found", "source", `"x"`},
		{put(`{"source":"x","target_model":"m","version":1}`), "", 409, "version_changed", "version", "the version is 2"},
		{put(`{"source":"x","target_model":"m"}`), `"1"`, 409, "version_changed", "version", "the version is 2"},
		{put(`{"source":"x","target_model":"m"}`), `W/"77"`, 409, "version_changed", "version", "the version is 2"},
		{put(`{"source":"x","target_model":"m"}`), `soon`, 400, "invalid_parameter", "If-Match", "no version"},
		{put(`{"source":"x","target_model":"m","version":2}`), `"1"`, 400, "invalid_parameter", "version", "If-Match"},
		{put(`{"source":"x","description":"` + strings.Repeat("x", 256<<10) + `"}`), "", 413, "request_too_large", "", "too large"},
		{remove("?source=nothing"), "", 404, "virtual_model_not_found", "source", `"nothing"`},
		{remove("?source=fixed"), "", 403, "declared", "source", `"fixed"`},
		{remove("?source=low"), "", 400, "invalid_parameter", "source", `"high" has it as a target`},
		{remove("?source=high&version=1"), "", 409, "version_changed", "version", "the version is 2"},
		{remove("?source=high"), `"1"`, 409, "version_changed", "version", "the version is 2"},
		{remove("?source=high&version=-1"), "", 400, "invalid_parameter", "version", "no version"},
		{remove("?source=high&version=1e3"), "", 400, "invalid_parameter", "version", "no version"},
		{remove(""), "", 400, "invalid_parameter", "source", "missing"},
		{remove("?source=a&source=b"), "", 400, "invalid_parameter", "source", "twice"},
		{remove("?source=a&sauce=b"), "", 400, "invalid_parameter", "sauce", "not a parameter"},
		{remove("?source=%zz"), "", 400, "invalid_parameter", "source", "cannot be read"},
		{[3]string{http.MethodPost, modelsPath, "{}"}, "", 405, "method_not_allowed", "", "GET, HEAD, PUT, DELETE"},
		{[3]string{http.MethodDelete, modelsPath + "/low", ""}, "", 404, "not_found", "", ""},
	} {
		var headers []string
		if tt.ifMatch != "" {
			headers = []string{"If-Match: " + tt.ifMatch}
		}
		status, answer, _ := d.asks(tt.request[0], tt.request[1], tt.request[2], headers...)
		e, _ := answer["error"].(map[string]any)
		param, _ := e["param"].(string)
		if message, _ := e["message"].(string); status != tt.status || e["code"] != tt.code || param != tt.param || !strings.Contains(message, tt.message) {
			t.Errorf("%.100s = %d %v, want %d %s of %s", tt.request, status, e, tt.status, tt.code, tt.param)
		}
		if models, _ := answer["virtual_models"].([]any); tt.status == 409 && (len(models) != 3 || answer["version"] != 2.0) {
			t.Errorf("%.100s: 409 without what there is now: %v", tt.request, answer)
		}
	}
	if _, l, _ := d.asks(http.MethodGet, modelsPath, ""); l["version"] != 2.0 {
		t.Errorf("version = %v after refusals alone, want 2", l["version"])
	}
}

// Two editors of one list: one saves, the other is told, whoever comes first.
func TestConcurrentEditors(t *testing.T) {
	cell := &mem.Cell{}
	desks := []*modelDesk{newModelDesk(t, cell), newModelDesk(t, cell)}
	for version := range 20 {
		statuses := make([]int, len(desks))
		var group sync.WaitGroup
		for i, d := range desks {
			group.Go(func() {
				statuses[i], _, _ = d.asks(http.MethodPut, modelsPath, fmt.Sprintf(`{"source":"s","target_model":"A/m","description":"of %d","version":%d}`, i, version))
			})
		}
		group.Wait()
		if a, b := min(statuses[0], statuses[1]), max(statuses[0], statuses[1]); a != 200 || b != 409 {
			t.Fatalf("version %d: %v, want one 200 and one 409", version, statuses)
		}
	}
}

func TestVirtualModelsNeedAStore(t *testing.T) {
	down := newModelDesk(t, &mem.Cell{Fault: func(string) (bool, error) { return false, errors.New("secret cause") }})
	none := &modelDesk{T: t, admin: newAdmin(health.NewBoard(health.Defaults()))}
	for code, d := range map[string]*modelDesk{"virtual_models_unavailable": down, "no_virtual_models": none} {
		for _, request := range [][3]string{{"GET", modelsPath, ""}, {"PUT", modelsPath, `{"source":"x","target_model":"m"}`}, {"DELETE", modelsPath + "?source=x", ""}} {
			status, answer, _ := d.asks(request[0], request[1], request[2])
			e, _ := answer["error"].(map[string]any)
			if text := fmt.Sprint(answer); status != 503 || e["code"] != code || strings.Contains(text, "secret cause") {
				t.Errorf("%s = %d %s, want 503 %s", request, status, text, code)
			}
		}
	}
	if w := get(down.admin, http.MethodGet, modelsPath, "wrong"); w.Code != http.StatusUnauthorized {
		t.Errorf("with a wrong key = %d, want 401", w.Code)
	}
}
