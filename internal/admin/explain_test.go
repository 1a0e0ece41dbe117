package admin_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"switchboard/internal/health"
	"switchboard/internal/session"
)

func TestMovePin(t *testing.T) {
	body := func(more string) string {
		return `{"session_id":"s1","user_path":"/team/alpha","model":"m","epoch":3` + more + `}`
	}
	for _, tt := range []struct {
		name, body     string
		status         int
		says           string // in the answer
		at             string // provider/key/model/surface of the row after it
		count          int64
		moved, counted bool
	}{
		{"to a provider", body(`,"provider":"B"`), 200, "", "B", 3, true, true},
		{"to a key", body(`,"provider":"B","key_id":"2"`), 200, "", "B/2/real-m/openai-chat-completions", 3, true, true},
		{"to a model", body(`,"provider":"B","key_id":"1","target_model":"real-m"`), 200, "", "B/1/real-m/openai-chat-completions", 3, true, true},
		{"where keys take turns", body(`,"provider":"L"`), 200, "", "L//real-m/openai-chat-completions", 3, true, true},
		{"where it is", body(`,"provider":"A"`), 200, "", "A/1", 2, false, false},
		{"a path with a slash", strings.Replace(body(`,"provider":"B"`), "/team/alpha", "/team/alpha/", 1), 200, "", "B", 3, true, true},
		{"changed", strings.Replace(body(`,"provider":"B"`), ":3", ":2", 1), 409, "pin_changed", "A/1", 2, false, false},
		{"no such session", strings.Replace(body(`,"provider":"B"`), "s1", "s2", 1), 404, "pin_not_found", "A/1", 2, false, false},
		{"another tenant's", strings.Replace(body(`,"provider":"B"`), "/team/alpha", "/team/beta", 1), 404, "pin_not_found", "A/1", 2, false, false},
		{"unknown provider", body(`,"provider":"Z"`), 400, "provider: ", "A/1", 2, false, false},
		{"unknown key", body(`,"provider":"B","key_id":"9"`), 400, "key_id: ", "A/1", 2, false, false},
		{"unknown model", body(`,"provider":"B","target_model":"m"`), 400, "target_model: ", "A/1", 2, false, false},
		{"another surface", body(`,"provider":"C"`), 400, "surface", "A/1", 2, false, false},
		{"without a key", body(`,"provider":"K"`), 400, "no usable key", "A/1", 2, false, false},
		{"a key that takes turns", body(`,"provider":"L","key_id":"1"`), 400, "key_id: ", "A/1", 2, false, false},
		{"no provider", body(``), 400, "provider: is missing", "A/1", 2, false, false},
		{"no epoch", `{"session_id":"s1","user_path":"/team/alpha","model":"m","provider":"B"}`, 400, "epoch: is missing", "A/1", 2, false, false},
		{"epoch of another type", strings.Replace(body(`,"provider":"B"`), ":3", `:"3"`, 1), 400, "epoch: ", "A/1", 2, false, false},
		{"epoch out of range", strings.Replace(body(`,"provider":"B"`), ":3", `:0`, 1), 400, "1 to 9223372036854775807", "A/1", 2, false, false},
		{"unknown field", body(`,"provider":"B","force":true`), 400, "force: ", "A/1", 2, false, false},
		{"something behind", body(`,"provider":"B"`) + "{}", 400, "body: ", "A/1", 2, false, false},
		{"no JSON", "provider=B", 400, "body: ", "A/1", 2, false, false},
		{"bad path", strings.Replace(body(`,"provider":"B"`), "/team/alpha", "team", 1), 400, "user_path: ", "A/1", 2, false, false},
		{"control characters", strings.Replace(body(`,"provider":"B"`), "s1", `s\u0000`, 1), 400, "session_id: ", "A/1", 2, false, false},
		{"too large", body(`,"provider":"` + strings.Repeat("B", 70<<10) + `"`), 413, "too large", "A/1", 2, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t)
			d.pin("/team/alpha", "s1", "m", "A")
			status, v := d.do(http.MethodPut, "/admin/sessions/pin", tt.body)
			row := d.store.Pins()[0]
			at := fmt.Sprintf("%s/%s/%s/%s", row.Provider, row.KeyID, row.Target.Model, row.Surface)
			if status != tt.status || !strings.HasPrefix(at, tt.at) || row.SwitchCount != tt.count || !strings.Contains(fmt.Sprint(v), tt.says) {
				t.Errorf("PUT = %d %v, row at %s with %d switches; want %d %q, %s with %d", status, v, at, row.SwitchCount, tt.status, tt.says, tt.at, tt.count)
			}
			if status == 200 && (v["moved"] != tt.moved || v["switched"] != tt.counted) {
				t.Errorf("PUT says %v, want moved %v, switched %v", v, tt.moved, tt.counted)
			}
			if tt.counted && (v["switch_cost_nano_usd"] != 1_500_000.0 || v["switch_cost"] != 0.0015 || row.SwitchCostNanoUSD != 1_500_000) {
				t.Errorf("PUT says the switch costs %v, %v; the row has %d, want 1500000", v["switch_cost_nano_usd"], v["switch_cost"], row.SwitchCostNanoUSD)
			}
			if session, _ := v["session"].(map[string]any); status == 409 && session["epoch"] != 3.0 {
				t.Errorf("the conflict shows %v, want the row as it is", v)
			}
			if status == 200 && tt.moved && row.Epoch != 4 {
				t.Errorf("epoch %d, want 4", row.Epoch)
			}
		})
	}
}

// A claim that never served moves uncounted, and a model that does not pin has nothing to move.
func TestMoveOfAClaim(t *testing.T) {
	d := newDesk(t)
	pin := d.pin("", "s1", "m", "A")
	pin.Served, pin.SwitchCount = false, 0
	d.store.Put(pin)
	status, v := d.do(http.MethodPut, "/admin/sessions/pin", `{"session_id":"s1","model":"m","epoch":3,"provider":"B"}`)
	if row := d.store.Pins()[0]; status != 200 || v["moved"] != true || v["switched"] != false || v["switch_cost"] != nil || row.SwitchCount != 0 || row.Provider != "B" {
		t.Errorf("PUT = %d %v, row %+v, want it moved uncounted", status, v, row)
	}
	for _, model := range []string{"loose", "gone"} {
		d := newDesk(t)
		d.pin("", "s1", model, "A")
		status, v := d.do(http.MethodPut, "/admin/sessions/pin", `{"session_id":"s1","model":"`+model+`","epoch":3,"provider":"B"}`)
		if told, _ := v["error"].(map[string]any); status != 400 || told["param"] != "model" {
			t.Errorf("PUT of %q = %d %v, want 400 naming the model", model, status, v)
		}
	}
}

// A target that is left alone now would lose the session with its next request.
func TestMoveToADegradedTarget(t *testing.T) {
	d := newDesk(t)
	d.pin("", "s1", "m", "A")
	d.board.Report(health.Outcome{Provider: "B", KeyID: "1", Model: "real-m", Class: health.RateLimited}, time.Now())
	status, v := d.do(http.MethodPut, "/admin/sessions/pin", `{"session_id":"s1","model":"m","epoch":3,"provider":"B","key_id":"1"}`)
	if status != 400 || !strings.Contains(fmt.Sprint(v), "rate_limited") || !strings.Contains(fmt.Sprint(v), "until") {
		t.Errorf("PUT = %d %v, want 400 with reason and time", status, v)
	}
	status, v = d.do(http.MethodPut, "/admin/sessions/pin", `{"session_id":"s1","model":"m","epoch":3,"provider":"B"}`)
	if row := d.store.Pins()[0]; status != 200 || row.KeyID != "2" {
		t.Errorf("PUT = %d %v, at key %s, want the other key", status, v, row.KeyID)
	}
}

func TestExplain(t *testing.T) {
	d := newDesk(t)
	d.pin("/team/alpha", "s1", "m", "B")
	before := d.store.Pins()[0]
	for _, tt := range []struct{ name, body, path, first string }{
		{"object", `{"path":"/v1/chat/completions","headers":{"x-session-id":"s1"},"body":{"model":"m","messages":[]},"user_path":"/team/alpha"}`, "/team/alpha", "B"},
		{"string", `{"method":"POST","path":"/v1/chat/completions","headers":{"X-SESSION-ID":["s1"]},"body":"{\"model\":\"m\",\"messages\":[]}","user_path":"/team/alpha/"}`, "/team/alpha", "B"},
		{"by its key", `{"path":"/v1/chat/completions","headers":{"Authorization":"Bearer ` + clientKey + `","X-Session-Id":"s1"},"body":{"model":"m"}}`, "/team/alpha", "B"},
		{"another tenant", `{"path":"/v1/chat/completions","headers":{"X-Session-Id":"s1"},"body":{"model":"m"},"user_path":""}`, "", "A"},
	} {
		status, v := d.do(http.MethodPost, "/admin/explain", tt.body)
		request, _ := v["request"].(map[string]any)
		attempts, _ := v["attempts"].([]any)
		if status != 200 || len(attempts) == 0 || request["user_path"] != tt.path || request["session_id"] != "s1" ||
			request["session_key"] != session.Scope(tt.path, "s1") || attempts[0].(map[string]any)["provider"] != tt.first {
			t.Errorf("%s: %d %v, want %s first", tt.name, status, v, tt.first)
		}
	}
	if rows := d.store.Pins(); len(rows) != 1 || rows[0] != before {
		t.Errorf("explaining changed the pins: %+v", rows)
	}
	for _, tt := range []struct{ body, names string }{
		{``, "body"},
		{`[]`, "body"},
		{`{}`, "path"},
		{`{"path":"v1"}`, "path"},
		{`{"path":"/v1","url":"x"}`, "url"},
		{`{"path":"/v1","body":7}`, "body"},
		{`{"path":"/v1","headers":{"a":1}}`, "headers"},
		{`{"path":"/v1","headers":{"a":[null]}}`, "headers"},
		{`{"path":"/v1","user_path":"x"}`, "user_path"},
		{`{"path":7}`, "path"},
		{`{"path":"/v1"} {}`, "body"},
	} {
		status, v := d.do(http.MethodPost, "/admin/explain", tt.body)
		if told, _ := v["error"].(map[string]any); status != 400 || told["param"] != tt.names {
			t.Errorf("POST %s = %d %v, want 400 naming %s", tt.body, status, v, tt.names)
		}
	}
}
