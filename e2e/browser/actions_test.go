//go:build browser

package browser

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Two editors of one virtual model: the second to save is told, and can then decide.
func TestEditVirtualModel(t *testing.T) {
	onEachScreen(t, func(t *testing.T, on screen) {
		b := newBoard(t)
		p := newBrowser(t, b.url, on)
		p.logIn()
		p.follow("#nav-models")
		p.shows(`[data-model="declared"]`, "declared", "openai-main/m-big")
		if p.count(`[data-model="declared"] [data-action="edit"]`) != 0 {
			p.Error("what the configuration declares can be edited")
		}
		p.follow("#model-new")
		p.do("type a model that leads nowhere", chromedp.SendKeys("#m-source", "smart", chromedp.ByQuery), chromedp.SendKeys(`[name="target_model"]`, "nobody/m", chromedp.ByQuery))
		p.follow("#model-save")
		p.expect(400)
		if p.count("#editor .fault") != 1 || p.say(`document.querySelector("#m-source").value`) != "smart" {
			p.Error("it is not said at its place, or what was typed is gone")
		}
		p.shoot("models-refused")
		p.do("type a target", chromedp.SetValue(`[name="target_model"]`, "openai-main/m-big", chromedp.ByQuery))
		p.follow("#model-save")
		p.shows("#notice", "smart is saved")
		p.shows(`[data-model="smart"]`, "round_robin", "openai-main/m-big", "on")
		p.shoot("models")

		first, second := p, p.another()
		second.open("/admin/ui/virtual-models")
		first.follow(`[data-model="smart"] [data-action="edit"]`)
		second.follow(`[data-model="smart"] [data-action="edit"]`)
		second.do("choose", chromedp.SetValue("#m-strategy", "cost", chromedp.ByQuery))
		second.follow("#model-save")
		second.shows("#notice", "smart is saved")
		first.do("choose", chromedp.SetValue("#m-strategy", "failover", chromedp.ByQuery))
		first.follow("#model-save")
		first.expect(409)
		first.shows("#stale", "Somebody else has saved", "There is now: cost")
		first.shoot("models-stale")
		if got := first.say(`document.querySelector("#m-strategy").value`); got != "failover" {
			first.Errorf("the edit became %s", got)
		}
		first.follow("#model-save")
		first.shows(`[data-model="smart"]`, "failover")
		b.ask(clientKey, "", "smart", 200) // this process has saved it, and serves it at once

		first.follow(`[data-model="smart"] [data-action="edit"]`)
		first.do("unfold", chromedp.Click("#editor .remove summary", chromedp.ByQuery), chromedp.WaitVisible("#model-remove", chromedp.ByQuery))
		first.follow("#model-remove")
		if first.count(`[data-model="smart"]`) != 0 {
			first.Error("a removed model is still there")
		}
	})
}

// Exports are files of what the page shows.
func TestExports(t *testing.T) {
	on := screen{1280, 900}
	b := newBoard(t)
	b.fill()
	p := newBrowser(t, b.url, on)
	p.logIn()
	p.open("/admin/?days=all&session_id=" + movedSession)
	var threads struct {
		Sessions []struct {
			RequestCount int `json:"request_count"`
		}
	}
	if err := json.Unmarshal(p.download("#export-json", "switchboard-audit-sessions.json"), &threads); err != nil || len(threads.Sessions) != 2 || threads.Sessions[0].RequestCount+threads.Sessions[1].RequestCount != 7 {
		t.Errorf("threads %+v, %v, want sessions of 6 and of 1", threads, err)
	}
	rows := table(t, p.download("#export-csv", "switchboard-audit-sessions.csv"))
	if len(rows) != 3 || rows[0][0] != "request_count" {
		t.Errorf("threads as CSV: %v", rows)
	}
	p.open("/admin/?days=all")
	if text := string(p.download("#export-csv", "switchboard-audit-sessions.csv")); !strings.Contains(text, "'"+formulaSession) || strings.Contains(text, ","+formulaSession) {
		t.Error("a cell begins a formula")
	}
	p.open("/admin/ui/usage?days=all&model=m-big")
	for _, name := range []string{"sessions", "days", "models"} {
		links := p.say(`[...document.querySelectorAll("[data-export]")].map(e => e.dataset.export).join(" ")`)
		if !strings.Contains(strings.ToLower(links), name+"-csv") || !strings.Contains(strings.ToLower(links), name+"-json") {
			t.Errorf("exports %s, want %s in both forms", links, name)
		}
	}
	if rows := table(t, p.download(`[data-export$="ays-csv"]`, "switchboard-usage-daily.csv")); len(rows) < 2 || rows[0][0] != "date" {
		t.Errorf("days as CSV: %v", rows)
	}
}

func table(t *testing.T, text []byte) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil {
		t.Errorf("no CSV: %v in %s", err, text)
	}
	return rows
}

// download clicks a link and returns the file that it leads to.
func (p *tab) download(selector, name string) []byte {
	p.Helper()
	dir := p.TempDir()
	done := make(chan string, 1)
	chromedp.ListenTarget(p.ctx, func(event any) {
		if e, ok := event.(*browser.EventDownloadProgress); ok && e.State == browser.DownloadProgressStateCompleted {
			select {
			case done <- e.GUID:
			default:
			}
		}
	})
	p.do("download "+selector,
		browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(dir).WithEventsEnabled(true),
		chromedp.Click(selector, chromedp.ByQuery))
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		p.Fatalf("%s: no download", selector)
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		p.Fatal(err)
	}
	return text
}

// What can be done with a mouse can be done with a keyboard, and one sees where one is.
func TestKeyboard(t *testing.T) {
	onEachScreen(t, func(t *testing.T, on screen) {
		b := newBoard(t)
		b.fill()
		p := newBrowser(t, b.url, on)
		p.logIn()
		p.open("/admin/?days=all&session_id=" + movedSession)
		p.tabTo("a.skip", "#nav-usage", "#nav-providers", "#nav-models", "#logout button", "#grouping a", "#export-csv", "#f-session_id", "#f-from",
			"#filter-apply", "#filters details.more > summary", "#ranges a", "#active-filters a", "#threads summary", `#threads a[data-action="usage"]`, "#pager a")
		p.do("unfold by keyboard", chromedp.Focus(moved+" summary", chromedp.ByQuery), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(moved+" [data-older] .nested", chromedp.ByQuery))
		p.do("fill by keyboard", chromedp.Clear("#f-session_id", chromedp.ByQuery), chromedp.Focus("#f-session_id", chromedp.ByQuery))
		p.leave("type and Enter", chromedp.KeyEvent("task-07"), chromedp.KeyEvent(kb.Enter))
		p.at("session_id=task-07")
		p.open("/admin/")
		p.leave("skip to content, then Tab", chromedp.Focus("#nav-models", chromedp.ByQuery), chromedp.KeyEvent(kb.Enter))
		p.at("/admin/ui/virtual-models")
		p.follow("#model-new")
		p.tabTo("#m-source", "#m-strategy", `[name="target_model"]`, `[name="target_weight"]`, "#m-paths", `[name="enabled"]`, "#model-save")
	})
}

// tabTo presses Tab from the top of the page until it has met all that is wanted. Whatever it
// meets must be outlined; of a date, the browser outlines a part.
func (p *tab) tabTo(wanted ...string) {
	p.Helper()
	list, err := json.Marshal(wanted)
	if err != nil {
		p.Fatal(err)
	}
	met := fmt.Sprintf(`(() => {
		const e = document.activeElement;
		if (!e || e === document.body) return "";
		const bare = getComputedStyle(e).outlineStyle === "none" && e.type !== "date";
		return (bare ? "BARE " + e.outerHTML.slice(0, 80) + "\n" : "") + %s.filter(n => e.matches(n)).join("\n");
	})()`, list)
	left := slices.Clone(wanted)
	const most = 80
	for presses := 0; len(left) > 0; presses++ {
		if presses == most {
			p.Fatalf("not reached by Tab: %q", left)
		}
		p.do("Tab", chromedp.KeyEvent(kb.Tab))
		for name := range strings.SplitSeq(p.say(met), "\n") {
			if strings.HasPrefix(name, "BARE") {
				p.Errorf("no outline of the focus: %s", name)
			}
			left = slices.DeleteFunc(left, func(n string) bool { return n == name })
		}
	}
}

// Without scripts everything can be read.
func TestWithoutScript(t *testing.T) {
	onEachScreen(t, func(t *testing.T, on screen) {
		b := newBoard(t)
		b.fill()
		p := newBrowser(t, b.url, on)
		p.do("no scripts", emulation.SetScriptExecutionDisabled(true))
		p.logIn()
		p.open("/admin/?days=all&session_id=" + movedSession)
		p.do("open the row", chromedp.Click(moved+" summary", chromedp.ByQuery), chromedp.WaitVisible(moved+" [data-unfold]", chromedp.ByQuery))
		p.follow(moved + " [data-unfold]")
		if rows := p.count(moved + " .nested > li.row"); rows != 5 {
			t.Errorf("%d older requests, want 5", rows)
		}
		p.shows(moved+" [data-switch]", "Moved")
		p.follow(moved + ` > a[data-action="usage"]`)
		p.shows("#total-requests", "6")
		for _, path := range []string{"/admin/ui/providers", "/admin/ui/sessions", "/admin/ui/virtual-models?edit="} {
			p.open(path)
		}
		p.do("fill the editor", chromedp.SendKeys("#m-source", "plain", chromedp.ByQuery), chromedp.SendKeys(`[name="target_model"]`, "openai-main/m-big", chromedp.ByQuery))
		p.follow("#model-save")
		p.shows("#notice", "plain is saved")
	})
}
