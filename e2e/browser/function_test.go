//go:build browser

package browser

import (
	"testing"

	"github.com/chromedp/chromedp"

	"switchboard/internal/fleettest"
	"switchboard/internal/functionurl"
)

// The dashboard of the admin function, behind its URL, over events that Firehose has delivered.
func TestFunction(t *testing.T) {
	onEachScreen(t, func(t *testing.T, on screen) {
		b, path := writeConfiguration(t)
		cloud := fleettest.NewCloud(t)
		env := append(cloud.Env(), "SWITCHBOARD_CONFIG="+path)
		route := fleettest.StartFunction(t, functionurl.Options{Bootstrap: fleettest.Program("route"), Env: env, Environments: 2})
		b.url = route.URL
		for range 3 {
			b.ask(clientKey, movedSession, "m-big", 200)
		}
		b.main.Does(fleettest.Fails(429))
		b.ask(clientKey, movedSession, "m-big", 200)
		route.Rest()
		cloud.Flush()

		admin := fleettest.StartFunction(t, functionurl.Options{Bootstrap: fleettest.Program("admin"), Env: append(env, "SWITCHBOARD_ADMIN_KEY="+adminKey)})
		p := newBrowser(t, admin.URL, on)
		p.logIn()
		p.shows("#total-requests", "4")
		p.open("/admin/")
		p.shows("#coverage", "Events up to")
		p.shows(moved+" .count", "4")
		p.do("unfold a thread", chromedp.Click(moved+" summary", chromedp.ByQuery), chromedp.WaitVisible(moved+" [data-older] .nested", chromedp.ByQuery))
		p.shows(moved, "Moved", "from openai-main / key one to openai-backup / key one")
		p.follow("#nav-providers")
		p.shows(`[data-provider="openai-main"]`, "rate_limited")
		p.shoot("function-providers")
		p.follow("#nav-models")
		p.follow("#model-new")
		p.do("fill the editor", chromedp.SendKeys("#m-source", "smart", chromedp.ByQuery), chromedp.SendKeys(`[name="target_model"]`, "openai-backup/m-big", chromedp.ByQuery))
		p.follow("#model-save")
		p.shows("#notice", "smart is saved")
		p.follow("#logout button")
		p.at("/admin/login")
	})
}
