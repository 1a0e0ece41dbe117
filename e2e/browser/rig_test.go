//go:build browser

// Package browser proves the dashboard in a real Chromium, over real processes: what it shows,
// what it does, and that it looks like something. Screenshots are kept in .cache/screenshots.
// `make test-browser` says what it needs.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"switchboard/internal/fleettest"
)

// pictures is the folder of the screenshots, which git ignores.
func pictures() string { return filepath.Join("..", "..", ".cache", "screenshots") }

// TestMain builds what is looked at, and removes the pictures of other runs.
func TestMain(m *testing.M) {
	if err := os.RemoveAll(pictures()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(fleettest.Main(m, "cmd/switchboard", "functions/route", "functions/admin"))
}

// screen is what the dashboard is shown on.
type screen struct{ width, height int64 }

// onEachScreen runs a test at the width of a desk and of a telephone.
func onEachScreen(t *testing.T, test func(t *testing.T, on screen)) {
	for _, on := range []screen{{1280, 900}, {390, 844}} {
		t.Run(fmt.Sprint(on.width), func(t *testing.T) { test(t, on) })
	}
}

// tab is one tab of a browser.
type tab struct {
	*testing.T
	ctx  context.Context
	base string
	on   screen

	mu       sync.Mutex
	problems []string // what the console and the content policy complained of
}

// newBrowser starts a Chromium with one empty tab, which ends with the test.
func newBrowser(t *testing.T, base string, on screen) *tab {
	t.Helper()
	program := os.Getenv("CHROMIUM")
	if program == "" {
		program = "/usr/bin/chromium"
	}
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("no Chromium: %v; install the package chromium or set CHROMIUM", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.WSURLReadTimeout(fleettest.Patience))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it does not start as root with one
	}
	ctx, cancel := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(cancel)
	return newTab(t, ctx, base, on)
}

func newTab(t *testing.T, parent context.Context, base string, on screen) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent)
	p := &tab{T: t, ctx: ctx, base: base, on: on}
	t.Cleanup(func() {
		if t.Failed() {
			p.shoot("failed-" + strings.ReplaceAll(t.Name(), "/", "-"))
		}
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.problems) != 0 {
			t.Errorf("the browser complains:\n%s", strings.Join(p.problems, "\n"))
		}
	})
	chromedp.ListenTarget(ctx, p.hear)
	p.do("start", chromedp.EmulateViewport(on.width, on.height))
	return p
}

// another is one more tab of the same browser, with its cookies.
func (p *tab) another() *tab {
	p.Helper()
	return newTab(p.T, p.ctx, p.base, p.on)
}

// hear keeps what the console says; warnings count.
func (p *tab) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, "exception: "+e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		p.problems = append(p.problems, fmt.Sprintf("console.%s: %v", e.Type, e.Args))
	case *log.EventEntryAdded:
		p.problems = append(p.problems, fmt.Sprintf("%s, %s: %s %s", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL))
	}
}

// expect takes back a complaint of the network that a test has provoked: of a status. It comes
// through another channel than the page.
func (p *tab) expect(status int) {
	p.Helper()
	text := fmt.Sprintf("status of %d", status)
	fleettest.Eventually(p.T, "a complaint of "+text, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for i, problem := range p.problems {
			if strings.Contains(problem, text) {
				p.problems = append(p.problems[:i], p.problems[i+1:]...)
				return true
			}
		}
		return false
	})
}

// do does actions, or fails the test with the name of what they are for.
func (p *tab) do(what string, actions ...chromedp.Action) {
	p.Helper()
	if err := p.try(actions...); err != nil {
		p.Fatalf("%s at %s: %v", what, p.where(), err)
	}
}

func (p *tab) try(actions ...chromedp.Action) error {
	// The first action starts the browser, whose life is that of its context.
	if chromedp.FromContext(p.ctx).Target == nil {
		return chromedp.Run(p.ctx, actions...)
	}
	ctx, cancel := context.WithTimeout(p.ctx, fleettest.Patience)
	defer cancel()
	return chromedp.Run(ctx, actions...)
}

// where is the address without its host; empty when there is none to ask.
func (p *tab) where() string {
	var at string
	if chromedp.FromContext(p.ctx).Target != nil {
		ctx, cancel := context.WithTimeout(p.ctx, 2*time.Second)
		defer cancel()
		chromedp.Run(ctx, chromedp.Location(&at)) //nolint:errcheck // it is for messages
	}
	return strings.TrimPrefix(at, p.base)
}

// open goes to a path and waits for its page.
func (p *tab) open(path string) {
	p.Helper()
	p.do("open "+path, chromedp.Navigate(p.base+path), chromedp.WaitReady("#main", chromedp.ByQuery))
	p.fits()
}

// follow clicks what leads to another page, and waits for that.
func (p *tab) follow(selector string) {
	p.Helper()
	p.leave("click "+selector, chromedp.ScrollIntoView(selector, chromedp.ByQuery), chromedp.Click(selector, chromedp.ByQuery))
}

// leave does what leads to another page, and waits for that.
func (p *tab) leave(what string, actions ...chromedp.Action) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, fleettest.Patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, actions...); err != nil {
		p.Fatalf("%s at %s: %v", what, p.where(), err)
	}
	p.do(what, chromedp.WaitReady("#main", chromedp.ByQuery))
	p.fits()
}

// fits looks whether the page is no wider than the screen.
func (p *tab) fits() {
	p.Helper()
	if over := p.number(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
		p.Errorf("%s is %d pixels too wide for %d", p.where(), over, p.on.width)
	}
}

func (p *tab) number(script string) (n int) {
	p.Helper()
	p.do(script, chromedp.Evaluate(script, &n))
	return n
}

func (p *tab) say(script string) (text string) {
	p.Helper()
	p.do(script, chromedp.Evaluate(script, &text))
	return text
}

// count is how many elements there are.
func (p *tab) count(selector string) int {
	p.Helper()
	return p.number(fmt.Sprintf("document.querySelectorAll(%q).length", selector))
}

// text is what an element shows, in one line.
func (p *tab) text(selector string) string {
	p.Helper()
	return strings.Join(strings.Fields(p.say(fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))), " ")
}

// shows looks for texts in an element.
func (p *tab) shows(selector string, texts ...string) {
	p.Helper()
	got := p.text(selector)
	for _, text := range texts {
		if !strings.Contains(got, text) {
			p.Errorf("%s: %s shows %q, want %q in it", p.where(), selector, got, text)
		}
	}
}

// at looks at the address.
func (p *tab) at(parts ...string) {
	p.Helper()
	for _, part := range parts {
		if where := p.where(); !strings.Contains(where, part) {
			p.Errorf("at %s, want %s in it", where, part)
		}
	}
}

// shoot keeps a picture of the whole page, light and dark.
func (p *tab) shoot(name string) {
	p.Helper()
	if err := os.MkdirAll(pictures(), 0o755); err != nil {
		p.Fatal(err)
	}
	for _, scheme := range []string{"dark", "light"} {
		var picture []byte
		err := p.try(
			page.BringToFront(), // a tab behind another is not painted
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
			chromedp.FullScreenshot(&picture, 100),
		)
		if err == nil {
			err = os.WriteFile(filepath.Join(pictures(), fmt.Sprintf("%s-%d-%s.png", name, p.on.width, scheme)), picture, 0o644)
		}
		if err != nil {
			p.Errorf("picture of %s: %v", name, err)
		}
	}
}

// logIn opens the dashboard as an operator does, mistake included.
func (p *tab) logIn() {
	p.Helper()
	p.open("/admin/ui/usage?days=all")
	p.at("/admin/login?next=")
	p.shoot("login")
	p.do("type a wrong key", chromedp.SendKeys("#key", "not the key", chromedp.ByQuery))
	p.follow("#login button")
	p.expect(401)
	p.shows("#login-failed", "not accepted")
	p.shoot("login-failed")
	p.leave("type the key and Enter", chromedp.SendKeys("#key", adminKey+"\r", chromedp.ByQuery))
	p.at("/admin/ui/usage?days=all")
}
