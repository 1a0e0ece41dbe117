//go:build browser

package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

const moved = `#threads > li[data-session="` + movedSession + `"][data-user-path="/team/app"]`

// An operator's way through the dashboard.
func TestWayThrough(t *testing.T) {
	onEachScreen(t, func(t *testing.T, on screen) {
		b := newBoard(t)
		b.fill()
		p := newBrowser(t, b.url, on)
		p.logIn()
		for _, stage := range []func(*tab){usage, auditLogs, filters, paging, providers, sessions} {
			stage(p)
		}
		p.follow("#logout button")
		p.at("/admin/login")
		p.open("/admin/")
		p.at("/admin/login?next=")
	})
}

func usage(p *tab) {
	p.shoot("usage")
	p.shows("#total-requests", "68")
	p.shows("#total-switches", "1")
	if p.count("figure.chart svg") < 2 || p.count("#days tbody tr") == 0 {
		p.Error("no charts, or no days")
	}
	p.shows("#groups", "m-big", "openai-main", "openai-backup", "m-unpriced", "---")
	if rows := p.count("#sessions tbody tr"); rows != 50 {
		p.Errorf("%d sessions, want a page of 50", rows)
	}
	row := `#sessions tr[data-session="` + movedSession + `"][data-user-path="/team/app"]`
	p.follow(row + " a.chip")
	p.at("session_id="+movedSession, "user_path_exact=true")
	p.shows("#total-requests", "6")
	p.shows("#active-filters", movedSession)
	if rows := p.count("#sessions tbody tr"); rows != 1 {
		p.Errorf("%d sessions behind a chip, want 1", rows)
	}
	p.shoot("usage-session")
	p.follow(`#active-filters a[data-filter="session"]`)
	p.shows("#total-requests", "68")
	p.follow(row + ` a[data-action="log"]`)
	p.at("session_id=" + movedSession)
	p.shows("h1", "Audit Logs")
}

func auditLogs(p *tab) {
	p.open("/admin/")
	p.shows("#grouping [aria-current]", "session")
	p.shoot("audit")
	p.shows(moved+" .count", "6")
	p.do("unfold a thread", chromedp.Click(moved+" summary", chromedp.ByQuery), chromedp.WaitVisible(moved+" [data-older] .nested", chromedp.ByQuery))
	if rows := p.count(moved + " .nested > li.row"); rows != 5 {
		p.Errorf("%d older requests, want 5", rows)
	}
	p.shows(moved+" [data-switch]", "Moved", "openai-main / key one", "openai-backup / key one", "rate_limited", "cold cache $")
	p.fits()
	p.shoot("audit-unfolded")
	p.follow(moved + ` > a[data-action="usage"]`)
	p.at("/admin/ui/usage", "session_id="+movedSession)
	p.open("/admin/")
	p.follow("#grouping a:not([aria-current])")
	p.at("group=request")
	if p.count("#entries > li.row") != 50 || p.count("#threads") != 0 {
		p.Error("not every request is a row")
	}
	p.shoot("audit-requests")
	// What a client sends is text.
	p.open("/admin/")
	if p.count("#main script, [onx]") != 0 || p.count("#threads > li [title]") == 0 {
		p.Error("an id became an element")
	}
	if got := p.say(`[...document.querySelectorAll("#threads > li")].map(e => e.dataset.session).join("\n")`); !strings.Contains(got, hostileSession) || !strings.Contains(got, formulaSession) {
		p.Errorf("ids %s", got)
	}
}

func filters(p *tab) {
	p.open("/admin/")
	p.do("fill a filter", chromedp.SetValue("#f-user_path", "/team/other", chromedp.ByQuery))
	p.follow("#filter-apply")
	p.at("user_path=%2Fteam%2Fother")
	if n := p.count("#threads > li"); n != 2 {
		p.Errorf("%d threads of the other tenant, want 2", n)
	}
	if n := p.count(`#threads > li[data-user-path="/team/app"]`); n != 0 {
		p.Error("another tenant's thread is shown")
	}
	p.do("more filters", chromedp.Click("#filters details.more > summary", chromedp.ByQuery), chromedp.SetValue("#f-outcome", "refused", chromedp.ByQuery))
	p.follow("#filter-apply")
	p.at("outcome=refused", "user_path=%2Fteam%2Fother")
	p.shoot("audit-filtered")
	p.follow("#filter-clear")
	if p.count("#active-filters") != 0 {
		p.Error("a filter is left")
	}
	p.follow(`#ranges a:last-child`)
	p.at("days=")
	p.follow(`#ranges a:first-child`)
	p.at("days=")
	p.do("dates", chromedp.SetValue("#f-from", "2026-01-01", chromedp.ByQuery), chromedp.SetValue("#f-to", "2026-01-02", chromedp.ByQuery))
	p.follow("#filter-apply")
	p.at("from=2026-01-01", "to=2026-01-02")
	p.shows("#empty", "No request")
	p.shoot("audit-empty")
	p.do("a wrong order", chromedp.SetValue("#f-to", "2025-01-02", chromedp.ByQuery))
	p.follow("#filter-apply")
	p.expect(400)
	p.shows("#e-from", "after to")
	p.shoot("audit-refused")
}

func paging(p *tab) {
	p.open("/admin/")
	total := p.number(`+document.querySelector("#pager").innerText.match(/of (\d+)/)[1]`)
	seen := p.say(`[...document.querySelectorAll("#threads > li")].map(e => e.id).join()`)
	p.follow("#next")
	p.at("offset=50")
	rest := p.say(`[...document.querySelectorAll("#threads > li")].map(e => e.id).join()`)
	ids := map[string]bool{}
	for id := range strings.SplitSeq(seen+","+rest, ",") {
		ids[id] = true
	}
	if len(ids) != total || p.count("#next") != 0 {
		p.Errorf("%d threads on two pages, want %d and no third", len(ids), total)
	}
	p.follow("#prev")
	if again := p.say(`[...document.querySelectorAll("#threads > li")].map(e => e.id).join()`); again != seen {
		p.Error("the first page is another when one comes back")
	}
}

func providers(p *tab) {
	p.follow("#nav-providers")
	p.shows(`[data-provider="openai-main"]`, "rate_limited", "m-big", "left alone")
	p.shows(`[data-provider="openai-backup"]`, "one:")
	if got := p.say(`document.querySelector('[data-provider="openai-main"]').dataset.state`); got == "ok" {
		p.Error("a degraded provider is shown as well")
	}
	if text := p.text("#providers"); strings.Contains(text, "sk-") {
		p.Error("a key is shown")
	}
	p.shoot("providers")
}

func sessions(p *tab) {
	p.follow("#nav-sessions")
	p.shows("#main", movedSession[:20])
	p.shoot("sessions")
}
