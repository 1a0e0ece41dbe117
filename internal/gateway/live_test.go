package gateway_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/gateway"
	"switchboard/internal/mem"
	"switchboard/internal/shared"
	"switchboard/internal/upstreamtest"
	"switchboard/internal/virtual"
)

// liveYAML has two tenants, alpha and beta, beside the tests' client without one.
const liveYAML = `
auth:
  keys:
    - {name: test, sha256: "{{sha256 ck-test-PPPPQQQQRRRRSSSS}}"}
    - {name: alpha, sha256: "{{sha256 ck-alpha-AAAABBBBCCCC}}", user_path: /team/alpha/app}
    - {name: beta, sha256: "{{sha256 ck-beta-DDDDEEEEFFFF}}", user_path: /team/beta}
providers:
  A: {type: openai, base_url: "http://a.test/v1", api_keys: [sk-a-AAAABBBB], models: [m, only-a]}
  B: {type: openai, base_url: "http://b.test/v1", api_keys: [sk-b-CCCCDDDD], models: [m]}
  C: {type: openai, base_url: "http://c.test/v1", api_keys: [sk-c-EEEEFFFF], models: [m]}
virtual_models:
  - {source: fixed, targets: [{model: C/m}]}
`

// live is a rig whose virtual models are saved in cell, with the plane that saves them.
func live(t testing.TB, cell shared.Cell) (*rig, *virtual.Models) {
	t.Helper()
	r := newRig(t, liveYAML)
	models, err := virtual.New(r.cfg.Providers, r.cfg.Virtuals, cell, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	r.restart(t, func(o *gateway.Options) { o.Catalog = models })
	for _, name := range []string{"A", "B", "C"} {
		r.network.Set(name, upstreamtest.Always(upstreamtest.JSON(200, chatAnswer)))
	}
	return r, models
}

func save(t testing.TB, models *virtual.Models, body string) {
	t.Helper()
	c, err := virtual.ParseChange([]byte(body))
	if err == nil {
		_, err = models.Save(t.Context(), c)
	}
	if err != nil {
		t.Errorf("save %s: %v", body, err)
	}
}

func asks(model string) string {
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hi"}]}`, model)
}

// provider is who answers a request for the model; the error's code when nobody does.
func (r *rig) provider(model string, headers ...string) string {
	a := r.post("/v1/chat/completions", asks(model), headers...)
	if a.status != 200 {
		return fmt.Sprint(a.status, " ", a.member("error.code"))
	}
	return a.header.Get("X-Switchboard-Provider")
}

func TestAnotherInstanceServesWhatWasSavedWithinTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell := &mem.Cell{}
		one, models := live(t, cell)
		two, _ := live(t, cell)
		if got := two.provider("smart"); got != "404 model_not_found" {
			t.Errorf("before: %s", got)
		}
		save(t, models, `{"source":"smart","target_model":"B/m"}`)
		if got := one.provider("smart"); got != "B" {
			t.Errorf("here: %s, want B at once", got)
		}
		time.Sleep(10 * time.Second)
		if got := two.provider("smart"); got != "B" {
			t.Errorf("there, 10 s later: %s, want B", got)
		}
		save(t, models, `{"source":"smart","target_model":"C/m"}`)
		time.Sleep(time.Hour) // nobody asks
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				if got := two.provider("smart"); got != "C" {
					t.Errorf("after a rest: %s, want C", got)
				}
			})
		}
		group.Wait()
	})
}

// A pinned session stays where it is while that is among the targets, whatever else is saved,
// and moves once when it is not.
func TestPinsAcrossASwap(t *testing.T) {
	r, models := live(t, &mem.Cell{})
	ask := func(want, reason string) {
		t.Helper()
		if got := r.provider("smart", "X-Session-Id: s1"); got != want || r.last(t).DecisionReason != reason {
			t.Errorf("served by %s (%s), want %s (%s)", got, r.last(t).DecisionReason, want, reason)
		}
	}
	save(t, models, `{"source":"smart","strategy":"round_robin","targets":[{"model":"A/m"},{"model":"B/m"}]}`)
	ask("A", "round_robin")
	save(t, models, `{"source":"smart","strategy":"round_robin","targets":[{"model":"C/m"},{"model":"B/m"},{"model":"A/m"}]}`)
	ask("A", "affinity")
	save(t, models, `{"source":"smart","strategy":"round_robin","targets":[{"model":"B/m"}]}`)
	ask("B", "fallback")
	if e := r.last(t); !e.Switched || e.SwitchCount == nil || *e.SwitchCount != 1 {
		t.Errorf("switched = %v, count %v, want one switch", e.Switched, e.SwitchCount)
	}
	ask("B", "affinity")
	save(t, models, `{"source":"smart","session_affinity":false,"targets":[{"model":"C/m"},{"model":"A/m"}]}`)
	if got := r.provider("smart", "X-Session-Id: s1"); got == "B" || r.last(t).Affinity != "off" && r.last(t).Affinity != "" && r.last(t).Affinity != "none" {
		t.Errorf("without affinity: served by %s, affinity %q", got, r.last(t).Affinity)
	}
}

// What another instance has just switched on or off counts for the very request that learns
// of it, with its pin.
func TestAffinityTurnedOnAndOffElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell := &mem.Cell{}
		_, models := live(t, cell)
		r, _ := live(t, cell)
		targets := `"strategy":"round_robin","targets":[{"model":"A/m"},{"model":"B/m"}]}`
		save(t, models, `{"source":"smart","session_affinity":false,`+targets)
		if got := r.provider("smart", "X-Session-Id: s2"); got != "A" {
			t.Fatalf("first = %s, want A", got)
		}
		save(t, models, `{"source":"smart","session_affinity":true,`+targets)
		time.Sleep(10 * time.Second)
		r.provider("smart", "X-Session-Id: s2")
		if _, kept := r.row("s2", "smart"); !kept {
			t.Error("the request that learns that there is affinity keeps no pin")
		}
		save(t, models, `{"source":"smart","session_affinity":false,`+targets)
		time.Sleep(10 * time.Second)
		r.provider("smart", "X-Session-Id: s3")
		if _, kept := r.row("s3", "smart"); kept {
			t.Error("the request that learns that there is no affinity keeps a pin")
		}
	})
}

// For whom a virtual model is not, it does not exist, in words and in lists.
func TestUserPathsLimitWhoMayAsk(t *testing.T) {
	r, models := live(t, &mem.Cell{})
	save(t, models, `{"source":"smart","target_model":"B/m","user_paths":["/team/alpha"]}`)
	save(t, models, `{"source":"only-a","target_model":"C/m","user_paths":["/team/alpha"]}`)
	const alpha, beta = "X-Api-Key: ck-alpha-AAAABBBBCCCC", "X-Api-Key: ck-beta-DDDDEEEEFFFF"
	plain := func(key, path, body string) *answer {
		request := post(path, body, key)
		request.Header.Del("Authorization")
		if body == "" {
			request.Method = "GET"
		}
		return r.do(t.Context(), request)
	}
	for key, want := range map[string]string{alpha: "B C", beta: "404 A"} {
		var got []string
		for _, model := range []string{"smart", "only-a"} {
			a := plain(key, "/v1/chat/completions", asks(model))
			if got = append(got, a.header.Get("X-Switchboard-Provider")); a.status != 200 {
				got[len(got)-1] = fmt.Sprint(a.status)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: smart and only-a are served by %s, want %s", key, got, want)
		}
	}
	hidden, unknown := plain(beta, "/v1/chat/completions", asks("smart")), plain(beta, "/v1/chat/completions", asks("smarx"))
	if strings.ReplaceAll(hidden.text(), "smart", "smarx") != unknown.text() {
		t.Errorf("hidden = %s, want it to be like an unknown one: %s", hidden.text(), unknown.text())
	}
	for key, want := range map[string]bool{alpha: true, beta: false} {
		if got := strings.Contains(plain(key, "/v1/models", "").text(), `"smart"`); got != want {
			t.Errorf("%s: /v1/models has smart = %v, want %v", key, got, want)
		}
		if got := plain(key, "/v1/models/smart", "").status == 200; got != want {
			t.Errorf("%s: /v1/models/smart is there = %v, want %v", key, got, want)
		}
	}
}

func TestModelsListsVirtualModelsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell := &mem.Cell{}
		_, models := live(t, cell)
		r, _ := live(t, cell)
		list := func() string {
			request := post("/v1/models", "")
			request.Method = "GET"
			var ids []string
			data, _ := r.do(t.Context(), request).member("data").([]any)
			for _, entry := range data {
				m := entry.(map[string]any)
				ids = append(ids, fmt.Sprint(m["id"], "/", m["owned_by"]))
			}
			return strings.Join(ids, " ")
		}
		if got, want := list(), "fixed/C m/switchboard only-a/A"; got != want {
			t.Errorf("list = %s, want %s", got, want)
		}
		save(t, models, `{"source":"smart","targets":[{"model":"B/m"},{"model":"A/m"}]}`)
		time.Sleep(10 * time.Second)
		if got, want := list(), "fixed/C m/switchboard only-a/A smart/B"; got != want {
			t.Errorf("list = %s, want %s", got, want)
		}
	})
}

// While virtual models are saved over and over, every request is answered, from one catalog:
// A fails, and whichever way round p and q are, one of v's two targets is not A.
func TestRequestsDuringSwaps(t *testing.T) {
	cell := &mem.Cell{}
	r, models := live(t, cell)
	r.network.Set("A", upstreamtest.Always(upstreamtest.JSON(503, `{"error":{"message":"down"}}`)))
	document := func(n int) []byte {
		p, q := "A/m", "B/m"
		if n%2 == 1 {
			p, q = q, p
		}
		return fmt.Appendf(nil, `{"edit":"%d","models":[{"source":"v","strategy":"failover","targets":[{"model":"p"},{"model":"q"}]},
			{"source":"p","targets":[{"model":%q}]},{"source":"q","targets":[{"model":%q}]}]}`, n, p, q)
	}
	if err := cell.Swap(t.Context(), document(0), 0, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := models.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var swapping, group sync.WaitGroup
	swapping.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := cell.Swap(t.Context(), document(n), int64(n), time.Time{}); err != nil {
				t.Errorf("swap %d: %v", n, err)
			}
			if _, err := models.List(t.Context()); err != nil {
				t.Errorf("list: %v", err)
			}
		}
	})
	for n := range 200 {
		group.Go(func() {
			if got := r.provider("v", fmt.Sprint("X-Session-Id: s", n%20)); got != "B" {
				t.Errorf("served by %s, want B", got)
			}
		})
	}
	group.Wait()
	close(stop)
	swapping.Wait()
}
